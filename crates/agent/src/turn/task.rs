//! The state of a turn.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loomd_model::{ModelError, Session};
use loomd_protocol::{JsonValue, RateLimitSnapshot, ReviewTarget, TurnError, UserInput};
use loomd_store::rollout::SessionMeta;

use super::workspaces::Workspaces;
use crate::conversation::Conversation;
use crate::hooks::Interrupted;
use crate::inbox::Inbox;
use crate::services::Services;
use crate::tools::{Calls, Toolbox};
use crate::turn_cx::TurnCx;
use crate::view::{Persistence, View};

/// What a turn is for.
pub(crate) enum Work {
    Answer { input: Vec<UserInput>, output_schema: Option<JsonValue> },
    Compact,
    Review { target: ReviewTarget, hint: String, prompt: String },
    ShellCommand { command: String },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Completed { last_message: Option<String> },
    Failed(TurnError),
    Interrupted,
}

impl Outcome {
    /// The name for traces.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Failed(_) => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Why a step of a turn did not work out.
pub(crate) enum Failure {
    Interrupted,
    Model(ModelError),
    Other(TurnError),
}

impl From<Interrupted> for Failure {
    fn from(_: Interrupted) -> Self {
        Self::Interrupted
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// How the model is spoken to in this turn.
pub(crate) struct Scope {
    /// Names the conversation to the provider.
    pub session_id: String,
    /// What sort of helper this is, for the provider.
    pub subagent: Option<String>,
    pub instructions: Arc<str>,
    /// The model's messages are shown as items.
    pub shows_messages: bool,
    /// The conversation is the thread's and is written down.
    pub records: bool,
}

/// A turn that is about to run, or runs.
pub(crate) struct TurnTask {
    pub cx: Arc<TurnCx>,
    pub services: Arc<Services>,
    pub view: Arc<View>,
    pub conversation: Conversation,
    pub session: Session,
    pub inbox: Arc<Inbox>,
    pub toolbox: Arc<Toolbox>,
    pub scope: Scope,
    /// The thread's record of itself, when nothing of it is written yet.
    pub meta: Option<Box<SessionMeta>>,
    /// Open child agents.
    pub subagents: Vec<(String, String)>,
    pub rate_limits: RateLimitSnapshot,
    /// Something else takes the place of this turn.
    pub replaced: Arc<AtomicBool>,
    pub progress: Progress,
}

/// How far a turn has come.
#[derive(Default)]
pub(crate) struct Progress {
    pub calls: Calls,
    pub(super) output_schema: Option<JsonValue>,
    pub(super) last_message: Option<String>,
    /// Given by the provider, and given back to it until the turn ends.
    pub(super) turn_state: Option<String>,
    pub(super) rerouted: bool,
    /// What the provider is told about the repository.
    pub(super) workspaces: Option<Workspaces>,
    /// The model has been asked for something.
    pub(super) asked: bool,
    /// How often hooks kept the turn from ending.
    pub(super) continued: u32,
}

/// What is left when a turn is over.
pub(crate) struct Ended {
    pub outcome: Outcome,
    /// `None` when it cannot be trusted any more; the rollout can.
    pub conversation: Option<Conversation>,
    pub session: Session,
    pub rate_limits: RateLimitSnapshot,
}

impl TurnTask {
    /// The thread has been written to, if anything is written of it at all.
    pub(super) fn keeps(&self) -> bool {
        self.view.persistence() != Persistence::Ephemeral
    }
}
