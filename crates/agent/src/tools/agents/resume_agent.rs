//! `resume_agent`: opens an agent again that was closed.

use std::sync::Arc;

use loomd_model::ToolSpec;
use loomd_protocol::CollabAgentTool;
use loomd_store::rollout::{AgentStatus, CollabResumeEnd, Event};
use serde::Deserialize;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{function, string};
use super::super::tool::{Tool, ToolFuture, ToolName};
use super::{max_threads, offered, parse_id, started};
use crate::host::ChildThread;
use crate::tool_call::{Call, ToolResult};
use crate::turns::collab;

pub(crate) struct ResumeAgent;

#[derive(Deserialize)]
struct Args {
    id: String,
}

impl Tool for ResumeAgent {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("resume_agent")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "resume_agent",
                "Opens an agent again that was closed, so that it can be talked to.",
                &[("id", string("The agent's id."))],
                &["id"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(resume(cx, call))
    }
}

async fn resume(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    let id = parse_id(&args.id)?;
    turn.started(started(cx, call, CollabAgentTool::ResumeAgent, &[id], None)).await;
    let member = cx.thread.agent_tree.find(id);
    let resumed = if member.is_some() && cx.thread.host.is_loaded(id) {
        Ok(())
    } else {
        let child = ChildThread {
            parent: turn.thread,
            depth: cx.thread.depth + 1,
            role: member.as_ref().and_then(|member| member.role.clone()),
            settings: turn.settings.clone(),
            profile: Arc::clone(&turn.profile),
            agent_tree: Arc::clone(&cx.thread.agent_tree),
            with_history: false,
            path: None,
        };
        cx.thread.host.reopen(id, child, max_threads(turn)).await
    };
    let status = if resumed.is_ok() { cx.thread.agent_tree.status(id) } else { AgentStatus::NotFound };
    let member = cx.thread.agent_tree.find(id);
    let end = CollabResumeEnd {
        call_id: call.id.clone(),
        sender_thread_id: turn.thread_id.clone(),
        receiver_thread_id: id.to_string(),
        receiver_agent_nickname: member.as_ref().map(|member| member.nickname.clone()),
        receiver_agent_role: member.and_then(|member| member.role),
        status: status.clone(),
    };
    turn.completed(collab::resume(end.clone()), Some(Event::CollabResumeEnd(end))).await;
    resumed?;
    Ok(serde_json::json!({ "status": status }).to_string().into())
}
