//! `list_agents`: the agents of the tree and what they are doing.

use loomd_model::ToolSpec;
use serde::Deserialize;
use serde_json::json;

use super::super::cx::ToolCx;
use super::super::spec::{function, string};
use super::super::tool::ToolFuture;
use super::action::Action;
use super::resolve;
use crate::agent_tree::ROOT;
use crate::tool_call::Call;

pub(crate) struct ListAgents;

#[derive(Deserialize)]
struct Args {
    path_prefix: Option<String>,
}

impl Action for ListAgents {
    const NAME: &str = "list_agents";

    fn spec(&self) -> ToolSpec {
        let description = "Lists the agents with their paths and what they are doing.";
        let prefix = ("path_prefix", string("Only agents at or below this path."));
        function(Self::NAME, description, &[prefix], &[])
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let Args { path_prefix } = call.arguments()?;
            let tree = &cx.thread.agent_tree;
            let own = tree.path(cx.action.turn.thread);
            let prefix = path_prefix.map(|prefix| resolve(&own, &prefix));
            let below = |path: &str| {
                prefix.as_deref().is_none_or(|prefix| {
                    path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
                })
            };
            let root = below(ROOT).then(|| json!({ "agent_name": ROOT, "agent_status": "running" }));
            let others = tree.paths().into_iter().filter(|(path, _)| below(path));
            let others = others.map(|(path, status)| json!({ "agent_name": path, "agent_status": status }));
            let agents: Vec<_> = root.into_iter().chain(others).collect();
            Ok(json!({ "agents": agents }).to_string().into())
        })
    }
}
