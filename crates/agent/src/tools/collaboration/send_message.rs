//! `send_message`: leaves a message for another agent, which it reads with its next model call.

use loomd_model::ToolSpec;
use loomd_protocol::SubAgentActivityKind;
use serde::Deserialize;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{function, string};
use super::super::tool::{Tool, ToolFuture, ToolGroup, ToolName};
use super::{GROUP, check_message, find, matches, name, offered, send, show};
use crate::tool_call::Call;

pub(crate) struct SendMessage;

const NAME: &str = "send_message";

#[derive(Deserialize)]
struct Args {
    target: String,
    message: String,
}

impl Tool for SendMessage {
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
        offered(scope).then(|| {
            function(
                NAME,
                "Leaves a message for an agent, which it reads with its next step. Starts nothing.",
                &[("target", string("The path of the agent.")), ("message", string("The message."))],
                &["target", "message"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let Args { target, message } = call.arguments()?;
            check_message(&message)?;
            let (id, path) = find(cx, &target)?;
            send(cx, id, &path, message, false).await?;
            show(cx, call, SubAgentActivityKind::Interacted, id, path).await;
            Ok("".into())
        })
    }
}
