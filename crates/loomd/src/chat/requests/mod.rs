//! The requests behind the commands of a chat. Each is a task of its own that ends with an [`Outcome`], so the chat goes
//! on while it waits.

mod diff;
mod export;
mod lists;
mod threads;

use loomd_client::protocol::FuzzyFileSearchResult;
use loomd_client::{Error, Input, Thread};

pub use diff::diff;
pub use export::export;
pub use lists::{efforts, mcp, models, skills, status_lines};
pub use threads::{fork, past_turns, resume, resume_picker, start};

use super::picker::Picker;

/// The result of a request.
pub enum Outcome {
    /// Lines to print.
    Text(String),
    /// A diff to print in colour.
    Diff(String),
    Pick(Box<Picker>),
    /// Another thread takes the place of the current one.
    Opened {
        thread: Box<Thread>,
        word: &'static str,
    },
    Failed(String),
    /// The server has accepted a turn with the settings of the chat.
    TurnAccepted,
    TurnEnded {
        request: u64,
        turn_id: String,
    },
    /// A turn was not started. The text was the user's, if there was one.
    NotStarted {
        request: Option<u64>,
        text: Option<String>,
        message: String,
    },
    /// The running turn has the input.
    Steered,
    NotSteered {
        input: Input,
        text: String,
        message: String,
    },
    Files {
        query: String,
        files: Vec<FuzzyFileSearchResult>,
    },
}

impl From<anyhow::Result<Self>> for Outcome {
    fn from(result: anyhow::Result<Self>) -> Self {
        result.unwrap_or_else(|error| match error.downcast_ref::<Error>() {
            Some(error) => Self::Failed(message(error)),
            None => Self::Failed(format!("{error:#}")),
        })
    }
}

/// The message of an error, without method and code where the server has given one.
pub fn message(error: &Error) -> String {
    error.rpc().map_or_else(|| error.to_string(), |refused| refused.message.clone())
}
