//! `close_agent`: ends an agent and those that it started. It can be opened again.

use loomd_model::ToolSpec;
use loomd_protocol::CollabAgentTool;
use loomd_store::rollout::{AgentStatus, CollabCloseEnd, Event};
use serde::Deserialize;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{function, string};
use super::super::tool::{Tool, ToolFuture, ToolName};
use super::{offered, parse_id, started};
use crate::tool_call::{Call, ToolResult};
use crate::turns::collab;

pub(crate) struct CloseAgent;

#[derive(Deserialize)]
struct Args {
    #[serde(alias = "id")]
    target: String,
}

impl Tool for CloseAgent {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("close_agent")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "close_agent",
                "Ends an agent that is no longer needed, and all that it started.",
                &[("target", string("The agent's id."))],
                &["target"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(close(cx, call))
    }
}

async fn close(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    let id = parse_id(&args.target)?;
    let member = cx.thread.agent_tree.find(id);
    turn.started(started(cx, call, CollabAgentTool::CloseAgent, &[id], None)).await;
    let before = cx.thread.agent_tree.status(id);
    let closed = if member.is_some() {
        cx.thread.host.close_agents(id, &cx.thread.agent_tree).await;
        Ok(())
    } else {
        Err(format!("agent with id {id} not found"))
    };
    let end = CollabCloseEnd {
        call_id: call.id.clone(),
        sender_thread_id: turn.thread_id.clone(),
        receiver_thread_id: id.to_string(),
        receiver_agent_nickname: member.as_ref().map(|member| member.nickname.clone()),
        receiver_agent_role: member.and_then(|member| member.role),
        status: if closed.is_ok() { before.clone() } else { AgentStatus::NotFound },
    };
    turn.completed(collab::close(end.clone()), Some(Event::CollabCloseEnd(end))).await;
    closed?;
    Ok(serde_json::json!({ "previous_status": before }).to_string().into())
}
