//! The file system of a confined command, in a mount namespace of its own: everything, or the readable roots,
//! read-only, with the writable roots mounted over it.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MoveMountFlags, OpenTreeFlags, UnmountFlags, fsconfig_create,
    fsconfig_set_string, fsmount, fsopen, move_mount, open_tree, unmount,
};

use super::devices::Devices;
use super::entries::EntryKind;
use super::sys::{make_harmless, make_read_only};
use crate::sandbox::conceal::ConcealedFolder;
use crate::sandbox::layers::Layer;
use crate::sandbox::{ReadableRoot, Sandbox};

/// Entries of `/proc` through which root changes the kernel. Mounted read-only for commands.
pub(super) const KERNEL_SWITCHES: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

/// Where a new root is assembled: a folder that always exists and that the new root replaces.
const STAGE: &str = "/dev";

/// The size of file systems that contain only mount points.
pub(super) const FRAME_SIZE: &str = "1m";

/// The empty file that is mounted over closed files, and then removed.
const COVER: &str = "/dev/.closed";

/// Mounts the sandbox. To be called in a mount namespace of our own, to which no mount propagates.
pub(super) fn confine(sandbox: &Sandbox, cwd: &Path) -> io::Result<()> {
    let overlay = Overlay::take(sandbox)?;
    let devices = Devices::take();
    let everything = sandbox.writable.iter().any(|root| root.path == Path::new("/"));
    match &sandbox.readable {
        Some(roots) => {
            let readable = ReadableTrees::take(roots)?;
            let stage = Path::new(STAGE);
            attach(&new_filesystem("tmpfs", &[("mode", "0755"), ("size", FRAME_SIZE)])?, stage)?;
            readable.attach(stage)?;
            fs::create_dir_all(stage.join("dev"))?;
            devices.attach(&stage.join("dev"))?;
            overlay.attach(stage)?;
            fs::create_dir_all(stage.join("proc"))?;
            attach(&read_only_tree(Path::new("/proc"))?, &stage.join("proc"))?;
            enter(stage)?;
        }
        None => {
            match everything {
                true => make_harmless(CWD, c"/")?,
                false => make_read_only(CWD, c"/", true)?,
            }
            devices.attach(Path::new("/dev"))?;
            overlay.attach(Path::new("/"))?;
        }
    }
    fresh_proc(sandbox)?;
    sandbox.check_granted()?;
    // Fails for a working directory that the command cannot see.
    std::env::set_current_dir(cwd).map_err(|error| io::Error::other(format!("{}: {error}", cwd.display())))
}

const CLONE: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);

/// A copy of the mounts at a path, attached nowhere.
pub(super) fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    Ok(open_tree(CWD, path, CLONE)?)
}

/// Like [`clone_tree`], mounted `nodev` and `nosuid`.
fn harmless_tree(path: &Path) -> io::Result<OwnedFd> {
    let tree = clone_tree(path)?;
    make_harmless(tree.as_fd(), c"")?;
    Ok(tree)
}

fn read_only_tree(path: &Path) -> io::Result<OwnedFd> {
    read_only(clone_tree(path)?)
}

/// A read-only clone of a path; of a link, the link itself. Mounted on itself, a link keeps its target and can be
/// neither removed nor replaced.
fn read_only_itself(path: &Path) -> io::Result<OwnedFd> {
    read_only(open_tree(CWD, path, CLONE | OpenTreeFlags::AT_SYMLINK_NOFOLLOW)?)
}

fn read_only(tree: OwnedFd) -> io::Result<OwnedFd> {
    make_read_only(tree.as_fd(), c"", true)?;
    Ok(tree)
}

pub(super) fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    Ok(move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?)
}

pub(super) fn new_filesystem(kind: &str, options: &[(&str, &str)]) -> io::Result<OwnedFd> {
    let context = fsopen(kind, FsOpenFlags::FSOPEN_CLOEXEC)?;
    for (name, value) in options {
        fsconfig_set_string(&context, *name, *value)?;
    }
    fsconfig_create(&context)?;
    let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    // A pseudo-terminal is a device.
    let devices = if kind == "devpts" { MountAttrFlags::empty() } else { MountAttrFlags::MOUNT_ATTR_NODEV };
    let attributes = attributes | devices;
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// The mounts over the base file system. Their trees are cloned before the base hides them.
struct Overlay<'a>(Vec<Mount<'a>>);

struct Mount<'a> {
    layer: Layer<'a>,
    tree: Option<OwnedFd>,
    is_folder: bool,
}

impl<'a> Overlay<'a> {
    fn take(sandbox: &'a Sandbox) -> io::Result<Self> {
        let trees = sandbox.overlay().into_iter().map(|layer| {
            let tree = match layer {
                Layer::Writable(_) | Layer::Pinned(_) => Some(harmless_tree(layer.path())?),
                Layer::ReadOnly(path) => Some(read_only_tree(path)?),
                Layer::Protected(_) | Layer::Closed(_) | Layer::Concealed(_) => None,
            };
            Ok(Mount { layer, tree, is_folder: layer.path().is_dir() })
        });
        Ok(Self(trees.collect::<io::Result<_>>()?))
    }

    /// Outer layers come first, so that an inner one takes precedence.
    fn attach(self, base: &Path) -> io::Result<()> {
        for (index, mount) in self.0.iter().enumerate() {
            let path = mount.layer.path();
            match (&mount.tree, mount.layer) {
                (Some(_), _) if path == Path::new("/") => {}
                (Some(tree), _) => {
                    place(base, path, mount.is_folder)?;
                    attach(tree, &inside(base, path))?;
                }
                (None, Layer::Protected(_)) => protect(&inside(base, path))?,
                (None, Layer::Concealed(concealed)) => conceal(base, concealed)?,
                (None, _) => {
                    let inner = self.0[index + 1..].iter().filter(|inner| inner.layer.path().starts_with(path));
                    let inner = inner.filter(|inner| inner.tree.is_some());
                    close(base, path, &inner.collect::<Vec<_>>())?;
                }
            }
        }
        Ok(())
    }
}

/// Makes what is there read-only, and keeps it from being removed or replaced.
fn protect(path: &Path) -> io::Result<()> {
    match read_only_itself(path) {
        Ok(tree) => attach(&tree, path),
        // A path that the command cannot see needs no protection.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// Covers a folder with a copy of it, made of mounts and links, that lacks what is concealed.
fn conceal(base: &Path, concealed: &ConcealedFolder) -> io::Result<()> {
    let folder = inside(base, &concealed.folder);
    let entries = match concealed.visible_entries(&folder) {
        Ok(entries) => entries,
        // The folder is not visible to the command.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    // Cloned before the cover hides them. An entry that is gone by now is left out.
    let trees: Vec<_> = entries
        .into_iter()
        .map(|entry| match entry.kind {
            EntryKind::Link(_) => (entry, None),
            EntryKind::Folder | EntryKind::File => {
                let tree = read_only_tree(&entry.path).ok();
                (entry, tree)
            }
        })
        .collect();
    let cover = new_filesystem("tmpfs", &[("mode", "0755"), ("size", FRAME_SIZE)])?;
    attach(&cover, &folder)?;
    for (entry, tree) in &trees {
        match (&entry.kind, tree) {
            (EntryKind::Link(target), _) => symlink(target, &entry.path)?,
            (EntryKind::Folder, Some(_)) => fs::create_dir(&entry.path)?,
            (EntryKind::File, Some(_)) => drop(File::create(&entry.path)?),
            (_, None) => {}
        }
        if let Some(tree) = tree {
            attach(tree, &entry.path)?;
        }
    }
    make_read_only(cover.as_fd(), c"", false)
}

/// Covers a folder or file with an empty one that cannot be opened. Creates the mount points of the inner layers.
fn close(base: &Path, path: &Path, inner: &[&Mount]) -> io::Result<()> {
    let target = inside(base, path);
    match target.metadata() {
        Ok(found) if found.is_dir() => {
            let mode = if inner.is_empty() { "0000" } else { "0111" };
            let cover = new_filesystem("tmpfs", &[("mode", mode), ("size", FRAME_SIZE)])?;
            attach(&cover, &target)?;
            inner.iter().try_for_each(|inner| place(base, inner.layer.path(), inner.is_folder))?;
            make_read_only(cover.as_fd(), c"", false)
        }
        Ok(_) => {
            // The new `/dev` is ours alone at this point.
            let empty = inside(base, Path::new(COVER));
            fs::OpenOptions::new().write(true).create_new(true).mode(0o000).open(&empty)?;
            attach(&read_only_tree(&empty)?, &target)?;
            fs::remove_file(empty)
        }
        // A path that the command cannot see needs no cover.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// The mounts of readable roots, and the symlinks by which they were granted.
struct ReadableTrees {
    trees: Vec<(PathBuf, OwnedFd)>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl ReadableTrees {
    fn take(roots: &[ReadableRoot]) -> io::Result<Self> {
        let links = roots.iter().map(|root| (root.name.clone(), root.path.clone())).collect();
        let mut real: Vec<_> = roots.iter().map(|root| root.path.clone()).collect();
        real.sort();
        // Sorted, paths inside another one directly follow it.
        real.dedup_by(|inner, outer| inner.starts_with(outer));
        let trees = real.into_iter().map(|path| Ok((path.clone(), read_only_tree(&path)?)));
        Ok(Self { trees: trees.collect::<io::Result<_>>()?, links })
    }

    fn attach(self, base: &Path) -> io::Result<()> {
        for (path, tree) in &self.trees {
            place(base, path, path.is_dir())?;
            attach(tree, &inside(base, path))?;
        }
        for (name, real) in self.links.iter().filter(|(name, real)| name != real) {
            let name = inside(base, name);
            if let Some(folder) = name.parent().filter(|_| name.symlink_metadata().is_err()) {
                fs::create_dir_all(folder)?;
                symlink(real, name)?;
            }
        }
        Ok(())
    }
}

fn inside(base: &Path, path: &Path) -> PathBuf {
    base.join(path.strip_prefix("/").unwrap_or(path))
}

/// Creates the mount point if it does not exist.
fn place(base: &Path, path: &Path, is_folder: bool) -> io::Result<()> {
    let target = inside(base, path);
    if target.exists() {
        return Ok(());
    }
    if is_folder {
        return fs::create_dir_all(target);
    }
    if let Some(folder) = target.parent() {
        fs::create_dir_all(folder)?;
    }
    File::create(target).map(drop)
}

/// Makes a folder the root of the file system and unmounts the old one.
fn enter(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    make_read_only(CWD, c"/", false)
}

/// Mounts a new `/proc`, which hides processes outside of the sandbox, where the kernel allows it. Elsewhere they are
/// visible, and cannot be signalled.
fn fresh_proc(sandbox: &Sandbox) -> io::Result<()> {
    let Ok(processes) = new_filesystem("proc", &[]) else { return Ok(()) };
    attach(&processes, Path::new("/proc"))?;
    sandbox.limits.limit_numbers();
    for name in KERNEL_SWITCHES {
        let path = Path::new("/proc").join(name);
        if path.exists() {
            attach(&read_only_tree(&path)?, &path)?;
        }
    }
    Ok(())
}
