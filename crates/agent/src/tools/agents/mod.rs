//! Tools with which an agent starts others and works with them.

mod close_agent;
mod resume_agent;
mod send_input;
mod spawn_agent;
mod wait_agent;

use std::collections::BTreeMap;

use loomd_config::Feature;
use loomd_protocol::{CollabAgentTool, CollabAgentToolCallStatus, ThreadItem, UserInput};
use loomd_store::ThreadId;
use serde::Deserialize;

pub(super) use close_agent::CloseAgent;
pub(super) use resume_agent::ResumeAgent;
pub(super) use send_input::SendInput;
pub(super) use spawn_agent::SpawnAgent;
pub(super) use wait_agent::WaitAgent;

use super::{Call, Offer, Role, ToolCx};

/// How many agents there may be at a time when nothing is configured.
const MAX_THREADS: usize = 6;

/// How far agents may start agents that start agents when nothing is configured.
const MAX_DEPTH: i32 = 1;

/// Whether an agent may start others.
fn offered(offer: &Offer<'_>) -> bool {
    offer.has(Feature::MultiAgent) && offer.role != Role::Reviewer && offer.depth < max_depth(offer.cx)
}

fn max_depth(turn: &crate::turn::TurnCx) -> i32 {
    let agents = turn.profile.config.config.agents.as_ref();
    agents.and_then(|agents| agents.max_depth).map_or(MAX_DEPTH, |depth| depth.get())
}

fn max_threads(turn: &crate::turn::TurnCx) -> usize {
    let agents = turn.profile.config.config.agents.as_ref();
    agents.and_then(|agents| agents.max_threads).map_or(MAX_THREADS, |threads| threads.get())
}

/// What one agent says to another: a text, or parts as a user would send them.
#[derive(Deserialize)]
struct Said {
    message: Option<String>,
    items: Option<Vec<UserInput>>,
}

impl Said {
    fn input(self) -> Result<Vec<UserInput>, String> {
        match (self.message, self.items) {
            (Some(_), Some(_)) => Err("Provide either message or items, but not both".into()),
            (None, None) => Err("Provide one of: message or items".into()),
            (Some(message), None) if message.trim().is_empty() => Err("Empty message can't be sent to an agent".into()),
            (Some(text), None) => Ok(vec![UserInput::Text { text, text_elements: Vec::new() }]),
            (None, Some(items)) if items.is_empty() => Err("Items can't be empty".into()),
            (None, Some(items)) => Ok(items),
        }
    }
}

/// The texts of an input, for showing.
fn prompt(input: &[UserInput]) -> String {
    let texts = input.iter().map(|part| match part {
        UserInput::Text { text, .. } => text.clone(),
        UserInput::Image { .. } => "[image]".into(),
        UserInput::LocalImage { path } => format!("[local_image:{path}]"),
        UserInput::Skill { name, .. } => format!("[skill:${name}]"),
        UserInput::Mention { name, .. } => format!("[mention:${name}]"),
        UserInput::Audio { .. } | UserInput::LocalAudio { .. } => "[audio]".into(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

fn parse_id(text: &str) -> Result<ThreadId, String> {
    text.parse().map_err(|error| format!("invalid agent id {text}: {error}"))
}

/// The item of a call when it begins.
fn started(
    cx: &ToolCx,
    call: &Call,
    tool: CollabAgentTool,
    receivers: &[ThreadId],
    prompt: Option<String>,
) -> ThreadItem {
    ThreadItem::CollabAgentToolCall {
        id: call.id.clone(),
        tool,
        status: CollabAgentToolCallStatus::InProgress,
        sender_thread_id: cx.turn.thread_id.clone(),
        receiver_thread_ids: receivers.iter().map(ThreadId::to_string).collect(),
        prompt,
        model: None,
        reasoning_effort: None,
        agents_states: BTreeMap::new(),
    }
}
