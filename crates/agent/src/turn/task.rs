//! The state of a turn.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use loomd_model::{ModelError, Session};
use loomd_protocol::{JsonValue, RateLimitSnapshot, ResponseItem, TurnError};
use loomd_store::rollout::SessionMeta;

use super::recovered::RecoveredTurn;
use super::work::TurnLabels;
use super::workspaces::Workspaces;
use crate::conversation::Conversation;
use crate::goals::GoalCx;
use crate::hooks::Interrupted;
use crate::inbox::Inbox;
use crate::services::Services;
use crate::tools::{Calls, Toolbox};
use crate::turn_cx::TurnCx;
use crate::view::{Persistence, View};

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Completed { last_message: Option<String> },
    Failed(TurnError),
    Interrupted,
}

/// The error text of a turn that was interrupted.
pub(crate) const INTERRUPTED: &str = "the turn was interrupted";

impl Outcome {
    /// Why the turn did not complete; `None` when it did.
    pub fn error_text(&self) -> Option<String> {
        match self {
            Self::Completed { .. } => None,
            Self::Failed(error) => Some(error.message.clone()),
            Self::Interrupted => Some(INTERRUPTED.into()),
        }
    }

    /// The name for traces.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Completed { .. } => "completed",
            Self::Failed(_) => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// Why a turn cannot go on.
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

/// How the model is called in this turn.
pub(crate) struct ModelScope {
    /// Identifies the conversation to the provider.
    pub session_id: String,
    /// The kind of subagent, for the provider; `None` for the thread's own agent.
    pub subagent: Option<String>,
    pub instructions: Arc<str>,
    /// Messages of the model are published as items.
    pub shows_messages: bool,
    /// The conversation is the thread's own and is recorded.
    pub records: bool,
}

/// A turn, owned by its task.
pub(crate) struct TurnTask {
    pub cx: Arc<TurnCx>,
    pub services: Arc<Services>,
    pub view: Arc<View>,
    pub conversation: Conversation,
    pub session: Session,
    pub inbox: Arc<Inbox>,
    pub toolbox: Arc<Toolbox>,
    pub scope: ModelScope,
    /// The first record of the rollout, when nothing of the thread is written yet.
    pub meta: Option<Box<SessionMeta>>,
    /// Open child agents.
    pub subagents: Vec<(String, String)>,
    pub rate_limits: RateLimitSnapshot,
    pub goals: Arc<GoalCx>,
    /// Set before the turn is cancelled when another turn replaces it.
    pub replaced: Arc<AtomicBool>,
    pub progress: Progress,
}

/// The progress of a turn.
#[derive(Default)]
pub(crate) struct Progress {
    pub calls: Calls,
    pub(super) output_schema: Option<JsonValue>,
    pub(super) labels: TurnLabels,
    /// Context of the client, to be added before the input.
    pub(super) given_context: Vec<ResponseItem>,
    pub(super) last_message: Option<String>,
    /// An opaque header of the provider, sent back to it until the turn ends.
    pub(super) turn_state: Option<String>,
    pub(super) rerouted: bool,
    /// The repository, for the headers of model calls.
    pub(super) workspaces: Option<Workspaces>,
    /// The model has been called.
    pub(super) asked: bool,
    /// The files of skills that were added to the conversation.
    pub(super) skills: HashSet<PathBuf>,
    /// What another process left of the turn.
    pub(super) recovered: Option<Box<RecoveredTurn>>,
    /// How often `Stop` hooks continued the turn.
    pub(super) continued: u32,
}

impl Progress {
    /// That of a turn of which another process has left something.
    pub fn after(recovered: Option<Box<RecoveredTurn>>) -> Self {
        Self { recovered, ..Self::default() }
    }

    /// That of a turn which has not begun.
    pub fn labelled(labels: TurnLabels) -> Self {
        Self { labels, ..Self::default() }
    }
}

/// What a turn returns to the thread.
pub(crate) struct TurnEnd {
    pub outcome: Outcome,
    /// `None` when it may differ from the rollout, which is then read again.
    pub conversation: Option<Conversation>,
    pub session: Session,
    pub rate_limits: RateLimitSnapshot,
}

impl TurnTask {
    /// Whether records of the thread are written: not of an ephemeral one.
    pub(super) fn is_persisted(&self) -> bool {
        self.view.persistence() != Persistence::Ephemeral
    }
}
