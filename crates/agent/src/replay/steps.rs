//! The recorded input between model calls, and the recorded outcomes of tool calls.

use loomd_protocol::{FunctionCallOutputBody, ResponseItem, TurnError};
use loomd_store::rollout::Event;

use crate::inbox::Input;

/// The purpose of a model call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallPurpose {
    Answer,
    Summary,
}

/// Input and events from clients between two model calls.
#[derive(Debug, Default)]
pub(crate) struct BetweenCalls {
    pub inputs: Vec<Input>,
    /// Ends of commands that the user ran.
    pub strays: Vec<Event>,
    pub stop: Option<Stop>,
}

/// How a turn was stopped.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    Interrupt { replaced: bool },
    Fail(TurnError),
}

/// The recorded outcome of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct CallOutcome {
    /// The events from which its item is rebuilt.
    pub events: Vec<Event>,
    pub output: Option<FunctionCallOutputBody>,
    pub notes: Vec<ResponseItem>,
}
