//! One writer per thread, also between processes. A lease is an OS lock on a small file that dies with its holder. The
//! file holds the process, a token that grows with every holder, so that a writer whose lease was taken over fails
//! instead of writing, and the epoch.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use uuid::Uuid;

use crate::ThreadId;
use crate::error::{Error, Result};
use crate::file::descriptors;
use crate::path::OWN;

/// The right to write to one thread, until it is dropped.
#[derive(Debug)]
pub(crate) struct FileLease {
    id: ThreadId,
    content: Content,
    file: File,
    path: PathBuf,
}

/// What a lease file holds: numbers of fixed width, so that they are never half-read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Content {
    pid: u32,
    /// Grows with every holder.
    token: u64,
    /// `None` when the last holder was a release that has no epochs.
    takeover: Option<Takeover>,
}

/// The second line of a lease file. It counts only with the token it was written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Takeover {
    epoch: u64,
    token: u64,
    /// The reader that took the lease.
    reader: Uuid,
}

/// `pid token\n`
const FIRST_LINE: usize = 10 + 1 + 20 + 1;
/// `epoch token reader\n`
const SECOND_LINE: usize = 20 + 1 + 20 + 1 + 32 + 1;
/// How often a lease file that is deleted meanwhile is opened again.
const ATTEMPTS: usize = 100;

impl FileLease {
    /// Takes the lease for a reader. Fails with [`Error::Held`] when there is another holder, in this process or another.
    pub(crate) fn take(home: &Path, id: ThreadId, reader: Uuid) -> Result<Self> {
        let path = lease_path(home, id);
        for _ in 0..ATTEMPTS {
            let file = open(&path).map_err(Error::io(&path))?;
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => {
                    return Err(Error::Held { id, pid: Content::read(&file).map(|content| content.pid) });
                }
                Err(error) => return Err(Error::io(&path)(error.into())),
            }
            // The lock of a file that was deleted before it was locked does not exclude others.
            if is_in_place(&file, &path) {
                let content = Content::read(&file).map_or_else(|| Content::first(reader), |last| last.next(reader));
                file.write_all_at(content.encode().as_bytes(), 0).map_err(Error::io(&path))?;
                return Ok(Self { id, content, file, path });
            }
        }
        Err(Error::Held { id, pid: None })
    }

    /// Grows whenever another reader takes the lease.
    pub(crate) fn epoch(&self) -> u64 {
        self.content.takeover.map_or(0, |takeover| takeover.epoch)
    }

    /// Fails when another holder has taken the thread over.
    pub(crate) fn check(&self) -> Result<()> {
        let token = Content::read(&self.file).map(|content| content.token);
        let valid = token == Some(self.content.token) && is_in_place(&self.file, &self.path);
        if valid { Ok(()) } else { Err(Error::StaleLease { id: self.id }) }
    }

    /// Removes the lease file of a deleted thread.
    pub(crate) fn remove_file(&self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Drop for FileLease {
    fn drop(&mut self) {
        // A child process that is just being started may share the descriptor for a moment.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

impl Content {
    /// The content for the first holder that is known. Both numbers are larger than any that was counted up.
    fn first(reader: Uuid) -> Self {
        let token = u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap_or(1);
        Self { pid: std::process::id(), token, takeover: Some(Takeover { epoch: now(), token, reader }) }
    }

    /// The content for the next holder.
    fn next(self, reader: Uuid) -> Self {
        let token = self.token.saturating_add(1);
        let epoch = match self.takeover {
            Some(last) if last.reader == reader && last.token == self.token => last.epoch,
            // The clock covers what a crash of the machine may have kept from the disk.
            Some(last) => last.epoch.saturating_add(1).max(now()),
            None => now(),
        };
        Self { pid: std::process::id(), token, takeover: Some(Takeover { epoch, token, reader }) }
    }

    fn encode(&self) -> String {
        let mut text = format!("{:010} {:020}\n", self.pid, self.token);
        if let Some(Takeover { epoch, token, reader }) = &self.takeover {
            text.push_str(&format!("{epoch:020} {token:020} {:032x}\n", reader.as_u128()));
        }
        text
    }

    /// `None` when the file holds nothing that can be read.
    fn read(file: &File) -> Option<Self> {
        let mut bytes = [0; FIRST_LINE + SECOND_LINE];
        let mut len = 0;
        while len < bytes.len() {
            match file.read_at(&mut bytes[len..], len as u64) {
                Ok(0) => break,
                Ok(count) => len += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
        let (first, second) = bytes[..len].split_at_checked(FIRST_LINE)?;
        let (pid, token) = std::str::from_utf8(first).ok()?.trim_end().split_once(' ')?;
        Some(Self { pid: pid.parse().ok()?, token: token.parse().ok()?, takeover: Takeover::parse(second) })
    }
}

impl Takeover {
    fn parse(line: &[u8]) -> Option<Self> {
        let mut fields = std::str::from_utf8(line).ok()?.strip_suffix('\n')?.split(' ');
        let (epoch, token, reader) = (fields.next()?, fields.next()?, fields.next()?);
        let reader = Uuid::from_u128(u128::from_str_radix(reader, 16).ok()?);
        Some(Self { epoch: epoch.parse().ok()?, token: token.parse().ok()?, reader })
    }
}

/// Unix seconds.
fn now() -> u64 {
    u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(1)
}

fn is_in_place(file: &File, path: &Path) -> bool {
    let (Ok(ours), Ok(there)) = (file.metadata(), std::fs::metadata(path)) else { return false };
    (ours.dev(), ours.ino()) == (there.dev(), there.ino())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    struct World {
        home: tempfile::TempDir,
        id: ThreadId,
    }

    impl World {
        fn new() -> Self {
            Self { home: tempfile::tempdir().unwrap(), id: ThreadId::new() }
        }

        fn take(&self, reader: u128) -> Result<FileLease> {
            FileLease::take(self.home.path(), self.id, Uuid::from_u128(reader))
        }

        fn path(&self) -> PathBuf {
            lease_path(self.home.path(), self.id)
        }
    }

    #[test]
    fn a_lease_has_one_holder_at_a_time_and_its_token_grows() {
        let world = World::new();
        let first = world.take(1).unwrap();
        let held = world.take(1).unwrap_err();
        assert!(matches!(held, Error::Held { pid: Some(pid), .. } if pid == std::process::id()), "{held}");
        FileLease::take(world.home.path(), ThreadId::new(), Uuid::nil()).unwrap();
        let token = first.content.token;
        drop(first);
        assert!(world.take(1).unwrap().content.token > token);
    }

    #[test]
    fn a_lease_that_was_taken_over_is_stale() {
        let world = World::new();
        let first = world.take(1).unwrap();
        first.check().unwrap();
        std::fs::remove_file(world.path()).unwrap();
        assert!(matches!(first.check(), Err(Error::StaleLease { .. })));
        let second = world.take(2).unwrap();
        second.check().unwrap();
        assert!(matches!(first.check(), Err(Error::StaleLease { .. })));
    }

    #[test]
    fn a_damaged_lease_file_does_not_keep_a_thread_from_being_written() {
        let world = World::new();
        let (token, epoch) = world.take(1).map(|lease| (lease.content.token, lease.epoch())).unwrap();
        std::fs::write(world.path(), b"\xff\xfe").unwrap();
        let lease = world.take(2).unwrap();
        lease.check().unwrap();
        assert!(lease.content.token >= token && lease.epoch() >= epoch);
    }

    #[test]
    fn an_epoch_outlives_the_process_and_grows_also_after_a_holder_that_knows_no_epochs() {
        let world = World::new();
        let epoch = world.take(1).unwrap().epoch();
        let content = |lease: &FileLease| std::fs::read_to_string(&lease.path).unwrap();
        let same = world.take(1).unwrap();
        assert_eq!(same.epoch(), epoch);
        assert!(content(&same).lines().nth(1).unwrap().starts_with(&format!("{epoch:020} ")), "{}", content(&same));
        // An older release writes the first line only.
        let older = format!("{:010} {:020}\n", 7, same.content.token + 1);
        same.file.write_all_at(older.as_bytes(), 0).unwrap();
        drop(same);
        assert!(world.take(1).unwrap().epoch() > epoch);
    }

    #[test]
    fn an_epoch_grows_when_the_machine_lost_the_last_one() {
        let world = World::new();
        let epoch = world.take(1).unwrap().epoch();
        assert!(epoch.abs_diff(now()) < 60, "{epoch}");
        let far = Content {
            pid: 1,
            token: 5,
            takeover: Some(Takeover { epoch: u64::MAX - 1, token: 5, reader: Uuid::nil() }),
        };
        std::fs::write(world.path(), far.encode()).unwrap();
        assert_eq!(world.take(1).unwrap().epoch(), u64::MAX, "a clock that went back does not lower it");
    }
}
