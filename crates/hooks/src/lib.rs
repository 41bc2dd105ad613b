//! Hooks: programs of the user that run on events of an agent, and may add context or block. [`Hooks::load`] reads
//! them, [`HookEvent`] is their input, [`run_all`] runs them, and [`Effect`] is what their output means. Callers
//! decide when they run and apply the effects: this crate does not know what a turn is.

mod describe;
mod event;
mod load;
mod output;
mod run;

pub use describe::{HookDescription, describe, describe_folder};
pub use event::{BASH, HookContext, HookEvent, PermissionMode, SessionSource};
pub use load::{Handler, HookProblem, Hooks, LoadedHooks};
pub use output::Effect;
pub use run::{HookEnvironment, HookResult, PendingHook, run_all};
