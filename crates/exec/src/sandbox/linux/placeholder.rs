//! Names that must not come to be in a writable folder. Only what exists can be protected, so an empty folder
//! takes the name for as long as any confined command runs there, and is removed afterwards, even when the
//! command and its helper are killed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};

use super::sys::{Forked, exit, fork};

/// Nobody makes folders that even their owner cannot write to, so it tells ours from theirs.
const MODE: u32 = 0o555;
/// Another command may remove the folder just when we find it.
const ATTEMPTS: usize = 8;
/// A process that ends may close the pipe a little before it gives up the lock. When the lock is still held
/// after that, another command runs here, and its cleaner will be the one to remove the folder.
const LOCK_ATTEMPTS: usize = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Names that are taken as long as this is open.
#[derive(Default)]
pub(super) struct Taken {
    /// The end of the pipe tells the cleaner that all is over.
    _held: Option<OwnedFd>,
    _locks: Vec<File>,
}

/// Takes the names, and starts a process that gives them back when the helper and what it started are gone.
pub(super) fn take<'a>(names: impl Iterator<Item = &'a PathBuf>) -> io::Result<Taken> {
    let (names, locks): (Vec<_>, Vec<_>) = names.filter_map(|name| Some((name, take_one(name)?))).unzip();
    if names.is_empty() {
        return Ok(Taken::default());
    }
    let (ended, held) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork(0)? {
        Forked::Parent(_) => Ok(Taken { _held: Some(held), _locks: locks }),
        Forked::Child => {
            drop((held, locks));
            clean(ended, &names)
        }
    }
}

/// Makes the folder, or joins those who use it; the lock says that it is in use. `None` when the name is taken
/// by something that is not ours: then it is there already.
fn take_one(name: &Path) -> Option<File> {
    for _ in 0..ATTEMPTS {
        let _ = DirBuilder::new().mode(MODE).create(name);
        let folder = File::open(name).ok().filter(|_| is_ours(name))?;
        flock(&folder, FlockOperation::LockShared).ok()?;
        // Between finding and locking it, it may have been removed.
        if fs::metadata(name).is_ok_and(|now| folder.metadata().is_ok_and(|then| now.ino() == then.ino())) {
            return Some(folder);
        }
    }
    None
}

fn is_ours(name: &Path) -> bool {
    let empty = fs::read_dir(name).is_ok_and(|mut entries| entries.next().is_none());
    empty && fs::symlink_metadata(name).is_ok_and(|data| data.is_dir() && data.mode() & 0o777 == MODE)
}

/// Whether nobody else uses the folder; waits a moment when somebody does.
fn lock_alone(folder: &File) -> bool {
    let alone = flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
    if !alone {
        sleep(LOCK_PAUSE);
    }
    alone
}

fn clean(ended: OwnedFd, names: &[&PathBuf]) -> ! {
    // Whoever kills the command's group or waits for the end of its output must not meet us.
    let _ = rustix::process::setsid();
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    if let Ok(nothing) = nothing {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
    let mut buffer = [0; 1];
    while let Err(Errno::INTR) = rustix::io::read(&ended, &mut buffer) {}
    for name in names {
        if let Ok(folder) = File::open(name)
            && (0..LOCK_ATTEMPTS).any(|_| lock_alone(&folder))
            && is_ours(name)
        {
            let _ = fs::remove_dir(name);
        }
    }
    exit(0)
}
