//! The files that a confined command sees, in a mount namespace of its own: everything read-only, or only
//! some of it at all, with what may be written put back on top.

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
use super::layers::Layer;
use super::sys::make_read_only;
use super::{Sandbox, WritableRoot};

/// What the kernel lets its owner change through files, whoever asks; covered up for commands that run as root.
pub(super) const KERNEL_SWITCHES: &[&str] = &["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi"];

/// Where a new root is put together: some folder that is always there and that the new root replaces anyway.
const STAGE: &str = "/dev";

/// The file that covers others, for a moment.
const COVER: &str = "/dev/.closed";

/// To be called in a mount namespace of our own that hears nothing of others.
pub(super) fn confine(sandbox: &Sandbox, cwd: &Path) -> io::Result<()> {
    let overlay = Overlay::take(sandbox)?;
    let devices = Devices::take();
    let everything = sandbox.writable.iter().any(|root| root.path == Path::new("/"));
    match &sandbox.readable {
        Some(roots) => {
            let readable = Readable::take(roots)?;
            let stage = Path::new(STAGE);
            attach(&new_filesystem("tmpfs", &[("mode", "0755")])?, stage)?;
            readable.attach(stage)?;
            fs::create_dir_all(stage.join("dev"))?;
            devices.attach(&stage.join("dev"))?;
            overlay.attach(stage)?;
            fs::create_dir_all(stage.join("proc"))?;
            attach(&read_only_tree(Path::new("/proc"))?, &stage.join("proc"))?;
            enter(stage)?;
        }
        None => {
            if !everything {
                make_read_only(CWD, c"/", true)?;
            }
            devices.attach(Path::new("/dev"))?;
            overlay.attach(Path::new("/"))?;
        }
    }
    fresh_proc()?;
    // Folders that commands may not even see cannot be worked in.
    std::env::set_current_dir(cwd).map_err(|error| io::Error::other(format!("{}: {error}", cwd.display())))
}

const CLONE: OpenTreeFlags =
    OpenTreeFlags::OPEN_TREE_CLONE.union(OpenTreeFlags::OPEN_TREE_CLOEXEC).union(OpenTreeFlags::AT_RECURSIVE);

/// A copy of the mounts at a path, attached nowhere.
pub(super) fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    Ok(open_tree(CWD, path, CLONE)?)
}

fn read_only_tree(path: &Path) -> io::Result<OwnedFd> {
    read_only(clone_tree(path)?)
}

/// Of a link, the link and not what it leads to: attached to itself it still leads there, and can be neither
/// removed nor replaced.
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
    Ok(fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)?)
}

/// What is laid over the files, taken hold of while it still can be; nothing is to be seen of what is closed.
struct Overlay<'a>(Vec<Laid<'a>>);

struct Laid<'a> {
    layer: Layer<'a>,
    tree: Option<OwnedFd>,
    is_folder: bool,
}

impl<'a> Overlay<'a> {
    fn take(sandbox: &'a Sandbox) -> io::Result<Self> {
        let trees = sandbox.overlay().into_iter().map(|layer| {
            let tree = match layer {
                Layer::Writable(_) | Layer::Pinned(_) => Some(clone_tree(layer.path())?),
                Layer::ReadOnly(path) => Some(read_only_tree(path)?),
                Layer::Closed(_) => None,
            };
            Ok(Laid { layer, tree, is_folder: layer.path().is_dir() })
        });
        Ok(Self(trees.collect::<io::Result<_>>()?))
    }

    /// Outer layers come first, and each with what is protected in it, so that an inner one has the last word.
    fn attach(self, base: &Path) -> io::Result<()> {
        for (index, laid) in self.0.iter().enumerate() {
            let path = laid.layer.path();
            match &laid.tree {
                Some(_) if path == Path::new("/") => {}
                Some(tree) => {
                    place(base, path, laid.is_folder)?;
                    attach(tree, &inside(base, path))?;
                }
                None => {
                    let inner = self.0[index + 1..].iter().filter(|inner| inner.layer.path().starts_with(path));
                    close(base, path, &inner.collect::<Vec<_>>())?;
                }
            }
            if let Layer::Writable(root) = laid.layer {
                protect(base, root)?;
            }
        }
        Ok(())
    }
}

fn protect(base: &Path, root: &WritableRoot) -> io::Result<()> {
    for kept in root.protected.iter().chain(&root.absent) {
        let kept = inside(base, kept);
        match read_only_itself(&kept) {
            Ok(tree) => attach(&tree, &kept)?,
            // Somewhere that cannot be reached cannot be written to either.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Covers a folder or file with an empty one that nobody may open. What is to be put inside later finds its place.
fn close(base: &Path, path: &Path, inner: &[&Laid]) -> io::Result<()> {
    let target = inside(base, path);
    match target.metadata() {
        Ok(found) if found.is_dir() => {
            let mode = if inner.is_empty() { "0000" } else { "0111" };
            let cover = new_filesystem("tmpfs", &[("mode", mode)])?;
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
        // What cannot be seen anyway needs no cover.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

/// What may be read, and by which other names it is known.
struct Readable {
    trees: Vec<(PathBuf, OwnedFd)>,
    links: Vec<(PathBuf, PathBuf)>,
}

impl Readable {
    /// What does not exist is left out.
    fn take(roots: &[PathBuf]) -> io::Result<Self> {
        let found = roots.iter().filter_map(|root| Some((root.clone(), root.canonicalize().ok()?)));
        let links: Vec<_> = found.collect();
        let mut real: Vec<_> = links.iter().map(|(_, real)| real.clone()).collect();
        real.sort();
        // Sorted, what lies inside another comes right behind it.
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

/// Makes sure that there is something to attach to.
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

/// Makes a folder the root of everything and forgets the old one.
fn enter(root: &Path) -> io::Result<()> {
    std::env::set_current_dir(root)?;
    rustix::process::pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    std::env::set_current_dir("/")?;
    make_read_only(CWD, c"/", false)
}

/// Processes of others stay out of sight where the kernel lets us; elsewhere they can be seen, not touched.
fn fresh_proc() -> io::Result<()> {
    let Ok(processes) = new_filesystem("proc", &[]) else { return Ok(()) };
    attach(&processes, Path::new("/proc"))?;
    for name in KERNEL_SWITCHES {
        let path = Path::new("/proc").join(name);
        if path.exists() {
            attach(&read_only_tree(&path)?, &path)?;
        }
    }
    Ok(())
}
