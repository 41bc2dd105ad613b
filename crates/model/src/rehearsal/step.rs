//! The steps of the rehearsal, and the lines of a scenario that spell them.

use std::time::Duration;

use loomd_protocol::{JsonObject, JsonValue, MessagePhase, ResponseItem};
use serde::Deserialize;

use crate::{ModelError, ModelEvent, TokenUsage, event_json};

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Step {
    /// A message, streamed.
    Say {
        text: String,
        phase: Option<MessagePhase>,
    },
    /// A reasoning summary, streamed.
    Think(String),
    /// Reasoning itself, streamed.
    Reason(String),
    Call(ToolAction),
    /// The next call belongs to the same response as the one before.
    Also,
    /// A complete item.
    Item(Box<ResponseItem>),
    /// An event that no other step can express.
    Event(Box<Result<ModelEvent, ModelError>>),
    /// Fails; with `times`, only the first attempts.
    Fail {
        error: Box<ModelError>,
        times: Option<u32>,
    },
    /// Sets the delay between fragments from here on.
    Pace(Duration),
    Wait(Duration),
    Usage(TokenUsage),
    /// Ends the response even without a call.
    Break,
}

/// A tool call by purpose; the tool depends on which ones the request offers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ToolAction {
    Run {
        command: String,
        background: bool,
        escalated: bool,
    },
    /// Input for a command in the background.
    Type(String),
    Patch(String),
    Function {
        name: String,
        arguments: JsonValue,
    },
    Custom {
        name: String,
        input: String,
    },
    /// To the agent that was spawned last.
    SendAgent(String),
    WaitAgents,
    CloseAgent,
}

impl Step {
    pub fn say(text: impl Into<String>) -> Self {
        Self::Say { text: text.into(), phase: None }
    }

    pub fn call(name: &str, arguments: JsonValue) -> Self {
        Self::Call(ToolAction::Function { name: name.into(), arguments })
    }

    /// Parses a line of a scenario.
    pub fn read(line: &JsonValue) -> Result<Vec<Self>, String> {
        if line.get("type").is_some() {
            // Events without a meaning here are skipped: they may come from a recorded provider.
            return Ok(event_json::read(line).map(|event| Self::Event(Box::new(event))).into_iter().collect());
        }
        let object = line.as_object().ok_or("expected a JSON object")?;
        let (name, value) = object.iter().next().ok_or("expected a step, got an empty object")?;
        let text = || value.as_str().map(str::to_owned).ok_or(format!("invalid value for `{name}`: expected a string"));
        let millis = || {
            value
                .as_u64()
                .map(Duration::from_millis)
                .ok_or(format!("invalid value for `{name}`: expected a number of milliseconds"))
        };
        Ok(match name.as_str() {
            "say" => vec![Self::Say { text: text()?, phase: phase(object)? }],
            "think" => vec![Self::Think(text()?)],
            "reason" => vec![Self::Reason(text()?)],
            "run" => vec![Self::Call(ToolAction::Run {
                command: text()?,
                background: flag(object, "background"),
                escalated: flag(object, "escalated"),
            })],
            "patch" => vec![Self::Call(ToolAction::Patch(text()?))],
            "call" => vec![Self::call(&text()?, object.get("arguments").cloned().unwrap_or_default())],
            "custom" => {
                let input = object.get("input").and_then(JsonValue::as_str).unwrap_or_default().to_owned();
                vec![Self::Call(ToolAction::Custom { name: text()?, input })]
            }
            "also" => vec![Self::Also],
            "item" => {
                vec![Self::Item(Box::new(serde_json::from_value(value.clone()).map_err(|error| error.to_string())?))]
            }
            "fail" => {
                let mut line = JsonObject::from_iter([("kind".to_owned(), text()?.into())]);
                line.extend(object.iter().skip(1).map(|(name, value)| (name.clone(), value.clone())));
                let error = event_json::read_error(&line.into()).ok_or(format!("unknown failure `{}`", text()?))?;
                let times = object.get("times").and_then(JsonValue::as_u64).and_then(|times| u32::try_from(times).ok());
                vec![Self::Fail { error: Box::new(error), times }]
            }
            "pace_ms" => vec![Self::Pace(millis()?)],
            "wait_ms" => vec![Self::Wait(millis()?)],
            "usage" => vec![Self::Usage(usage(value)?)],
            "do" => super::words::parse(&text()?),
            other => return Err(format!("unknown step `{other}`")),
        })
    }
}

fn flag(object: &JsonObject, name: &str) -> bool {
    object.get(name).and_then(JsonValue::as_bool).unwrap_or(false)
}

fn phase(object: &JsonObject) -> Result<Option<MessagePhase>, String> {
    let phase = object.get("phase").cloned().unwrap_or_default();
    serde_json::from_value(phase).map_err(|error| error.to_string())
}

fn usage(value: &JsonValue) -> Result<TokenUsage, String> {
    #[derive(Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct UsageStep {
        input: i64,
        cached: i64,
        output: i64,
        reasoning: i64,
    }
    let UsageStep { input, cached, output, reasoning } =
        serde_json::from_value(value.clone()).map_err(|error| error.to_string())?;
    Ok(tokens(input, cached, output, reasoning))
}

pub(super) fn tokens(input: i64, cached: i64, output: i64, reasoning: i64) -> TokenUsage {
    TokenUsage {
        total_tokens: input.saturating_add(output),
        input_tokens: input,
        cached_input_tokens: cached,
        cache_write_input_tokens: 0,
        output_tokens: output,
        reasoning_output_tokens: reasoning,
    }
}
