//! Confinement of files by Landlock: in addition to mounts, and alone where mounts are not available. It allows folders
//! and cannot except paths inside of an allowed one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, RulesetError, RulesetStatus, path_beneath_rules,
};
use rustix::stdio::{stderr, stdin, stdout};
use rustix::termios::isatty;

use crate::sandbox::Sandbox;
use crate::sandbox::conceal::ConcealedFolder;

/// The newest version of Landlock that is used. Older kernels enforce the part that they support.
const KNOWN: ABI = ABI::V5;
/// Devices that ordinary programs write to.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"];
/// Folders that programs have to read to run at all.
const BASICS: &[&str] = &["/dev", "/proc"];

/// Keeps this process and all it starts, for good, from writing where the sandbox does not allow it, should a way
/// around the mounts be found. The mounts refuse first, so error texts are the same with and without it. A kernel
/// that has no Landlock leaves it to the mounts.
pub(super) fn back_up_mounts(sandbox: &Sandbox) -> io::Result<()> {
    if sandbox.writable.iter().any(|root| root.path == Path::new("/")) {
        return Ok(());
    }
    let restrict = || -> Result<(), RulesetError> {
        let write = AccessFs::from_write(KNOWN);
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(write)?.create()?;
        let roots = sandbox.writable.iter().map(|root| root.path.as_path());
        // `/dev` and `/proc` contain only the devices and processes of the sandbox.
        let ruleset = ruleset
            .add_rules(path_beneath_rules(roots.chain([Path::new("/dev")]), write))?
            .add_rules(path_beneath_rules(["/proc"], AccessFs::WriteFile | AccessFs::Truncate))?;
        terminals(ruleset)?.restrict_self()?;
        Ok(())
    };
    restrict().map_err(io::Error::other)
}

/// A terminal that the command was given comes from outside, and is opened again by its other names.
fn terminals(mut ruleset: RulesetCreated) -> Result<RulesetCreated, RulesetError> {
    let file = AccessFs::from_write(KNOWN) & AccessFs::from_file(KNOWN);
    for given in [stdin(), stdout(), stderr()].into_iter().filter(|given| isatty(given)) {
        ruleset = ruleset.add_rule(PathBeneath::new(given, file))?;
    }
    Ok(ruleset)
}

/// A folder, or the parts of it that together are all but what is concealed in it. What is made in a folder above that
/// later is not among them.
fn except(folder: &Path, concealed: &[ConcealedFolder]) -> Vec<PathBuf> {
    let inside = concealed.iter().any(|concealed| concealed.folder.starts_with(folder));
    if concealed.iter().any(|concealed| concealed.conceals(folder)) {
        return Vec::new();
    }
    match fs::read_dir(folder) {
        Ok(entries) if inside => {
            let entries =
                entries.filter_map(Result::ok).filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_symlink()));
            entries.flat_map(|entry| except(&entry.path(), concealed)).collect()
        }
        _ => vec![folder.into()],
    }
}

/// Applies to this process and all it starts, for good.
pub(super) fn confine(sandbox: &Sandbox) -> io::Result<()> {
    let restrict = || -> Result<RulesetStatus, RulesetError> {
        let read = AccessFs::from_read(KNOWN);
        let all = AccessFs::from_all(KNOWN);
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?.create()?;
        let roots = match &sandbox.readable {
            None => vec![PathBuf::from("/")],
            Some(roots) => roots.iter().map(|root| root.path.clone()).chain(BASICS.iter().map(PathBuf::from)).collect(),
        };
        let folders = roots.iter().filter(|root| root.is_dir());
        let ruleset = ruleset
            .add_rules(path_beneath_rules(folders, AccessFs::ReadDir))?
            .add_rules(path_beneath_rules(roots.iter().flat_map(|root| except(root, &sandbox.concealed)), read))?;
        let roots = sandbox.writable.iter().map(|root| &root.path);
        let devices = AccessFs::from_file(KNOWN) | AccessFs::ReadDir;
        let ruleset =
            ruleset.add_rules(path_beneath_rules(roots, all))?.add_rules(path_beneath_rules(DEVICES, devices))?;
        Ok(ruleset.restrict_self()?.ruleset)
    };
    match restrict().map_err(io::Error::other)? {
        RulesetStatus::NotEnforced => Err(io::Error::new(io::ErrorKind::Unsupported, "the kernel has no Landlock")),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}
