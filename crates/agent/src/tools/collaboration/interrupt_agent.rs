//! `interrupt_agent`: stops the running turn of another agent, which stays for further tasks.

use loomd_model::ToolSpec;
use loomd_protocol::SubAgentActivityKind;
use serde::Deserialize;
use serde_json::json;

use super::super::cx::ToolCx;
use super::super::spec::{function, string};
use super::super::tool::ToolFuture;
use super::action::Action;
use super::{find, show};
use crate::tool_call::Call;

pub(crate) struct InterruptAgent;

#[derive(Deserialize)]
struct Args {
    target: String,
}

impl Action for InterruptAgent {
    const NAME: &str = "interrupt_agent";

    fn spec(&self) -> ToolSpec {
        let description = "Stops what an agent is doing. It keeps what it knows and takes further tasks.";
        let target = ("target", string("The path of the agent."));
        function(Self::NAME, description, &[target], &["target"])
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
