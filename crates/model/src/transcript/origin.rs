//! What a provider needs to take its reasoning back. Rollouts store it in `encrypted_content`, which the Responses API
//! uses for its own data; data of other wires starts with a tag:
//!
//! - `anthropic:thinking:<signature>`: the item's text is the thinking
//! - `anthropic:redacted_thinking:<data>`: there is no text
//! - `chat:<field>`: the item's text came in that field of a Chat Completions response; `text` if it was part of the
//!   text, in which case it is never sent back
//! - `chat:reasoning_details:<JSON array>`: all `reasoning_details`, including their text
//! - `rehearsal:`: never sent to a provider

use loomd_protocol::JsonValue;

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ReasoningOrigin {
    Thinking { signature: String },
    RedactedThinking { data: String },
    Field(String),
    Details(JsonValue),
}

const ANTHROPIC: &str = "anthropic:";
const CHAT: &str = "chat:";
const DETAILS: &str = "reasoning_details";

/// The tag of the rehearsal's reasoning.
pub(crate) const REHEARSAL_ORIGIN: &str = "rehearsal:";

impl ReasoningOrigin {
    /// Returns `None` for data of the Responses API, and for unknown tags.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(rest) = text.strip_prefix(ANTHROPIC) {
            return match rest.split_once(':')? {
                ("thinking", signature) => Some(Self::Thinking { signature: signature.into() }),
                ("redacted_thinking", data) => Some(Self::RedactedThinking { data: data.into() }),
                _ => None,
            };
        }
        let rest = text.strip_prefix(CHAT)?;
        match rest.split_once(':') {
            None => Some(Self::Field(rest.into())),
            Some((DETAILS, json)) => serde_json::from_str(json).ok().map(Self::Details),
            Some(_) => None,
        }
    }

    /// Whether the data has the tag of a wire other than Responses, known or not.
    pub fn is_foreign(text: &str) -> bool {
        [ANTHROPIC, CHAT, REHEARSAL_ORIGIN].iter().any(|tag| text.starts_with(tag))
    }
}

impl std::fmt::Display for ReasoningOrigin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Thinking { signature } => write!(f, "{ANTHROPIC}thinking:{signature}"),
            Self::RedactedThinking { data } => write!(f, "{ANTHROPIC}redacted_thinking:{data}"),
            Self::Field(field) => write!(f, "{CHAT}{field}"),
            Self::Details(details) => write!(f, "{CHAT}{DETAILS}:{details}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn origins_round_trip() {
        for (origin, text) in [
            (ReasoningOrigin::Thinking { signature: "a:b==".into() }, "anthropic:thinking:a:b=="),
            (ReasoningOrigin::RedactedThinking { data: "x".into() }, "anthropic:redacted_thinking:x"),
            (ReasoningOrigin::Field("reasoning_content".into()), "chat:reasoning_content"),
            (
                ReasoningOrigin::Details(json!([{ "type": "reasoning.text" }])),
                r#"chat:reasoning_details:[{"type":"reasoning.text"}]"#,
            ),
        ] {
            assert_eq!((origin.to_string().as_str(), ReasoningOrigin::parse(text)), (text, Some(origin)));
            assert!(ReasoningOrigin::is_foreign(text));
        }
        for other in ["gAAAAABo:x", "", "anthropic:new:x", "chat:reasoning_details:{", "thinking:x"] {
            assert_eq!(ReasoningOrigin::parse(other), None, "{other}");
        }
        assert_eq!(["gAAAAABo", REHEARSAL_ORIGIN].map(ReasoningOrigin::is_foreign), [false, true]);
    }
}
