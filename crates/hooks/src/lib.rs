//! Hooks: programs of the user that are told what an agent is about to do or has done, and may add to it or
//! object. Which there are ([`Hooks::load`]), what they are told ([`HookEvent`]), how one is run
//! ([`run_all`]) and what its answer means ([`Effect`]). When they run, and what becomes of an effect, is
//! for callers to say: this crate does not know what a turn is.

mod event;
mod load;
mod output;
mod run;

pub use event::{BASH, HookContext, HookEvent, PermissionMode, SessionSource};
pub use load::{Handler, HookProblem, Hooks, LoadedHooks};
pub use output::Effect;
pub use run::{HookEnvironment, HookResult, PendingHook, run_all};
