//! The running turn of a thread, and turns that wait for it.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::op::Reply;
use crate::busy::BusyGuard;
use crate::inbox::Inbox;
use crate::tools::ToolCx;
use crate::turn::{TurnEnd, Work};
use crate::turn_cx::TurnCx;

/// A turn that waits for the running one.
pub(crate) struct QueuedTurn {
    pub(super) turn_id: String,
    pub(super) work: Work,
    /// It replaces the running turn, which is interrupted for it.
    pub(super) replaces: bool,
}

impl QueuedTurn {
    pub fn into_turn_id(self) -> String {
        self.turn_id
    }
}

/// The turn that is running.
pub(crate) struct RunningTurn {
    pub(super) turn_id: String,
    pub(super) kind: TurnKind,
    pub(super) cx: Arc<TurnCx>,
    pub(super) tools: Arc<ToolCx>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) cancel: CancellationToken,
    /// Set before it is interrupted when another turn replaces it.
    pub(super) replaced: Arc<AtomicBool>,
    pub(super) task: AbortOnDropHandle<TurnEnd>,
    /// The turn that it belongs to, itself unless a client named another.
    pub(super) root_turn_id: String,
    /// It was started for the thread's goal.
    pub(super) goal_turn: bool,
    /// It was started for a queued message, which is removed at its end.
    pub(super) queued_message: bool,
    /// Replies to `turn/interrupt`, called when it has stopped.
    pub(super) interrupts: Vec<Reply<()>>,
    pub(super) _working: BusyGuard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnKind {
    Regular,
    Review,
    Compact,
    ShellCommand,
}

impl TurnKind {
    pub(super) fn of(work: &Work) -> Self {
        match work {
            Work::Answer(_) => Self::Regular,
            Work::Compact => Self::Compact,
            Work::Review { .. } => Self::Review,
            Work::ShellCommand { .. } => Self::ShellCommand,
        }
    }
}

impl RunningTurn {
    pub fn turn_id(&self) -> &str {
        &self.turn_id
    }

    pub fn cancel(&self) {
        self.cancel.cancel();
    }

    /// Whether it has been interrupted. It takes no more input then.
    pub(super) fn is_stopping(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Resolves when the running turn is over; never when none is running.
    pub async fn ended(running: &mut Option<Self>) -> Result<TurnEnd, JoinError> {
        match running {
            Some(running) => (&mut running.task).await,
            None => pending().await,
        }
    }
}
