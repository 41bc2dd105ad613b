//! `send_message` leaves a message for another agent, which it reads with its next model call. `followup_task` gives it a
//! task, which begins a turn unless one is running.

use loomd_model::ToolSpec;
use loomd_protocol::SubAgentActivityKind;
use serde::Deserialize;

use super::super::cx::ToolCx;
use super::super::spec::{function, string};
use super::super::tool::ToolFuture;
use super::action::Action;
use super::{check_message, find, show};
use crate::message::agent_message;
use crate::tool_call::{Call, ToolResult};

pub(crate) struct SendMessage;

pub(crate) struct FollowupTask;

#[derive(Deserialize)]
struct Args {
    target: String,
    message: String,
}

impl Action for SendMessage {
    const NAME: &str = "send_message";

    fn spec(&self) -> ToolSpec {
        spec(Self::NAME, "Leaves a message for an agent, which it reads with its next step. Starts nothing.")
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(send(cx, call, false))
    }
}

impl Action for FollowupTask {
    const NAME: &str = "followup_task";

    fn spec(&self) -> ToolSpec {
        spec(Self::NAME, "Gives an agent another task. It begins at once, or is added to what the agent is doing.")
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(send(cx, call, true))
    }
}

fn spec(name: &str, description: &str) -> ToolSpec {
    let parameters = [("target", string("The path of the agent.")), ("message", string("The message."))];
    function(name, description, &parameters, &["target", "message"])
}

/// Gives a message of the calling agent to another one, and perhaps starts a turn with it.
async fn send(cx: &ToolCx, call: &Call, start: bool) -> ToolResult {
    let Args { target, message } = call.arguments()?;
    check_message(&message)?;
    let (id, path) = find(cx, &target)?;
    let author = cx.thread.agent_tree.path(cx.action.turn.thread);
    cx.thread.host.send_message(id, agent_message(author, path.clone(), message), start, cx.origin()).await?;
    show(cx, call, SubAgentActivityKind::Interacted, id, path).await;
    Ok("".into())
}
