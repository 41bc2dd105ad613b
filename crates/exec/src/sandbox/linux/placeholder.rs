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
use crate::helper::CLEANER;

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

/// Takes the names, after starting a process that gives them back when the helper and what it started are gone. That
/// process is not killed with them (see [`CLEANER`]), and it is ready before any name is taken.
pub(super) fn take<'a>(names: impl Iterator<Item = &'a PathBuf>) -> io::Result<Placeholders> {
    let names: Vec<_> = names.filter(|name| is_free(name)).collect();
    if names.is_empty() {
        return Ok(Placeholders::default());
    }
    let (ended, held) = pipe_with(PipeFlags::CLOEXEC)?;
    let (ready, announced) = pipe_with(PipeFlags::CLOEXEC)?;
    match fork(0)? {
        Fork::Parent(_) => {
            drop((ended, announced));
            wait_for_end(&ready);
            Ok(Placeholders { _held: Some(held), _locks: names.into_iter().filter_map(|name| hold(name)).collect() })
        }
        Fork::Child => {
            drop((held, ready));
            clean(&ended, announced, &names)
        }
    }
}

/// Whether a placeholder can be at this name: nothing else is.
fn is_free(name: &Path) -> bool {
    fs::symlink_metadata(name).is_err() || is_placeholder(name)
}

/// Waits until all writers of a pipe are gone.
fn wait_for_end(pipe: &OwnedFd) {
    while let Err(Errno::INTR) = rustix::io::read(pipe, &mut [0; 1]) {}
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

/// Becomes the cleaner, closes `announced`, and removes the names when `ended` has ended.
fn clean(ended: &OwnedFd, announced: OwnedFd, names: &[&PathBuf]) -> ! {
    // A kill of the command's process group must not reach the cleaner, and its output must not stay open.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(CLEANER);
    let nothing = rustix::fs::open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
    if let Ok(nothing) = nothing {
        let _ = rustix::stdio::dup2_stdin(&nothing);
        let _ = rustix::stdio::dup2_stdout(&nothing);
        let _ = rustix::stdio::dup2_stderr(&nothing);
    }
    drop(announced);
    wait_for_end(ended);
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
