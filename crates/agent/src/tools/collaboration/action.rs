//! What the tools of the namespace have in common.

use loomd_model::ToolSpec;

use super::super::agents;
use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::tool::{Tool, ToolFuture, ToolGroup, ToolName};
use crate::tool_call::Call;

const GROUP: ToolGroup = ToolGroup {
    name: "collaboration",
    description: "Starts other agents on tasks of their own and exchanges messages with them. Agents have paths: you are \
                  `/root` or below it, and an agent that you start is below you.",
};

/// One of the things that can be done with agents.
pub(crate) trait Action: Send + Sync {
    const NAME: &str;

    fn spec(&self) -> ToolSpec;

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a>;
}

/// The tool of an action.
pub(crate) struct Collaboration<A>(pub A);

impl<A: Action> Tool for Collaboration<A> {
    fn name(&self) -> ToolName<'_> {
        ToolName { namespace: Some(GROUP.name), name: A::NAME }
    }

    fn group(&self) -> Option<ToolGroup> {
        Some(GROUP)
    }

    /// The name counts in its namespace only.
    fn matches(&self, call: &Call) -> bool {
        call.namespace.as_deref() == Some(GROUP.name) && call.name == A::NAME
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        self.callable(scope).then(|| self.0.spec())
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        agents::by_path(scope) && agents::offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        self.0.run(cx, call)
    }
}
