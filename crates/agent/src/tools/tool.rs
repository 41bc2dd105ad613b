//! The trait of tools.

use std::pin::Pin;
use std::time::Duration;

use loomd_model::ToolSpec;

use super::cx::ToolCx;
use super::scope::ToolScope;
use crate::tool_call::{Call, ToolResult};

/// A tool at work.
pub(crate) type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

/// A decision whether a call may run. The error is the output of a call that may not.
pub(crate) type ApprovalFuture<'a> = Pin<Box<dyn Future<Output = Result<(), String>> + Send + 'a>>;

/// A tool: its name, its spec and its run. Order, deadlines, truncation and cancellation are the same for all tools and
/// are applied in `calls.rs`.
pub(crate) trait Tool: Send + Sync {
    fn name(&self) -> ToolName<'_>;

    /// The spec that the model is sent; `None` when the tool is not offered in this scope.
    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec>;

    /// The namespace that the model is sent the spec in, with a description; `None` for a tool of its own.
    fn group(&self) -> Option<ToolGroup> {
        None
    }

    /// Whether a call names this tool.
    fn matches(&self, call: &Call) -> bool {
        self.name().matches(call)
    }

    /// Whether it may run beside others of the same answer, provided that it was offered.
    fn parallel(&self) -> bool {
        false
    }

    /// Whether it can be called in this scope, offered or not.
    fn callable(&self, _scope: &ToolScope<'_>) -> bool {
        true
    }

    /// Whether it works on the machine of the thread, which a thread without an environment does not have.
    fn needs_environment(&self) -> bool {
        false
    }

    /// Whether it has no effect but notifications, so that a replay runs it again.
    fn harmless(&self) -> bool {
        false
    }

    /// Whether it notes itself when its effects begin, because it requests an approval first, or has no effects.
    fn notes_effects(&self) -> bool {
        self.harmless()
    }

    /// How long a call may run. Time spent in [`Tool::approve`] does not count.
    fn deadline(&self) -> Option<Duration> {
        None
    }

    /// Requests an approval before the call runs; `None` when it needs none, or when the tool requests one itself after
    /// its item has been shown, as commands and patches do.
    fn approve<'a>(&'a self, _cx: &'a ToolCx, _call: &'a Call) -> Option<ApprovalFuture<'a>> {
        None
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a>;
}

/// A namespace of tools, which is offered as one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolGroup {
    pub name: &'static str,
    pub description: &'static str,
}

/// The name by which a model calls a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ToolName<'a> {
    /// Tells tools of several sources apart that have the same name.
    pub namespace: Option<&'a str>,
    pub name: &'a str,
}

impl<'a> ToolName<'a> {
    /// A name without a namespace.
    pub const fn plain(name: &'a str) -> Self {
        Self { namespace: None, name }
    }

    /// Whether a call names this tool. Models may leave the namespace out.
    pub fn matches(self, call: &Call) -> bool {
        let same_namespace = match (self.namespace, call.namespace.as_deref()) {
            (Some(own), Some(called)) => own == called,
            _ => true,
        };
        self.name == call.name && same_namespace
    }
}
