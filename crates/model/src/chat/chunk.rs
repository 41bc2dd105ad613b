//! One chunk of a Chat Completions stream, as far as it is read. A field of an unexpected type counts as missing.

use loomd_protocol::JsonValue;
use serde::{Deserialize, Deserializer};

use crate::TokenUsage;

#[derive(Deserialize, Debug)]
pub(super) struct Chunk {
    #[serde(default, deserialize_with = "or_default")]
    pub id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub object: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub choices: Vec<Choice>,
    #[serde(default, deserialize_with = "or_default")]
    pub usage: Option<Usage>,
    #[serde(default, deserialize_with = "or_default")]
    pub x_groq: Option<XGroq>,
    pub error: Option<JsonValue>,
}

/// Groq's extension object.
#[derive(Deserialize, Debug)]
pub(super) struct XGroq {
    #[serde(default, deserialize_with = "or_default")]
    pub usage: Option<Usage>,
    #[serde(default, deserialize_with = "or_default")]
    pub error: Option<String>,
}

#[derive(Deserialize, Debug)]
pub(super) struct Choice {
    #[serde(default, deserialize_with = "or_default")]
    pub delta: Delta,
    #[serde(default, deserialize_with = "or_default")]
    pub finish_reason: Option<String>,
    /// Some servers report errors here.
    pub error: Option<JsonValue>,
}

#[derive(Deserialize, Debug, Default)]
#[serde(default)]
pub(super) struct Delta {
    /// Text, or a list of parts.
    pub content: JsonValue,
    #[serde(deserialize_with = "or_default")]
    pub refusal: Option<String>,
    /// Sent by DeepSeek, llama.cpp, LM Studio, vLLM.
    #[serde(deserialize_with = "or_default")]
    pub reasoning_content: Option<String>,
    /// Sent by OpenRouter, Groq, Ollama, newer vLLM.
    #[serde(deserialize_with = "or_default")]
    pub reasoning: Option<String>,
    /// Sent by OpenRouter.
    #[serde(deserialize_with = "or_default")]
    pub reasoning_details: Vec<JsonValue>,
    #[serde(deserialize_with = "or_default")]
    pub tool_calls: Vec<CallDelta>,
}

#[derive(Deserialize, Debug)]
pub(super) struct CallDelta {
    #[serde(default, deserialize_with = "or_default")]
    pub index: Option<u64>,
    #[serde(default, deserialize_with = "or_default")]
    pub id: Option<String>,
    #[serde(default, deserialize_with = "or_default")]
    pub function: FunctionDelta,
}

#[derive(Deserialize, Debug, Default)]
pub(super) struct FunctionDelta {
    #[serde(default, deserialize_with = "or_default")]
    pub name: Option<String>,
    /// A JSON text, but some servers send the object itself.
    #[serde(default)]
    pub arguments: JsonValue,
}

#[derive(Deserialize, Debug)]
pub(super) struct Usage {
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens: i64,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens: i64,
    #[serde(default, deserialize_with = "or_default")]
    total_tokens: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    prompt_tokens_details: PromptDetails,
    #[serde(default, deserialize_with = "or_default")]
    completion_tokens_details: CompletionDetails,
    /// Sent by DeepSeek.
    #[serde(default, deserialize_with = "or_default")]
    prompt_cache_hit_tokens: i64,
}

#[derive(Deserialize, Debug, Default)]
struct PromptDetails {
    #[serde(default, deserialize_with = "or_default")]
    cached_tokens: i64,
}

#[derive(Deserialize, Debug, Default)]
struct CompletionDetails {
    #[serde(default, deserialize_with = "or_default")]
    reasoning_tokens: i64,
}

impl From<Usage> for TokenUsage {
    fn from(usage: Usage) -> Self {
        Self {
            total_tokens: usage.total_tokens.unwrap_or(usage.prompt_tokens.saturating_add(usage.completion_tokens)),
            input_tokens: usage.prompt_tokens,
            cached_input_tokens: usage.prompt_tokens_details.cached_tokens.max(usage.prompt_cache_hit_tokens),
            cache_write_input_tokens: 0,
            output_tokens: usage.completion_tokens,
            reasoning_output_tokens: usage.completion_tokens_details.reasoning_tokens,
        }
    }
}

/// Decodes null, and a value of another type than expected, as the default.
fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(deserializer: D) -> Result<T, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either<T> {
        Expected(T),
        Other(serde::de::IgnoredAny),
    }
    Ok(match Either::deserialize(deserializer)? {
        Either::Expected(value) => value,
        Either::Other(_) => T::default(),
    })
}
