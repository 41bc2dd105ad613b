//! Atomic replacement of a file, one writer at a time. Programs of this kind take a lock; other programs do not, so
//! their concurrent changes are detected and kept.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, FlockOperation, RenameFlags, flock, renameat_with};

use crate::file::MAX_BYTES;

/// How long to wait for another writer. Writing takes milliseconds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(5);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The mode of a new file, which may hold secrets.
const PRIVATE: u32 = loomd_private::FILE;

/// The limit on symlinks to follow.
const MAX_LINKS: usize = 40;

/// The exclusive lock of writers, until it is dropped or the process ends.
pub(super) struct Lock(File);

impl Lock {
    /// Takes the lock of a home.
    pub fn take(home: &Path) -> io::Result<Self> {
        let folder = home.join("loomd");
        loomd_private::create_dir_all(&folder)?;
        let path = folder.join("config.lock");
        let file = loomd_private::options().read(true).write(true).create(true).truncate(false).open(path)?;
        let start = Instant::now();
        loop {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(Self(file)),
                Err(rustix::io::Errno::WOULDBLOCK) if start.elapsed() < LOCK_TIMEOUT => {
                    std::thread::sleep(LOCK_POLL_INTERVAL)
                }
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
        // A child process that is just being started may share the descriptor for a moment, so closing alone does not
        // unlock.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// The outcome of an attempt to save.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SaveOutcome {
    Saved,
    /// Another program wrote first; its version is kept.
    Conflict,
}

/// Replaces a file whose text was `before` when it was read; `None` if it was missing.
pub(super) fn replace(path: &Path, before: Option<&str>, text: &str) -> io::Result<SaveOutcome> {
    let path = target(path);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    loomd_private::create_dir_all(folder)?;
    let mode = fs::metadata(&path).map_or(PRIVATE, |metadata| metadata.permissions().mode() & 0o7777);
    let temporary = TemporaryFile::create(folder, text, mode)?;
    if before.is_none() {
        // Fails if the file exists by now.
        return match renameat_with(CWD, &temporary.0, CWD, &path, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(SaveOutcome::Saved),
            Err(rustix::io::Errno::EXIST) => Ok(SaveOutcome::Conflict),
            Err(_) if path.exists() => Ok(SaveOutcome::Conflict),
            Err(_) => fs::rename(&temporary.0, &path).map(|()| SaveOutcome::Saved),
        };
    }
    if read(&path).as_deref() != before {
        return Ok(SaveOutcome::Conflict);
    }
    // Exchanges both files atomically, so a concurrent change cannot get lost between the check and the rename.
    if renameat_with(CWD, &temporary.0, CWD, &path, RenameFlags::EXCHANGE).is_err() {
        return fs::rename(&temporary.0, &path).map(|()| SaveOutcome::Saved);
    }
    if read(&temporary.0).as_deref() == before {
        return Ok(SaveOutcome::Saved);
    }
    fs::rename(&temporary.0, &path)?;
    Ok(SaveOutcome::Conflict)
}

/// Reads the file as `before` was read, within the same limit.
fn read(path: &Path) -> Option<String> {
    loomd_regular::read_to_string(path, MAX_BYTES).ok()
}

/// Resolves symlinks. If they form a cycle, the first one is replaced.
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

/// A temporary file next to its target, removed on drop.
struct TemporaryFile(PathBuf);

impl TemporaryFile {
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

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn replacing_keeps_the_mode_and_follows_symlinks() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("real"), "old").unwrap();
        fs::set_permissions(at("real"), fs::Permissions::from_mode(0o644)).unwrap();
        symlink("real", at("one")).unwrap();
        symlink("one", at("two")).unwrap();
        assert_eq!(replace(&at("two"), Some("old"), "new").unwrap(), SaveOutcome::Saved);
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "new");
        assert_eq!(fs::metadata(at("real")).unwrap().permissions().mode() & 0o7777, 0o644);
        assert_eq!(fs::read_link(at("two")).unwrap(), Path::new("one"));
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left behind");
    }

    #[test]
    fn a_new_file_is_private() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        assert_eq!(replace(&path, None, "new").unwrap(), SaveOutcome::Saved);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o600);
    }

    #[test]
    fn a_concurrent_change_is_kept_and_reported_as_a_conflict() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        fs::write(&path, "theirs").unwrap();
        assert_eq!(replace(&path, Some("old"), "mine").unwrap(), SaveOutcome::Conflict);
        assert_eq!(replace(&path, None, "mine").unwrap(), SaveOutcome::Conflict);
        assert_eq!(fs::read_to_string(&path).unwrap(), "theirs");
    }

    #[test]
    fn a_symlink_cycle_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        symlink("g", &path).unwrap();
        symlink("f", dir.path().join("g")).unwrap();
        let saved = replace(&path, None, "new");
        assert!(saved.is_ok(), "{saved:?}");
    }
}
