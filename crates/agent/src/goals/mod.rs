//! Goals: objectives that a thread works on, turn after turn, while it is idle. `rules.rs` decides what becomes of a
//! goal, `goal_cx.rs` counts what it uses and stores and publishes its changes, `prompts.rs` are the texts for the model.
//! When turns start is decided by the thread's task (`thread/idle.rs`).

mod goal_cx;
mod prompts;
mod rules;

pub(crate) use goal_cx::{GoalCx, TurnNote, cleared_notification, updated_notification};
pub(crate) use prompts::{budget_report, continuation, remaining};
pub use rules::{GoalChange, GoalLimits};
pub(crate) use rules::{IdleFacts, IdleWork, TurnResult, create, next_idle_work, set, update};
