//! The three wires that a provider may speak, and one script for all of them: [`ModelOutput`] is what a model says in
//! no wire's words, [`Wire::reply`] puts it into those of one, and [`RecordedRequest::told`](super::Recorded::told)
//! reads what the model was told, whatever the wire.

mod anthropic;
pub mod chat;
mod responses;
mod conversation;

use loomd_protocol::JsonValue;

use super::Reply;

/// A language between us and a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Responses,
    Chat,
    Anthropic,
}

impl Wire {
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Anthropic];

    /// As `wire_api` is set to.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
        }
    }

    /// The answer in which all this is said.
    pub fn reply(self, outputs: &[ModelOutput]) -> Reply {
        match self {
            Self::Responses => responses::reply(outputs),
            Self::Chat => chat::reply(outputs),
            Self::Anthropic => anthropic::reply(outputs),
        }
    }

    /// The body of a refusal.
    pub fn refusal(self, kind: &str, message: &str) -> JsonValue {
        match self {
            Self::Responses | Self::Chat => serde_json::json!({ "error": { "code": kind, "message": message } }),
            Self::Anthropic => {
                serde_json::json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
        }
    }

    /// The wire that a request with this route is made on.
    pub(super) fn of(route: &str) -> Self {
        if route.ends_with("/chat/completions") {
            Self::Chat
        } else if route.ends_with("/messages") {
            Self::Anthropic
        } else {
            Self::Responses
        }
    }
}

/// What a model says or does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ModelOutput {
    Text(&'static [&'static str]),
    Think(&'static [&'static str]),
    /// Name, arguments, id.
    Call(&'static str, &'static str, &'static str),
    /// Name, input, id.
    Custom(&'static str, &'static str, &'static str),
    Took {
        input: i64,
        cached: i64,
        output: i64,
        reasoning: i64,
    },
    /// It stops because it may say no more.
    Length,
    /// A provider's error in the middle, with these words.
    Fail(&'static str),
    /// Something that only keeps the connection busy.
    Ping,
    /// The stream ends here, in the middle of what was said last.
    Cut,
}

const USUAL: ModelOutput = ModelOutput::Took { input: 10, cached: 0, output: 5, reasoning: 0 };

/// What it took: input, cached, output, reasoning.
fn took(outputs: &[ModelOutput]) -> [i64; 4] {
    let took = outputs.iter().find(|say| matches!(say, ModelOutput::Took { .. })).unwrap_or(&USUAL);
    match *took {
        ModelOutput::Took { input, cached, output, reasoning } => [input, cached, output, reasoning],
        _ => [0; 4],
    }
}

/// An event, with a name if it has a type.
pub fn event(value: &JsonValue) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

/// Two halves, cut in the middle.
fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
