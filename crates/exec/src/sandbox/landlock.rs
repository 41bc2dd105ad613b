//! Confinement of files by Landlock, where namespaces are not to be had. It allows by folder and cannot take
//! back what lies inside an allowed one.

use std::io;

use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetCreatedAttr, RulesetStatus,
    path_beneath_rules,
};

use super::Sandbox;

/// Newer kernels know more; older ones enforce what they know.
const KNOWN: ABI = ABI::V5;
/// Written to by harmless programs.
const DEVICES: &[&str] = &["/dev/null", "/dev/zero", "/dev/full", "/dev/tty", "/dev/ptmx", "/dev/pts"];
/// Read by programs that could not run otherwise.
const BASICS: &[&str] = &["/dev", "/proc"];

/// Applies to this process and all it starts, for good.
pub(super) fn confine(sandbox: &Sandbox) -> io::Result<()> {
    let restrict = || -> Result<RulesetStatus, landlock::RulesetError> {
        let read = AccessFs::from_read(KNOWN);
        let all = AccessFs::from_all(KNOWN);
        let ruleset = Ruleset::default().set_compatibility(CompatLevel::BestEffort).handle_access(all)?.create()?;
        let ruleset = match &sandbox.readable {
            None => ruleset.add_rules(path_beneath_rules(["/"], read))?,
            Some(roots) => {
                ruleset.add_rules(path_beneath_rules(roots, read))?.add_rules(path_beneath_rules(BASICS, read))?
            }
        };
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
