//! The folders and files that a sandbox grants, each resolved once and held open: commands may access what a path named
//! when it was granted, also when a command changes the path later.

use std::fs::{self, File, Metadata};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{Mode, OFlags};
use serde::{Deserialize, Serialize};

/// The most paths per thread; beyond it the oldest is dropped. A turn adds only paths that it names for the first time.
const MOST: usize = 256;

/// Opens a path without the right to read it.
#[cfg(target_os = "linux")]
const HOLD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
const HOLD: OFlags = OFlags::from_bits_retain(libc::O_EVTONLY as u32);

/// The device and inode of a granted folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

/// A path without links. A folder is kept open, so that its inode number names nothing else as long as this lives.
#[derive(Clone, Debug)]
pub(super) struct Root {
    pub(super) path: PathBuf,
    /// `None` for files, which programs replace when they save them.
    pub(super) identity: Option<Identity>,
    _held: Option<Arc<OwnedFd>>,
}

impl PartialEq for Root {
    fn eq(&self, other: &Self) -> bool {
        (&self.path, self.identity) == (&other.path, other.identity)
    }
}

impl Eq for Root {}

impl Root {
    /// `None` when the path does not exist or cannot be opened.
    pub fn resolve(path: &Path) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let held = rustix::fs::open(&path, HOLD | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty()).ok()?;
        let metadata = File::from(held.try_clone().ok()?).metadata().ok()?;
        let identity = Identity::of_folder(&metadata);
        Some(Self { path, identity, _held: identity.map(|_| Arc::new(held)) })
    }
}

impl Identity {
    fn of_folder(metadata: &Metadata) -> Option<Self> {
        metadata.is_dir().then(|| Self { device: metadata.dev(), inode: metadata.ino() })
    }
}

/// Fails unless `path` is unchanged: a folder must be the same one, a file must be reached without links.
pub(super) fn check(path: &Path, identity: Option<Identity>) -> io::Result<()> {
    let same = match identity {
        Some(identity) => fs::symlink_metadata(path).is_ok_and(|found| Identity::of_folder(&found) == Some(identity)),
        None => path.canonicalize().is_ok_and(|real| real == path),
    };
    if same {
        return Ok(());
    }
    let message = format!("{} is not what it was when access to it was granted", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
}

/// A path that access is granted to, and what it named at that moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    pub(super) path: PathBuf,
    /// `None`: the path did not exist.
    pub(super) root: Option<Root>,
}

impl Grant {
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let root = Root::resolve(&path);
        Self { path, root }
    }

    /// The path as it was named.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What the paths of a thread's policies resolved to when they were first used.
#[derive(Debug, Default)]
pub struct Roots(Mutex<Vec<Grant>>);

impl Roots {
    pub(super) fn find(&self, path: &Path) -> Grant {
        let mut all = self.0.lock();
        if let Some(known) = all.iter().find(|known| known.path == path) {
            return known.clone();
        }
        let grant = Grant::new(path);
        if all.len() == MOST {
            all.remove(0);
        }
        all.push(grant.clone());
        grant
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_root_is_resolved_once_and_a_replaced_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (real, link, other) = (base.join("real"), base.join("link"), base.join("other"));
        fs::create_dir(&real).unwrap();
        fs::create_dir(&other).unwrap();
        symlink(&real, &link).unwrap();
        let roots = Roots::default();
        let held = |path: &Path| roots.find(path).root;
        assert_eq!(held(&link).unwrap().path, real);
        fs::remove_file(&link).unwrap();
        symlink(&other, &link).unwrap();
        let root = held(&link).unwrap();
        assert_eq!(root.path, real);
        check(&root.path, root.identity).unwrap();

        fs::rename(&real, base.join("moved")).unwrap();
        symlink(&other, &real).unwrap();
        let error = check(&root.path, root.identity).unwrap_err().to_string();
        assert_eq!(error, format!("{} is not what it was when access to it was granted", real.display()));
        fs::remove_file(&real).unwrap();
        fs::create_dir(&real).unwrap();
        check(&root.path, root.identity).unwrap_err();
    }

    #[test]
    fn a_granted_file_may_be_replaced_but_not_by_a_symlink() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (file, other) = (base.join("file"), base.join("other"));
        fs::write(&file, "").unwrap();
        fs::write(&other, "").unwrap();
        let root = Root::resolve(&file).unwrap();
        fs::write(base.join("new"), "").unwrap();
        fs::rename(base.join("new"), &file).unwrap();
        check(&root.path, root.identity).unwrap();
        fs::remove_file(&file).unwrap();
        symlink(&other, &file).unwrap();
        check(&root.path, root.identity).unwrap_err();
    }
}
