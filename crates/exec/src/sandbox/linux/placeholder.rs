//! Names that commands must not create in a writable folder. Only what exists can be protected, so an empty folder
//! takes the name while any confined command runs there, and is removed afterwards, even when the command and its
//! helper are killed.

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

use super::sys::{Fork, exit, fork};

/// The mode of a placeholder, by which it is recognised: ordinary folders are writable by their owner.
const MODE: u32 = 0o555;
/// Another command may remove the folder just when we find it.
const ATTEMPTS: usize = 8;
/// A process that ends may close the pipe a little before it gives up the lock. When the lock is still held
/// after that, another command runs here, and its cleaner will be the one to remove the folder.
const LOCK_ATTEMPTS: usize = 100;
const LOCK_PAUSE: Duration = Duration::from_millis(5);

/// Names that are taken as long as this is open.
#[derive(Default)]
pub(super) struct Placeholders {
    /// The write end of the cleaner's pipe, which closes with the last process of the sandbox.
    _held: Option<OwnedFd>,
    _locks: Vec<File>,
}

/// Takes the names, and starts a process that gives them back when the helper and what it started are gone.
pub(super) fn take<'a>(names: impl Iterator<Item = &'a PathBuf>) -> io::Result<Placeholders> {
    let (names, locks): (Vec<_>, Vec<_>) = names.filter_map(|name| Some((name, hold(name)?))).unzip();
    if names.is_empty() {
        return Ok(Placeholders::default());
    }
    let (ended, held) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork(0)? {
        Fork::Parent(_) => Ok(Placeholders { _held: Some(held), _locks: locks }),
        Fork::Child => {
            drop((held, locks));
            clean(ended, &names)
        }
    }
}

/// Creates the folder, or shares it with other commands, and locks it while it is in use. `None` when the name exists
/// and is no placeholder: then it is protected as it is.
fn hold(name: &Path) -> Option<File> {
    for _ in 0..ATTEMPTS {
        let _ = DirBuilder::new().mode(MODE).create(name);
        let folder = File::open(name).ok().filter(|_| is_placeholder(name))?;
        flock(&folder, FlockOperation::LockShared).ok()?;
        // Between finding and locking it, it may have been removed.
        if fs::metadata(name).is_ok_and(|now| folder.metadata().is_ok_and(|then| now.ino() == then.ino())) {
            return Some(folder);
        }
    }
    None
}

fn is_placeholder(name: &Path) -> bool {
    let empty = fs::read_dir(name).is_ok_and(|mut entries| entries.next().is_none());
    empty && fs::symlink_metadata(name).is_ok_and(|data| data.is_dir() && data.mode() & 0o777 == MODE)
}

/// Whether no other command uses the folder. Waits a moment before it returns `false`.
fn lock_alone(folder: &File) -> bool {
    let alone = flock(folder, FlockOperation::NonBlockingLockExclusive).is_ok();
    if !alone {
        sleep(LOCK_PAUSE);
    }
    alone
}

fn clean(ended: OwnedFd, names: &[&PathBuf]) -> ! {
    // A kill of the command's process group must not reach the cleaner, and its output must not stay open.
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
            && is_placeholder(name)
        {
            let _ = fs::remove_dir(name);
        }
    }
    exit(0)
}
