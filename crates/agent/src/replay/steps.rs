//! What a recording holds between and about the calls of the model.

use loomd_protocol::{FunctionCallOutputBody, ResponseItem, TurnError};
use loomd_store::rollout::Event;

use crate::inbox::Input;

/// What the model is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    Answer,
    Summary,
}

/// What came from outside between two calls of the model.
#[derive(Debug, Default)]
pub(crate) struct Gap {
    pub inputs: Vec<Input>,
    /// Ends of commands that nobody called for: the user's own.
    pub strays: Vec<Event>,
    pub stop: Option<Stop>,
}

/// How a turn was ended from outside.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Stop {
    Interrupt { replaced: bool },
    Fail(TurnError),
}

/// What became of a tool call.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outcome {
    /// What was written down of it for showing.
    pub events: Vec<Event>,
    pub output: Option<FunctionCallOutputBody>,
    pub notes: Vec<ResponseItem>,
}
