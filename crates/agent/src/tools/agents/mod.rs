//! Tools with which an agent starts others and works with them.

mod close_agent;
mod in_namespace;
mod message;
mod resume_agent;
mod send_input;
mod spawn_agent;
mod wait_agent;

use std::collections::BTreeMap;

use loomd_config::Feature;
use loomd_protocol::{CollabAgentTool, CollabAgentToolCallStatus, ThreadItem};
use loomd_store::ThreadId;

pub(super) use close_agent::CloseAgent;
pub(super) use in_namespace::{InNamespace, Plain};
use message::{Message, items_schema, prompt};
pub(super) use resume_agent::ResumeAgent;
pub(super) use send_input::SendInput;
pub(super) use spawn_agent::{SpawnAgent, check as check_spawn};
pub(super) use wait_agent::WaitAgent;

use super::cx::ToolCx;
use super::scope::{Role, ToolScope};
use crate::tool_call::Call;
use crate::turn_cx::TurnCx;

/// The most open agents, unless configured.
const MAX_THREADS: usize = 6;

/// The greatest depth of an agent tree, unless configured.
const MAX_DEPTH: i32 = 1;

/// Whether an agent may start others with the tools of the namespace.
fn in_namespace(scope: &ToolScope<'_>) -> bool {
    offered(scope) && scope.turn.profile.has_newer_tools() && !by_path(scope)
}

/// Whether agents are addressed by paths, with the newer set of tools.
pub(super) fn by_path(scope: &ToolScope<'_>) -> bool {
    scope.turn.profile.has_newer_tools() && scope.has(Feature::MultiAgentV2)
}

/// Whether an agent may start others.
pub(super) fn offered(scope: &ToolScope<'_>) -> bool {
    scope.has(Feature::MultiAgent) && scope.role != Role::Reviewer && scope.depth < max_depth(scope.turn)
}

pub(super) fn max_depth(turn: &TurnCx) -> i32 {
    let agents = turn.profile.config.config.agents.as_ref();
    agents.and_then(|agents| agents.max_depth).map_or(MAX_DEPTH, |depth| depth.get())
}

pub(super) fn max_threads(turn: &TurnCx) -> usize {
    let agents = turn.profile.config.config.agents.as_ref();
    agents.and_then(|agents| agents.max_threads).map_or(MAX_THREADS, |threads| threads.get())
}

fn parse_id(text: &str) -> Result<ThreadId, String> {
    text.parse().map_err(|error| format!("invalid agent id {text}: {error}"))
}

/// The item of a call when it begins.
pub(super) fn started(
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
        sender_thread_id: cx.action.turn.thread_id.clone(),
        receiver_thread_ids: receivers.iter().map(ThreadId::to_string).collect(),
        prompt,
        model: None,
        reasoning_effort: None,
        agents_states: BTreeMap::new(),
    }
}
