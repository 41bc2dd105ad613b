//! What a process left of a turn that it did not finish.

use jiff::Timestamp;
use loomd_protocol::{ResponseItem, ThreadItem};

use crate::inbox::UserMessageInput;

/// What is left of an unfinished turn.
#[derive(Debug)]
pub(crate) struct RecoveredTurn {
    pub started_at: Timestamp,
    /// The rollout has the start of the turn.
    pub recorded: bool,
    /// Nothing is left to do but to end it.
    pub finished: bool,
    /// It does not go on.
    pub interrupted: bool,
    /// The calls without an output, oldest first.
    pub calls: Vec<RecoveredCall>,
    /// Commands that went on in the background after their calls.
    pub sessions: Vec<ThreadItem>,
    /// Input that it was given and had not read.
    pub inputs: Vec<UserMessageInput>,
    pub last_message: Option<String>,
}

/// A call without an output.
#[derive(Debug)]
pub(crate) struct RecoveredCall {
    pub item: ResponseItem,
    pub state: CallState,
}

#[derive(Debug)]
pub(crate) enum CallState {
    /// It has had no effects.
    NotStarted,
    /// Its effects had begun, when its item was as it is here.
    Started(Option<Box<ThreadItem>>),
    /// It had ended like this.
    Ended(String),
}
