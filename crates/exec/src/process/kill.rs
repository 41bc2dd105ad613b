//! Killing a program and everything it started.
#![allow(unsafe_code)]

use std::collections::BTreeSet;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::platform::{all_processes, children};

/// The most rounds of the search, for a tree that grows as fast as it is listed.
const ROUNDS: usize = 256;

/// Kills a program, its group and session, and all that descends from it, in whatever session: also daemons, which the
/// program has adopted as their parents ended (see `launch.rs`). The program must not have been reaped, so that its
/// number can only mean itself.
pub(super) fn kill_all(leader: Pid) {
    // Stopped processes start no others during the search.
    let mut found = BTreeSet::from([leader.as_raw_pid()]);
    let _ = kill_process_group(leader, Signal::STOP);
    let mut quiet = 0;
    for _ in 0..ROUNDS {
        let more: BTreeSet<_> =
            found.iter().flat_map(|pid| children(*pid)).filter(|pid| !found.contains(pid)).collect();
        // A process that was adopted during a round is found in the next one.
        quiet = if more.is_empty() { quiet + 1 } else { 0 };
        if quiet == 2 {
            break;
        }
        more.iter().for_each(|pid| send(*pid, Signal::STOP));
        found.extend(more);
    }
    // An error means that no process of the group is left.
    let _ = kill_process_group(leader, Signal::KILL);
    found.iter().for_each(|pid| send(*pid, Signal::KILL));
    for _ in 0..ROUNDS {
        let left: Vec<_> =
            all_processes().filter(|pid| !found.contains(pid) && found.contains(&session_of(*pid))).collect();
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|pid| send(*pid, Signal::KILL));
        found.extend(left);
    }
}

fn send(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// The session of a process: 0 for kernel threads, -1 for a process that has ended.
fn session_of(pid: i32) -> libc::pid_t {
    // SAFETY: getsid only takes a number. The safe wrapper of rustix does not expect a 0.
    unsafe { libc::getsid(pid) }
}
