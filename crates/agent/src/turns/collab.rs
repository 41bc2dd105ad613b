//! Items of stored events about child agents.

use std::collections::BTreeMap;

use loomd_protocol::{CollabAgentState, CollabAgentStatus, CollabAgentTool, CollabAgentToolCallStatus, ThreadItem};
use loomd_store::rollout::{
    AgentStatus, CollabAgentInteractionEnd, CollabAgentSpawnEnd, CollabCloseEnd, CollabResumeEnd, CollabWaitingEnd,
};

pub(crate) fn spawn(end: CollabAgentSpawnEnd) -> ThreadItem {
    let states: BTreeMap<_, _> = end.new_thread_id.map(|id| (id, end.status.clone())).into_iter().collect();
    let failed = states.is_empty() || is_failure(&end.status);
    let mut item = item(end.call_id, CollabAgentTool::SpawnAgent, end.sender_thread_id, states, failed);
    if let ThreadItem::CollabAgentToolCall { prompt, model, reasoning_effort, .. } = &mut item {
        *prompt = Some(end.prompt);
        *model = Some(end.model);
        *reasoning_effort = Some(end.reasoning_effort);
    }
    item
}

pub(crate) fn interaction(end: CollabAgentInteractionEnd) -> ThreadItem {
    let mut item =
        one(end.call_id, CollabAgentTool::SendInput, end.sender_thread_id, end.receiver_thread_id, end.status);
    if let ThreadItem::CollabAgentToolCall { prompt, .. } = &mut item {
        *prompt = Some(end.prompt);
    }
    item
}

pub(crate) fn waiting(end: CollabWaitingEnd) -> ThreadItem {
    let failed = end.statuses.values().any(is_failure);
    item(end.call_id, CollabAgentTool::Wait, end.sender_thread_id, end.statuses, failed)
}

pub(crate) fn close(end: CollabCloseEnd) -> ThreadItem {
    one(end.call_id, CollabAgentTool::CloseAgent, end.sender_thread_id, end.receiver_thread_id, end.status)
}

pub(crate) fn resume(end: CollabResumeEnd) -> ThreadItem {
    one(end.call_id, CollabAgentTool::ResumeAgent, end.sender_thread_id, end.receiver_thread_id, end.status)
}

fn one(id: String, tool: CollabAgentTool, sender: String, receiver: String, status: AgentStatus) -> ThreadItem {
    let failed = is_failure(&status);
    item(id, tool, sender, BTreeMap::from([(receiver, status)]), failed)
}

fn item(
    id: String,
    tool: CollabAgentTool,
    sender_thread_id: String,
    states: BTreeMap<String, AgentStatus>,
    failed: bool,
) -> ThreadItem {
    ThreadItem::CollabAgentToolCall {
        id,
        tool,
        status: if failed { CollabAgentToolCallStatus::Failed } else { CollabAgentToolCallStatus::Completed },
        sender_thread_id,
        receiver_thread_ids: states.keys().cloned().collect(),
        prompt: None,
        model: None,
        reasoning_effort: None,
        agents_states: states.into_iter().map(|(id, status)| (id, state(status))).collect(),
    }
}

fn is_failure(status: &AgentStatus) -> bool {
    matches!(status, AgentStatus::Errored(_) | AgentStatus::NotFound)
}

fn state(status: AgentStatus) -> CollabAgentState {
    let (status, message) = match status {
        AgentStatus::PendingInit => (CollabAgentStatus::PendingInit, None),
        AgentStatus::Running => (CollabAgentStatus::Running, None),
        AgentStatus::Interrupted => (CollabAgentStatus::Interrupted, None),
        AgentStatus::Completed(message) => (CollabAgentStatus::Completed, message),
        AgentStatus::Errored(message) => (CollabAgentStatus::Errored, Some(message)),
        AgentStatus::Shutdown => (CollabAgentStatus::Shutdown, None),
        AgentStatus::NotFound => (CollabAgentStatus::NotFound, None),
    };
    CollabAgentState { status, message }
}
