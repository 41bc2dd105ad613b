//! The tools of agents as newer clients have them: in a namespace, without which they cannot be called.

use std::time::Duration;

use loomd_model::ToolSpec;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::tool::{Tool, ToolFuture, ToolGroup, ToolName};
use crate::tool_call::Call;

pub(crate) const GROUP: ToolGroup = ToolGroup {
    name: "multi_agent_v1",
    description: "Starts other agents on tasks, sends them input, and waits for what they answer.",
};

/// A tool of the namespace.
pub(crate) struct InNamespace<T>(pub T);

impl<T: Tool> Tool for InNamespace<T> {
    fn name(&self) -> ToolName<'_> {
        ToolName { namespace: Some(GROUP.name), name: self.0.name().name }
    }

    fn group(&self) -> Option<ToolGroup> {
        Some(GROUP)
    }

    fn matches(&self, call: &Call) -> bool {
        call.namespace.as_deref() == Some(GROUP.name) && call.name == self.0.name().name
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        super::in_namespace(scope).then(|| self.0.spec(scope))?
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        super::in_namespace(scope)
    }

    fn deadline(&self) -> Option<Duration> {
        self.0.deadline()
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        self.0.run(cx, call)
    }
}

/// A tool outside of the namespace, for clients of the older release.
pub(crate) struct Plain<T>(pub T);

impl<T: Tool> Tool for Plain<T> {
    fn name(&self) -> ToolName<'_> {
        self.0.name()
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        self.callable(scope).then(|| self.0.spec(scope))?
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        !scope.turn.profile.has_newer_tools() && self.0.callable(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        self.0.run(cx, call)
    }
}
