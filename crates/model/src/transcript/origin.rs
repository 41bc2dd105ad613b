//! What a provider wants back together with its reasoning. Rollouts have one place for such things,
//! `encrypted_content`, which the Responses API made for its own; those of other wires begin with a tag
//! there, so that every wire knows what is for it:
//!
//! - `anthropic:thinking:<signature>`: the text of the item is the thinking
//! - `anthropic:redacted_thinking:<data>`: there is no text
//! - `chat:<field>`: the text of the item came in that field of a Chat Completions answer; `text` when it stood
//!   between the text, and then it never goes back
//! - `chat:reasoning_details:<JSON array>`: the details as they came, text and all
//! - `rehearsal:`: nobody wants it back

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

/// On reasoning that was only played.
pub(crate) const REHEARSAL_ORIGIN: &str = "rehearsal:";

impl ReasoningOrigin {
    /// `None` for what the Responses API made.
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

    /// Whether the text is of another wire than Responses, be it understood or not.
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
    fn a_seal_survives_being_written_and_read() {
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
