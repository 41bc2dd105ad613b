//! `interrupt_agent`: stops the running turn of another agent, which stays for further tasks.

use loomd_model::ToolSpec;
use loomd_protocol::SubAgentActivityKind;
use serde::Deserialize;
use serde_json::json;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{function, string};
use super::super::tool::{Tool, ToolFuture, ToolGroup, ToolName};
use super::{GROUP, find, matches, name, offered, show};
use crate::tool_call::Call;

pub(crate) struct InterruptAgent;

const NAME: &str = "interrupt_agent";

#[derive(Deserialize)]
struct Args {
    target: String,
}

impl Tool for InterruptAgent {
    fn name(&self) -> ToolName<'_> {
        name(NAME)
    }

    fn group(&self) -> Option<ToolGroup> {
        Some(GROUP)
    }

    fn matches(&self, call: &Call) -> bool {
        matches(call, NAME)
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let description = "Stops what an agent is doing. It keeps what it knows and takes further tasks.";
        let target = ("target", string("The path of the agent."));
        offered(scope).then(|| function(NAME, description, &[target], &["target"]))
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let Args { target } = call.arguments()?;
            let (id, path) = find(cx, &target)?;
            let before = cx.thread.agent_tree.status(id);
            cx.thread.host.interrupt_turn(id).await;
            show(cx, call, SubAgentActivityKind::Interrupted, id, path).await;
            Ok(json!({ "previous_status": before }).to_string().into())
        })
    }
}
