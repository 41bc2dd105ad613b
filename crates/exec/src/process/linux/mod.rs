//! The parts of running programs that only Linux has: `vfork`, process descriptors and `/proc`.

mod exit_handle;
mod processes;
mod status;
mod terminal;
mod vfork;

pub(super) use exit_handle::ExitHandle;
pub(super) use processes::{WatchedProcess, all_processes, can_act, children};
pub(super) use status::{Status, socket_holders};
pub(super) use terminal::open_terminal;
pub(super) use vfork::Stack;

pub(super) use child::{adopt_orphans, end_with_parent, errno};

mod child;
