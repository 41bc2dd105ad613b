//! The three wires of providers, and one script for all: [`ModelOutput`] is independent of the wire, [`Wire::reply`]
//! encodes it, and [`RecordedRequest::conversation`](super::RecordedRequest::conversation) decodes a request of any
//! wire.

mod anthropic;
pub mod chat;
mod conversation;
mod responses;

use loomd_protocol::JsonValue;

use super::Reply;

/// The API of a provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Responses,
    Chat,
    Anthropic,
}

impl Wire {
    pub const ALL: [Self; 3] = [Self::Responses, Self::Chat, Self::Anthropic];

    /// The value of `wire_api`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Responses => "responses",
            Self::Chat => "chat",
            Self::Anthropic => "anthropic",
        }
    }

    /// The reply with these outputs.
    pub fn reply(self, outputs: &[ModelOutput]) -> Reply {
        match self {
            Self::Responses => responses::reply(outputs),
            Self::Chat => chat::reply(outputs),
            Self::Anthropic => anthropic::reply(outputs),
        }
    }

    /// The body of an error response.
    pub fn refusal(self, kind: &str, message: &str) -> JsonValue {
        match self {
            Self::Responses | Self::Chat => serde_json::json!({ "error": { "code": kind, "message": message } }),
            Self::Anthropic => {
                serde_json::json!({ "type": "error", "error": { "type": kind, "message": message } })
            }
        }
    }

    /// The wire of a request with this route.
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

/// A part of a model's output.
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
    /// The output limit is reached.
    Length,
    /// An error of the provider in the stream, with this message.
    Fail(&'static str),
    /// A keep-alive event.
    Ping,
    /// The stream ends in the middle of the last output.
    Cut,
}

const USUAL: ModelOutput = ModelOutput::Took { input: 10, cached: 0, output: 5, reasoning: 0 };

/// The usage: input, cached, output, reasoning tokens.
fn took(outputs: &[ModelOutput]) -> [i64; 4] {
    let took = outputs.iter().find(|say| matches!(say, ModelOutput::Took { .. })).unwrap_or(&USUAL);
    match *took {
        ModelOutput::Took { input, cached, output, reasoning } => [input, cached, output, reasoning],
        _ => [0; 4],
    }
}

/// A server-sent event, with a name if the value has a type.
pub fn event(value: &JsonValue) -> String {
    match value["type"].as_str() {
        Some(name) => format!("event: {name}\ndata: {value}\n\n"),
        None => format!("data: {value}\n\n"),
    }
}

/// The two halves of a text.
fn halves(text: &str) -> (&str, &str) {
    text.split_at(text.floor_char_boundary(text.len() / 2))
}
