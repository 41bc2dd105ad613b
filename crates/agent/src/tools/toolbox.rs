//! The tools of one turn.

use std::sync::Arc;

use loomd_model::{ToolSpec, Tools};

use super::cx::ToolCx;
use super::scope::ToolScope;
use super::source::{ToolList, ToolSource};
use super::tool::{Tool, ToolGroup};
use crate::guard::ActionCx;
use crate::tool_call::Call;

/// Whether a tool has the environment that it needs.
fn has_environment(scope: &ToolScope<'_>, tool: &dyn Tool) -> bool {
    scope.turn.profile.has_environment || !tool.needs_environment()
}

/// Puts the specs of a namespace into one, in the place of its first.
fn grouped(specs: impl Iterator<Item = (Option<ToolGroup>, ToolSpec)>) -> Vec<ToolSpec> {
    let mut all: Vec<(Option<ToolGroup>, Vec<ToolSpec>)> = Vec::new();
    for (group, spec) in specs {
        match all.iter_mut().find(|(known, _)| group.is_some() && *known == group) {
            Some((_, members)) => members.push(spec),
            None => all.push((group, vec![spec])),
        }
    }
    let namespace = |group: ToolGroup, members: Vec<ToolSpec>| {
        ToolSpec::Other(serde_json::json!({
            "type": "namespace", "name": group.name, "description": group.description, "tools": members,
        }))
    };
    let specs = all.into_iter().flat_map(|(group, members)| match group {
        Some(group) => vec![namespace(group, members)],
        None => members,
    });
    specs.collect()
}

/// A snapshot of all sources, and the specs that the model is sent.
pub(crate) struct Toolbox {
    cx: Arc<ToolCx>,
    sources: Arc<[Arc<dyn ToolSource>]>,
    lists: Vec<ToolList>,
    offered: Arc<Tools>,
}

impl Toolbox {
    pub fn new(cx: Arc<ToolCx>, sources: Arc<[Arc<dyn ToolSource>]>) -> Self {
        let lists: Vec<ToolList> = sources.iter().map(|source| source.snapshot()).collect();
        let scope = cx.scope();
        let tools = lists.iter().flat_map(|list| list.iter());
        let specs = grouped(
            tools
                .filter(|tool| has_environment(&scope, &***tool))
                .filter_map(|tool| Some((tool.group(), tool.spec(&scope)?))),
        );
        Self { cx, sources, lists, offered: Arc::new(Tools::new(specs)) }
    }

    /// The toolbox with the tools that there are now; `None` when they are the same.
    pub fn refreshed(&self) -> Option<Self> {
        let same = self.sources.iter().zip(&self.lists).all(|(source, list)| Arc::ptr_eq(&source.snapshot(), list));
        (!same).then(|| Self::new(Arc::clone(&self.cx), Arc::clone(&self.sources)))
    }

    /// The tools of a review inside of this turn, whose own context is `action`.
    pub fn for_review(&self, action: ActionCx) -> Self {
        Self::new(Arc::new(self.cx.for_review(action)), Arc::clone(&self.sources))
    }

    pub fn cx(&self) -> &Arc<ToolCx> {
        &self.cx
    }

    pub fn offered(&self) -> Arc<Tools> {
        Arc::clone(&self.offered)
    }

    /// Whether the model was sent the spec of a tool of this name.
    pub(super) fn offers(&self, name: &str) -> bool {
        let in_namespace = |spec: &ToolSpec| match spec {
            ToolSpec::Other(value) => {
                value["tools"].as_array().is_some_and(|tools| tools.iter().any(|tool| tool["name"] == name))
            }
            _ => false,
        };
        self.offered.specs().iter().any(|offered| offered.name() == name || in_namespace(offered))
    }

    /// The tool that a call names: of several with the same name, the first that can be called.
    pub(super) fn find(&self, call: &Call) -> Option<&Arc<dyn Tool>> {
        let scope = self.cx.scope();
        let mut tools = self.lists.iter().flat_map(|list| list.iter());
        tools.find(|tool| tool.matches(call) && tool.callable(&scope) && has_environment(&scope, &***tool))
    }
}
