//! The process table, read through `libproc`.
#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::io;
use std::mem::MaybeUninit;

use rustix::process::Pid;

/// The first size of the buffer for process ids.
const FIRST_ROOM: usize = 1024;
/// The largest size of the buffer, beyond the number of processes of the system.
const MOST_ROOM: usize = 1 << 20;

/// A process that was announced to the guard. It is recognised by its start, so that another process with the same id
/// is not taken for it.
pub(in crate::process) struct WatchedProcess {
    pid: Pid,
    started: (u64, u64),
}

impl WatchedProcess {
    pub fn new(pid: Pid) -> io::Result<Self> {
        Ok(Self { pid, started: started(&information(pid.as_raw_pid())?) })
    }

    pub fn has_ended(&self) -> bool {
        !information(self.pid.as_raw_pid()).is_ok_and(|now| started(&now) == self.started)
    }
}

fn started(information: &libc::proc_bsdinfo) -> (u64, u64) {
    (information.pbi_start_tvsec, information.pbi_start_tvusec)
}

/// The entry of a process in the process table. An error when it has ended.
pub(super) fn information(pid: i32) -> io::Result<libc::proc_bsdinfo> {
    let mut information = MaybeUninit::<libc::proc_bsdinfo>::zeroed();
    let size = size_of::<libc::proc_bsdinfo>() as c_int;
    // SAFETY: the buffer has the size that is given.
    let written = unsafe { libc::proc_pidinfo(pid, libc::PROC_PIDTBSDINFO, 0, information.as_mut_ptr().cast(), size) };
    if written != size {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has filled all of it; zero is a value of it, too.
    Ok(unsafe { information.assume_init() })
}

/// Processes whose parent is this one.
pub(in crate::process) fn children(pid: i32) -> Vec<i32> {
    // SAFETY: `list` passes a buffer of the size that it gives.
    list(|buffer, size| unsafe { libc::proc_listchildpids(pid, buffer, size) })
}

/// Whether this process may still start another one: it is neither stopped nor ending.
pub(in crate::process) fn can_act(pid: i32) -> bool {
    information(pid).is_ok_and(|entry| ![libc::SSTOP, libc::SZOMB].contains(&entry.pbi_status))
}

/// Every process of the system.
pub(in crate::process) fn all_processes() -> impl Iterator<Item = i32> {
    // SAFETY: `list` passes a buffer of the size that it gives.
    list(|buffer, size| unsafe { libc::proc_listallpids(buffer, size) }).into_iter()
}

/// The process ids that a call writes to a buffer. The call returns how many there are.
fn list(call: impl Fn(*mut c_void, c_int) -> c_int) -> Vec<i32> {
    let mut room = FIRST_ROOM;
    loop {
        let mut pids = vec![0i32; room];
        let count = call(pids.as_mut_ptr().cast(), (room * size_of::<i32>()) as c_int);
        let count = usize::try_from(count).unwrap_or(0);
        if count < room || room >= MOST_ROOM {
            pids.truncate(count);
            pids.retain(|pid| *pid > 0);
            return pids;
        }
        room *= 2;
    }
}
