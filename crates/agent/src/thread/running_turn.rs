//! The running turn of a thread, and turns that wait for it.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::op::Reply;
use crate::busy::Working;
use crate::inbox::Inbox;
use crate::tools::ToolCx;
use crate::turn::{Ended, Work};
use crate::turn_cx::TurnCx;

/// A turn that waits for its time.
pub(crate) struct Queued {
    pub(super) turn_id: String,
    pub(super) work: Work,
    /// It takes the place of the running turn.
    pub(super) replaces: bool,
}

impl Queued {
    pub fn into_turn_id(self) -> String {
        self.turn_id
    }
}

/// The turn that is running.
pub(crate) struct RunningTurn {
    pub(super) turn_id: String,
    pub(super) kind: Kind,
    pub(super) cx: Arc<TurnCx>,
    pub(super) tools: Arc<ToolCx>,
    pub(super) inbox: Arc<Inbox>,
    pub(super) cancel: CancellationToken,
    /// Something else takes its place.
    pub(super) replaced: Arc<AtomicBool>,
    pub(super) task: AbortOnDropHandle<Ended>,
    /// Whoever wants to know that it was interrupted.
    pub(super) interrupts: Vec<Reply<()>>,
    pub(super) _working: Working,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Regular,
    Review,
    Compact,
    ShellCommand,
}

impl Kind {
    pub(super) fn of(work: &Work) -> Self {
        match work {
            Work::Answer { .. } => Self::Regular,
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

    /// It was told to end and takes nothing more in.
    pub(super) fn is_stopping(&self) -> bool {
        self.cancel.is_cancelled()
    }

    /// Resolves when the running turn is over; never when none is running.
    pub async fn ended(running: &mut Option<Self>) -> Result<Ended, JoinError> {
        match running {
            Some(running) => (&mut running.task).await,
            None => pending().await,
        }
    }
}
