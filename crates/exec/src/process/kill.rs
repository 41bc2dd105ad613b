//! Killing a program and everything it started.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};

use super::platform::{all_processes, can_act, children};

/// The most rounds of the search, for a tree that grows as fast as it is listed.
const ROUNDS: usize = 256;
/// The longest wait for a stopped leader, which may hang in a system call.
const PATIENCE: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_micros(100);
/// How many rounds in a row find nothing at the end of the search: a process whose parent ends during a round is found
/// in the next one.
const QUIET_ROUNDS: usize = 2;

/// Kills a program, its group and session, and all that descends from it, in whatever session: also daemons, which the
/// program has adopted as their parents ended (see `launch.rs`). The program must not have been reaped, so that its
/// number can only mean itself.
pub(super) fn kill_all(leader: Pid) {
    let leader_id = leader.as_raw_pid();
    // Stopped processes start no others during the search.
    let mut found = BTreeSet::from([leader_id]);
    let _ = kill_process_group(leader, Signal::STOP);
    for _ in 0..ROUNDS {
        let more = descendants(&found);
        if more.is_empty() {
            break;
        }
        more.iter().for_each(|pid| send(*pid, Signal::STOP));
        found.extend(more);
    }
    // A process that is stopped amid a fork finishes the fork first; one that is killed does not. So the others are
    // killed, and then the search goes on: what it had missed is a child of a killed process or, when that has ended,
    // of the leader. The leader is killed last, and only when it has come to a stop.
    found.iter().filter(|pid| **pid != leader_id).for_each(|pid| send(*pid, Signal::KILL));
    let begun = Instant::now();
    let (mut rounds, mut quiet) = (0, 0);
    while quiet < QUIET_ROUNDS && rounds < ROUNDS {
        let stopped = !can_act(leader_id) || begun.elapsed() > PATIENCE;
        let more = descendants(&found);
        if !more.is_empty() {
            rounds += 1;
            quiet = 0;
        } else if stopped {
            quiet += 1;
        } else {
            thread::sleep(PAUSE);
        }
        more.iter().for_each(|pid| send(*pid, Signal::KILL));
        found.extend(more);
    }
    // An error means that no process of the group is left.
    let _ = kill_process_group(leader, Signal::KILL);
    send(leader_id, Signal::KILL);
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

/// Children of these processes that are not among them.
fn descendants(found: &BTreeSet<i32>) -> BTreeSet<i32> {
    found.iter().flat_map(|pid| children(*pid)).filter(|pid| !found.contains(pid)).collect()
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
