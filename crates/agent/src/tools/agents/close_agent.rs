//! `close_agent`: ends an agent and those that it started. It can be opened again.

use loomd_model::ToolSpec;
use loomd_protocol::CollabAgentTool;
use loomd_store::rollout::{AgentStatus, CollabCloseEnd, Event};
use serde::Deserialize;

use super::super::spec::{function, string};
use super::super::{Call, Offer, Tool, ToolCx, ToolFuture, ToolResult};
use super::{offered, parse_id, started};
use crate::turns::collab;

pub(crate) struct CloseAgent;

#[derive(Deserialize)]
struct Args {
    #[serde(alias = "id")]
    target: String,
}

impl Tool for CloseAgent {
    fn spec(&self, offer: &Offer<'_>) -> Option<ToolSpec> {
        offered(offer).then(|| {
            function(
                "close_agent",
                "Ends an agent that is no longer needed, and all that it started.",
                &[("target", string("The agent's id."))],
                &["target"],
            )
        })
    }

    fn callable(&self, offer: &Offer<'_>) -> bool {
        offered(offer)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(close(cx, call))
    }
}

async fn close(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.turn;
    let id = parse_id(&args.target)?;
    let member = cx.agent_tree.find(id);
    turn.started(started(cx, call, CollabAgentTool::CloseAgent, &[id], None)).await;
    let before = cx.agent_tree.status(id);
    let closed = match cx.threads.upgrade() {
        Some(threads) if member.is_some() => {
            threads.close_agent_tree(id, &cx.agent_tree).await;
            Ok(())
        }
        _ => Err(format!("agent with id {id} not found")),
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
