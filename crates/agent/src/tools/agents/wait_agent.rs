//! `wait_agent`: waits until one of several agents has a final status.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_model::ToolSpec;
use loomd_protocol::CollabAgentTool;
use loomd_store::ThreadId;
use loomd_store::rollout::{AgentStatus, CollabWaitingEnd, Event};
use serde::Deserialize;
use serde_json::json;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{array, function, number};
use super::super::tool::{Tool, ToolFuture, ToolName};
use super::{offered, parse_id, started};
use crate::agent_tree::is_final;
use crate::tool_call::{Call, ToolResult};
use crate::turns::collab;

pub(crate) struct WaitAgent;

/// The timeout of a call that names none, and the bounds of one that does.
const WAIT: Duration = Duration::from_secs(30);
const SHORTEST: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
struct Args {
    #[serde(alias = "ids")]
    targets: Vec<String>,
    timeout_ms: Option<i64>,
}

impl Tool for WaitAgent {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("wait_agent")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "wait_agent",
                "Waits until one of these agents is done and gives what it said last. Wait only when you cannot go on \
                 without it.",
                &[
                    ("targets", array(json!({ "type": "string" }), "The agents' ids.")),
                    ("timeout_ms", number("How long to wait; 30000 unless given, 10000 at least.")),
                ],
                &["targets"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(wait(cx, call))
    }
}

async fn wait(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    if args.targets.is_empty() {
        return Err("agent ids must be non-empty".into());
    }
    let ids = args.targets.iter().map(|id| parse_id(id)).collect::<Result<Vec<ThreadId>, _>>()?;
    let patience = match args.timeout_ms {
        Some(..=0) => return Err("timeout_ms must be greater than zero".into()),
        Some(ms) => Duration::from_millis(ms.unsigned_abs()).clamp(SHORTEST, LONGEST),
        None => WAIT,
    };
    turn.started(started(cx, call, CollabAgentTool::Wait, &ids, None)).await;
    let timed_out = tokio::select! {
        biased;
        () = cx.thread.agent_tree.until_one_is_final(&ids) => false,
        () = turn.cancel.cancelled() => false,
        () = tokio::time::sleep(patience) => true,
    };
    let now = ids.iter().map(|id| (id.to_string(), cx.thread.agent_tree.status(*id)));
    let statuses: BTreeMap<String, AgentStatus> = now.filter(|(_, status)| is_final(status)).collect();
    let end = CollabWaitingEnd {
        sender_thread_id: turn.thread_id.clone(),
        call_id: call.id.clone(),
        statuses: statuses.clone(),
    };
    turn.completed(collab::waiting(end.clone()), Some(Event::CollabWaitingEnd(end))).await;
    Ok(json!({ "status": statuses, "timed_out": timed_out }).to_string().into())
}
