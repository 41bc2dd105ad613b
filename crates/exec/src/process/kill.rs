//! Killing a program and everything it started that did not ask for a session of its own.
#![allow(unsafe_code)]

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

/// Kills the group, and what left the group but not the session, as jobs of an interactive shell do. The
/// leader must not have been reaped, so that its number can only mean this group and session.
pub(super) fn kill_session(leader: Pid) {
    // Nobody left to kill is what we want.
    let _ = kill_process_group(leader, Signal::KILL);
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(pid) = pid
            && session_of(pid) == leader.as_raw_pid()
        {
            let _ = kill_process(pid, Signal::KILL);
        }
    }
}

/// 0 for the kernel's own, -1 for what is gone.
fn session_of(pid: Pid) -> libc::pid_t {
    // SAFETY: getsid only takes a number. The safe wrapper that we know does not expect a 0.
    unsafe { libc::getsid(pid.as_raw_pid()) }
}
