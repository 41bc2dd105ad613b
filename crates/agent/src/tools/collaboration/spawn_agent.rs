//! `spawn_agent`: starts an agent with a task of its own.

use std::sync::Arc;

use loomd_model::ToolSpec;
use loomd_protocol::{ModeKind, ReasoningEffort, SubAgentActivityKind};
use loomd_store::rollout::CompletedItem;
use serde::Deserialize;
use serde_json::json;

use super::super::agents::{check_spawn, max_threads};
use super::super::cx::ToolCx;
use super::super::spec::{function, string};
use super::super::tool::ToolFuture;
use super::action::Action;
use super::{check_message, check_name, resolve};
use crate::host::{AgentTask, ChildThread};
use crate::message::agent_message;
use crate::tool_call::{Call, ToolResult};

pub(crate) struct SpawnAgent;

#[derive(Deserialize)]
struct Args {
    task_name: String,
    message: String,
    fork_turns: Option<String>,
    model: Option<String>,
    reasoning_effort: Option<ReasoningEffort>,
}

impl Action for SpawnAgent {
    const NAME: &str = "spawn_agent";

    fn spec(&self) -> ToolSpec {
        function(
            Self::NAME,
            "Starts another agent on a task that can be done beside your own work, and gives its path. It works in the \
                 same folder under the same permissions, and its answer comes to you as a message.",
            &[
                ("task_name", string("The name of the agent, the last part of its path: lower case, digits, `_`.")),
                ("message", string("The task, so that it can be done without questions.")),
                ("fork_turns", string("`all` if it should know what was said here so far; `none` unless given.")),
                ("model", string("Another model than yours.")),
                ("reasoning_effort", string("Another effort than yours.")),
            ],
            &["task_name", "message"],
        )
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(spawn(cx, call))
    }
}

async fn spawn(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    check_name(&args.task_name)?;
    check_message(&args.message)?;
    check_spawn(cx, &None, &args.model, &args.reasoning_effort)?;
    let (turn, tree) = (&cx.action.turn, &cx.thread.agent_tree);
    let own = tree.path(turn.thread);
    let path = resolve(&own, &args.task_name);
    if tree.by_path(&path).is_some() {
        return Err(format!("there is an agent {path} already; give it a followup_task or choose another name"));
    }
    let mut settings = turn.settings.clone();
    (settings.mode, settings.mode_instructions) = (ModeKind::Default, None);
    settings.model = args.model.unwrap_or(settings.model);
    settings.reasoning_effort = args.reasoning_effort.or(settings.reasoning_effort);
    let (model, effort) = (settings.model.clone(), settings.reasoning_effort.clone());
    let child = ChildThread {
        parent: turn.thread,
        depth: cx.thread.depth + 1,
        role: None,
        settings,
        profile: Arc::clone(&turn.profile),
        agent_tree: Arc::clone(tree),
        with_history: args.fork_turns.is_some_and(|turns| turns != "none"),
        path: Some(path.clone()),
    };
    let task = AgentTask::Message(agent_message(own, path.clone(), args.message));
    let (id, _) = cx.thread.host.spawn(child, task, max_threads(turn), cx.origin()).await?;
    turn.complete_at_once(CompletedItem::SubAgentActivity {
        id: call.id.clone(),
        kind: SubAgentActivityKind::Started,
        agent_thread_id: id.to_string(),
        agent_path: path.clone(),
        model: Some(model),
        reasoning_effort: effort,
    })
    .await;
    Ok(json!({ "task_name": path }).to_string().into())
}
