//! The parts of running programs that differ on macOS. There is no subreaper and no signal for the end of a parent: a
//! daemon that leaves its session is not found when its command is killed, and only the guard ends programs when this
//! process dies.

mod child;
mod exit_handle;
mod fork;
mod processes;
mod status;
mod terminal;

pub(super) use child::{adopt_orphans, end_with_parent, errno};
pub(super) use exit_handle::ExitHandle;
pub(super) use fork::Stack;
pub(super) use processes::{WatchedProcess, all_processes, can_act, children};
pub(super) use status::{Status, socket_holders};
pub(super) use terminal::open_terminal;
