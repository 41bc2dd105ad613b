//! The tools of one turn.

use std::sync::Arc;

use loomd_model::{ToolSpec, Tools};

use super::cx::ToolCx;
use super::source::{ToolList, ToolSource};
use super::tool::Tool;
use crate::guard::ActionCx;
use crate::tool_call::Call;

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
        let specs = lists.iter().flat_map(|list| list.iter()).filter_map(|tool| tool.spec(&scope)).collect();
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
        self.offered.specs().iter().map(ToolSpec::name).any(|offered| offered == name)
    }

    /// The tool that a call names: of several with the same name, the first that can be called.
    pub(super) fn find(&self, call: &Call) -> Option<&Arc<dyn Tool>> {
        let scope = self.cx.scope();
        let mut tools = self.lists.iter().flat_map(|list| list.iter());
        tools.find(|tool| tool.name().matches(call) && tool.callable(&scope))
    }
}
