//! Replacing a file as a whole, one writer at a time. Programs of this kind take a lock; other programs do
//! not, so what they wrote in the meantime is noticed and kept.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

use crate::file::MAX_BYTES;

/// How long another writer is waited for. Writing takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// The mode of a file that did not exist: it may hold secrets.
const PRIVATE: u32 = loomd_private::FILE;

/// How many links may lead to the file.
const MAX_LINKS: usize = 40;

/// The right to write, until it is dropped or the process ends.
pub(super) struct Lock(File);

impl Lock {
    /// The lock of a home.
    pub fn take(home: &Path) -> io::Result<Self> {
        let folder = home.join("loomd");
        loomd_private::create_dir_all(&folder)?;
        let path = folder.join("config.lock");
        let file = loomd_private::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let start = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if start.elapsed() < PATIENCE => std::thread::sleep(LOOK_AGAIN),
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(io::Error::new(
                        io::ErrorKind::WouldBlock,
                        "another program is writing the configuration",
                    ));
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // A child process that is just being started may share the descriptor for a moment.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// What became of an attempt to save.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Saved {
    Done,
    /// Somebody else wrote first; the file is as they left it.
    Changed,
}

/// Replaces the file, whose text was `before` when it was read, or missing.
pub(super) fn replace(path: &Path, before: Option<&str>, text: &str) -> io::Result<Saved> {
    let path = target(path);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    loomd_private::create_dir_all(folder)?;
    let mode = fs::metadata(&path).map_or(PRIVATE, |metadata| metadata.permissions().mode() & 0o7777);
    let temporary = Temporary::create(folder, text, mode)?;
    if before.is_none() {
        // Fails when the file is there by now.
        return match renameat_with(CWD, &temporary.0, CWD, &path, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(Saved::Done),
            Err(rustix::io::Errno::EXIST) => Ok(Saved::Changed),
            Err(_) if path.exists() => Ok(Saved::Changed),
            Err(_) => fs::rename(&temporary.0, &path).map(|()| Saved::Done),
        };
    }
    if read(&path).as_deref() != before {
        return Ok(Saved::Changed);
    }
    // Both change places at once, so what was there cannot get lost between looking and renaming.
    if renameat_with(CWD, &temporary.0, CWD, &path, RenameFlags::EXCHANGE).is_err() {
        return fs::rename(&temporary.0, &path).map(|()| Saved::Done);
    }
    if read(&temporary.0).as_deref() == before {
        return Ok(Saved::Done);
    }
    fs::rename(&temporary.0, &path)?;
    Ok(Saved::Changed)
}

/// What a file says now; `before` was read within the same limit.
fn read(path: &Path) -> Option<String> {
    loomd_regular::read_to_string(path, MAX_BYTES).ok()
}

/// The file that links lead to. Links in a circle lead nowhere: the first of them is the file then.
fn target(path: &Path) -> PathBuf {
    let mut current = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        match fs::read_link(&current) {
            Ok(link) => current = current.parent().unwrap_or(Path::new("/")).join(link),
            Err(_) => return current,
        }
    }
    path.into()
}

/// A file beside the one that it is to replace; removed when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn create(folder: &Path, text: &str, mode: u32) -> io::Result<Self> {
        let path = folder.join(format!(".config.toml.{}", uuid::Uuid::now_v7().simple()));
        let mut file = loomd_private::options().write(true).create_new(true).open(&path)?;
        let temporary = Self(path);
        file.write_all(text.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.sync_all()?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_mode_and_behind_its_links() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("real"), "old").unwrap();
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o644)).unwrap();
        symlink("real", at("one")).unwrap();
        symlink("one", at("two")).unwrap();
        assert_eq!(replace(&at("two"), Some("old"), "new").unwrap(), Saved::Done);
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "new");
        assert_eq!(fs::metadata(at("real")).unwrap().permissions().mode() & 0o7777, 0o644);
        assert_eq!(fs::read_link(at("two")).unwrap(), Path::new("one"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left behind");
    }

    #[test]
    fn a_new_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert_eq!(replace(&path, None, "new").unwrap(), Saved::Done);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn what_somebody_else_wrote_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "theirs").unwrap();
        assert_eq!(replace(&path, Some("old"), "mine").unwrap(), Saved::Changed);
        assert_eq!(replace(&path, None, "mine").unwrap(), Saved::Changed);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn links_in_a_circle_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        symlink("g", &path).unwrap();
        symlink("f", dir.path().join("g")).unwrap();
        let saved = replace(&path, None, "new");
        assert!(saved.is_ok(), "{saved:?}");
    }
}
