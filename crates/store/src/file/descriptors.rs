//! A reserve of file descriptors: a process at its limit can still read and write its threads. The limit is
//! the process's, and so is the reserve.

use std::fs::File;
use std::io;
use std::path::Path;

use parking_lot::Mutex;
use rustix::io::Errno;

/// Descriptors that are held back.
const RESERVED: usize = 8;

static RESERVE: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Takes the reserve, as far as there are descriptors left.
pub(crate) fn reserve() {
    let mut reserve = RESERVE.lock();
    while reserve.len() < RESERVED {
        match File::open("/dev/null") {
            Ok(file) => reserve.push(file),
            Err(_) => return,
        }
    }
}

/// Opens something; when the process has no descriptor left, with one of the reserve.
pub(crate) fn open<T>(open: impl Fn() -> io::Result<T>) -> io::Result<T> {
    let mut opened = open();
    let mut freed = false;
    while opened.as_ref().is_err_and(is_exhausted) {
        // Another thread may take the descriptor that is given back here.
        let Some(spare) = RESERVE.lock().pop() else { break };
        drop(spare);
        freed = true;
        opened = open();
    }
    if !freed && RESERVE.lock().len() < RESERVED {
        reserve();
    }
    opened
}

/// The same for a regular file that is only read.
pub(crate) fn open_file(path: &Path) -> io::Result<File> {
    open(|| loomd_regular::open(path).map(|(file, _)| file))
}

fn is_exhausted(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::MFILE | Errno::NFILE))
}
