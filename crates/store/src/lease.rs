//! One writer per thread, also between processes. A lease is an OS lock on a small file that dies with its
//! holder; the file names the holder and a token that grows with every holder, so that a writer whose lease
//! was taken over is told so instead of writing.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};

use crate::ThreadId;
use crate::descriptors;
use crate::error::{Error, Result};
use crate::path::OWN;

/// The right to write to one thread, until it is dropped.
#[derive(Debug)]
pub struct Lease {
    id: ThreadId,
    token: u64,
    file: File,
    path: PathBuf,
}

/// Two numbers of fixed width: written at once, they are never half-read.
const CONTENT: usize = 10 + 1 + 20 + 1;

impl Lease {
    /// Fails with [`Error::Held`] when there is another holder, in this process or another.
    pub(crate) fn take(home: &Path, id: ThreadId) -> Result<Self> {
        let path = lease_path(home, id);
        // Taking a lease on a file that is deleted meanwhile would be taking nothing.
        for _ in 0..ATTEMPTS {
            let file = open(&path).map_err(Error::io(&path))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Error::Held { id, pid: read(&file).map(|(pid, _)| pid) });
                }
                Err(error) => return Err(Error::io(&path)(error.into())),
            }
            let mut lease = Self { id, token: 0, file, path: path.clone() };
            if lease.is_in_place() {
                lease.token = read(&lease.file).map_or_else(first_token, |(_, token)| token.saturating_add(1));
                let content = format!("{:010} {:020}\n", std::process::id(), lease.token);
                lease.file.write_all_at(content.as_bytes(), 0).map_err(Error::io(&path))?;
                return Ok(lease);
            }
        }
        Err(Error::Held { id, pid: None })
    }

    /// The thread that may be written to.
    pub fn id(&self) -> ThreadId {
        self.id
    }

    /// Grows with every holder of the thread's lease.
    pub fn token(&self) -> u64 {
        self.token
    }

    /// Fails when somebody else has taken the thread over.
    pub(crate) fn check(&self) -> Result<()> {
        let valid = self.is_in_place() && read(&self.file).is_some_and(|(_, token)| token == self.token);
        if valid { Ok(()) } else { Err(Error::StaleLease { id: self.id }) }
    }

    /// Removes the lease file of a deleted thread.
    pub(crate) fn forget(&self) {
        let _ = std::fs::remove_file(&self.path);
    }

    fn is_in_place(&self) -> bool {
        let (Ok(ours), Ok(there)) = (self.file.metadata(), std::fs::metadata(&self.path)) else { return false };
        (ours.dev(), ours.ino()) == (there.dev(), there.ino())
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        // A child process that is just being started may share the descriptor for a moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

const ATTEMPTS: usize = 100;

fn lease_path(home: &Path, id: ThreadId) -> PathBuf {
    home.join(OWN).join("leases").join(id.to_string())
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = loomd_private::options();
    options.read(true).write(true).create(true).truncate(false);
    match descriptors::open(|| options.open(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if let Some(folder) = path.parent() {
                loomd_private::create_dir_all(folder)?;
            }
            options.open(path)
        }
        opened => opened,
    }
}

/// Process and token of the last holder.
fn read(file: &File) -> Option<(u32, u64)> {
    let mut content = [0; CONTENT];
    file.read_exact_at(&mut content, 0).ok()?;
    let (pid, token) = std::str::from_utf8(&content).ok()?.trim_end().split_once(' ')?;
    Some((pid.parse().ok()?, token.parse().ok()?))
}

/// Without a last token, one that is larger than any that was counted up.
fn first_token() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_holder_at_a_time_and_tokens_grow() {
        let home = tempfile::tempdir().unwrap();
        let id = ThreadId::new();
        let first = Lease::take(home.path(), id).unwrap();
        let held = Lease::take(home.path(), id).unwrap_err();
        assert!(matches!(held, Error::Held { pid: Some(pid), .. } if pid == std::process::id()), "{held}");
        Lease::take(home.path(), ThreadId::new()).unwrap();
        let token = first.token();
        drop(first);
        assert!(Lease::take(home.path(), id).unwrap().token() > token);
    }

    #[test]
    fn a_lease_that_was_taken_over_is_stale() {
        let home = tempfile::tempdir().unwrap();
        let id = ThreadId::new();
        let first = Lease::take(home.path(), id).unwrap();
        first.check().unwrap();
        std::fs::remove_file(lease_path(home.path(), id)).unwrap();
        assert!(matches!(first.check(), Err(Error::StaleLease { .. })));
        let second = Lease::take(home.path(), id).unwrap();
        second.check().unwrap();
        assert!(matches!(first.check(), Err(Error::StaleLease { .. })));
    }

    #[test]
    fn a_damaged_lease_file_is_no_obstacle() {
        let home = tempfile::tempdir().unwrap();
        let id = ThreadId::new();
        let token = Lease::take(home.path(), id).unwrap().token();
        std::fs::write(lease_path(home.path(), id), b"\xff\xfe").unwrap();
        let lease = Lease::take(home.path(), id).unwrap();
        lease.check().unwrap();
        assert!(lease.token() >= token);
    }
}
