//! A `/dev` of its own for a confined command: the harmless devices and nothing else. The real one is not
//! enough even read-only, because devices can be written to all the same.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::Path;

use super::mounts::{FRAME_SIZE, attach, clone_tree, new_filesystem};
use super::sys::make_nosuid;

/// What `/dev/shm` holds at most, in bytes: as much as containers get.
pub(super) const SHARED_MEMORY: &str = "67108864";

const NODES: &[&str] = &["null", "zero", "full", "random", "urandom", "tty"];
const LINKS: &[(&str, &str)] = &[
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// The devices of the new `/dev`, cloned before the real one is out of reach.
pub(super) struct Devices(Vec<(&'static str, OwnedFd)>);

impl Devices {
    pub fn take() -> Self {
        let nodes = NODES.iter().filter_map(|name| {
            let node = clone_tree(&Path::new("/dev").join(name)).ok()?;
            make_nosuid(node.as_fd()).ok()?;
            Some((*name, node))
        });
        Self(nodes.collect())
    }

    /// Puts a new `/dev` in place, in a root that may not be ours yet.
    pub fn attach(self, dev: &Path) -> io::Result<()> {
        attach(&new_filesystem("tmpfs", &[("mode", "0755"), ("size", FRAME_SIZE)])?, dev)?;
        for (name, node) in &self.0 {
            File::create(dev.join(name))?;
            attach(node, &dev.join(name))?;
        }
        for (name, target) in LINKS {
            symlink(target, dev.join(name))?;
        }
        let shared = dev.join("shm");
        fs::create_dir(&shared)?;
        attach(&new_filesystem("tmpfs", &[("mode", "1777"), ("size", SHARED_MEMORY)])?, &shared)?;
        let terminals = dev.join("pts");
        fs::create_dir(&terminals)?;
        // Without new terminals most programs still work.
        if let Ok(mount) = new_filesystem("devpts", &[("ptmxmode", "0666"), ("mode", "620")]) {
            attach(&mount, &terminals)?;
        }
        Ok(())
    }
}
