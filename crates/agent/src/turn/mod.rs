//! A turn: from the input to the model's last message. It runs in a task of its own, owns the thread's conversation
//! while it runs, and returns it at the end. The thread's task publishes that it starts and completes; everything in
//! between is published here.

mod answer;
mod compaction;
mod counting;
mod extensions;
mod hooks;
mod hosted;
mod metadata;
mod model_call;
mod noted;
mod patch_stream;
mod recovered;
mod regular;
mod replay;
mod reroute;
mod review;
mod run;
pub(crate) mod shell_command;
mod skill_needs;
mod taken_up;
mod task;
pub(crate) mod usage;
mod work;
mod workspaces;

pub(crate) use recovered::{CallState, RecoveredCall, RecoveredTurn};
pub(crate) use task::{INTERRUPTED, ModelScope, Outcome, Progress, TurnEnd, TurnTask};
pub(crate) use work::{AnswerWork, TurnInput, TurnLabels, Work};
