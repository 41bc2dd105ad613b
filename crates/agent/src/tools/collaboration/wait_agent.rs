//! `wait_agent`: waits for a message of another agent, which follows the output.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_model::ToolSpec;
use loomd_protocol::CollabAgentTool;
use loomd_store::rollout::{CollabWaitingEnd, Event};
use serde::Deserialize;
use serde_json::json;

use super::super::agents::started;
use super::super::cx::ToolCx;
use super::super::spec::{function, number};
use super::super::tool::ToolFuture;
use super::action::Action;

use crate::tool_call::{Call, ToolResult};
use crate::turns::collab;

pub(crate) struct WaitAgent;

/// The timeout of a call that names none, and the longest.
const WAIT: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);

#[derive(Deserialize)]
struct Args {
    timeout_ms: Option<i64>,
}

impl Action for WaitAgent {
    const NAME: &str = "wait_agent";

    fn spec(&self) -> ToolSpec {
        let description =
            "Waits until an agent has a message for you, which follows. Returns at once when none is working.";
        let timeout = ("timeout_ms", number("How long to wait; 30000 unless given."));
        function(Self::NAME, description, &[timeout], &[])
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(wait(cx, call))
    }
}

async fn wait(cx: &ToolCx, call: &Call) -> ToolResult {
    let Args { timeout_ms } = call.arguments()?;
    let patience = match timeout_ms {
        Some(..=0) => return Err("timeout_ms must be greater than zero".into()),
        Some(ms) => Duration::from_millis(ms.unsigned_abs()).min(LONGEST),
        None => WAIT,
    };
    let turn = &cx.action.turn;
    turn.started(started(cx, call, CollabAgentTool::Wait, &[], None)).await;
    let timed_out = tokio::select! {
        biased;
        () = cx.thread.agent_tree.until_mail(turn.thread) => false,
        () = turn.cancel.cancelled() => false,
        () = tokio::time::sleep(patience) => true,
    };
    let end = CollabWaitingEnd {
        sender_thread_id: turn.thread_id.clone(),
        call_id: call.id.clone(),
        statuses: BTreeMap::new(),
    };
    turn.completed(collab::waiting(end.clone()), Some(Event::CollabWaitingEnd(end))).await;
    let message =
        if timed_out { "No agent has answered yet." } else { "Done waiting; messages follow, if there are any." };
    Ok(json!({ "message": message, "timed_out": timed_out }).to_string().into())
}
