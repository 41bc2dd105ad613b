//! `send_input`: starts or steers a turn of another agent.

use loomd_model::ToolSpec;
use loomd_protocol::CollabAgentTool;
use loomd_store::rollout::{AgentStatus, CollabAgentInteractionEnd, Event};
use serde::Deserialize;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{boolean, function, string};
use super::super::tool::{Tool, ToolFuture, ToolName};
use super::{Message, items_schema, offered, parse_id, prompt, started};
use crate::tool_call::{Call, ToolResult};
use crate::turns::collab;

pub(crate) struct SendInput;

#[derive(Deserialize)]
struct Args {
    #[serde(alias = "id")]
    target: String,
    #[serde(flatten)]
    message: Message,
    #[serde(default)]
    interrupt: bool,
}

impl Tool for SendInput {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("send_input")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "send_input",
                "Says something to an agent: more about its task, or a new one.",
                &[
                    ("target", string("The agent's id.")),
                    ("message", string("What to say. Either this or items.")),
                    ("items", items_schema("What to say, in parts. Either this or message.")),
                    ("interrupt", boolean("Whether it stops what it is doing first.")),
                ],
                &["target"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(send(cx, call))
    }
}

async fn send(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    let id = parse_id(&args.target)?;
    let input = args.message.input()?;
    let prompt = prompt(&input);
    turn.started(started(cx, call, CollabAgentTool::SendInput, &[id], Some(prompt.clone()))).await;
    let host = &cx.thread.host;
    // An agent reaches other agents of its tree only, and not itself.
    let reachable = id != turn.thread && cx.thread.agent_tree.find(id).is_some() && host.is_loaded(id);
    let sent = if reachable {
        if args.interrupt {
            host.interrupt_turn(id).await;
        }
        host.send_input(id, input, cx.origin()).await
    } else {
        Err(format!("agent with id {id} not found"))
    };
    let member = cx.thread.agent_tree.find(id);
    let status = if sent.is_ok() { cx.thread.agent_tree.status(id) } else { AgentStatus::NotFound };
    let end = CollabAgentInteractionEnd {
        call_id: call.id.clone(),
        sender_thread_id: turn.thread_id.clone(),
        receiver_thread_id: id.to_string(),
        receiver_agent_nickname: member.as_ref().map(|member| member.nickname.clone()),
        receiver_agent_role: member.and_then(|member| member.role),
        prompt,
        status,
    };
    turn.completed(collab::interaction(end.clone()), Some(Event::CollabAgentInteractionEnd(end))).await;
    Ok(serde_json::json!({ "submission_id": sent? }).to_string().into())
}
