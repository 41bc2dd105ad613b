//! The newer set of tools for agents: agents are addressed by paths, get tasks as messages, and answer with messages.
//! What happens to them is shown as `subAgentActivity` items.

mod action;
mod interrupt_agent;
mod list_agents;
mod message;
mod spawn_agent;
mod wait_agent;

use loomd_protocol::SubAgentActivityKind;
use loomd_store::ThreadId;
use loomd_store::rollout::CompletedItem;

pub(super) use action::Collaboration;
pub(super) use interrupt_agent::InterruptAgent;
pub(super) use list_agents::ListAgents;
pub(super) use message::{FollowupTask, SendMessage};
pub(super) use spawn_agent::SpawnAgent;
pub(super) use wait_agent::WaitAgent;

use super::cx::ToolCx;
use crate::tool_call::Call;

/// The path that a target means: an absolute one, or one below the calling agent.
fn resolve(own: &str, target: &str) -> String {
    match target.trim().trim_end_matches('/') {
        path if path.starts_with('/') => path.to_owned(),
        path => format!("{own}/{path}"),
    }
}

/// The agent that a target names, with its path. The error is a text for the model.
fn find(cx: &ToolCx, target: &str) -> Result<(ThreadId, String), String> {
    let tree = &cx.thread.agent_tree;
    let path = resolve(&tree.path(cx.action.turn.thread), target);
    match tree.by_path(&path) {
        Some(id) => Ok((id, path)),
        None => Err(format!("there is no agent {path}; list_agents shows which there are")),
    }
}

/// A segment of a path: lower case letters, digits and `_`.
fn check_name(name: &str) -> Result<(), String> {
    let valid = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    match name {
        "" => Err("task_name must not be empty".into()),
        "root" => Err("task_name must not be `root`".into()),
        name if name.bytes().all(valid) => Ok(()),
        name => Err(format!("task_name `{name}` may only have lower case letters, digits and underscores")),
    }
}

fn check_message(message: &str) -> Result<(), String> {
    if message.trim().is_empty() { Err("message must not be empty".into()) } else { Ok(()) }
}

/// Shows what a call did with an agent.
async fn show(cx: &ToolCx, call: &Call, kind: SubAgentActivityKind, id: ThreadId, path: String) {
    let activity = CompletedItem::SubAgentActivity {
        id: call.id.clone(),
        kind,
        agent_thread_id: id.to_string(),
        agent_path: path,
        model: None,
        reasoning_effort: None,
    };
    cx.action.turn.complete_at_once(activity).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_relative_to_the_calling_agent_unless_they_begin_with_a_slash() {
        for (target, path) in [("helper", "/root/a/helper"), ("/root/b", "/root/b"), (" b/c/ ", "/root/a/b/c")] {
            assert_eq!(resolve("/root/a", target), path);
        }
    }

    #[test]
    fn names_are_lower_case_words() {
        assert!(["helper", "a_1"].iter().all(|name| check_name(name).is_ok()));
        for wrong in ["", "root", "Helper", "a/b", "a b", "ä"] {
            assert!(check_name(wrong).is_err(), "{wrong}");
        }
    }
}
