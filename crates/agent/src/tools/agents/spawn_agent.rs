//! `spawn_agent`: starts an agent with a task of its own.

use std::sync::Arc;

use loomd_model::ToolSpec;
use loomd_protocol::{CollabAgentTool, ReasoningEffort, ThreadItem};
use loomd_store::rollout::{AgentStatus, CollabAgentSpawnEnd, Event};
use serde::Deserialize;

use super::super::cx::ToolCx;
use super::super::scope::ToolScope;
use super::super::spec::{boolean, function, string};
use super::super::tool::{Tool, ToolFuture, ToolName};
use super::{Message, items_schema, max_depth, max_threads, offered, prompt, started};
use crate::host::{AgentTask, ChildThread};
use crate::tool_call::{Call, ToolResult};
use crate::turns::collab;

pub(crate) struct SpawnAgent;

/// The kinds of agents that there are without configuration.
const ROLES: &[&str] = &["default", "explorer", "worker"];

#[derive(Deserialize)]
struct Args {
    #[serde(flatten)]
    message: Message,
    agent_type: Option<String>,
    model: Option<String>,
    reasoning_effort: Option<ReasoningEffort>,
    #[serde(default)]
    fork_context: bool,
}

impl Tool for SpawnAgent {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("spawn_agent")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        offered(scope).then(|| {
            function(
                "spawn_agent",
                "Starts another agent on a task that can be done beside your own work, and gives its id. It works in \
                 the same folder under the same permissions. Describe the task so that it can be done without \
                 questions, and say which files it may touch.",
                &[
                    ("message", string("The task, in words. Either this or items.")),
                    ("items", items_schema("The task, in parts. Either this or message.")),
                    ("agent_type", string("`explorer` for finding things out, `worker` for making changes, or a configured kind; `default` unless given.")),
                    ("model", string("Another model than yours.")),
                    ("reasoning_effort", string("Another effort than yours.")),
                    ("fork_context", boolean("Whether it knows everything that was said here so far.")),
                ],
                &[],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        offered(scope)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(spawn(cx, call))
    }
}

async fn spawn(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    let input = args.message.input()?;
    let prompt = prompt(&input);
    let effort = args.reasoning_effort.clone().or_else(|| turn.settings.reasoning_effort.clone());
    let mut item = started(cx, call, CollabAgentTool::SpawnAgent, &[], Some(prompt.clone()));
    if let ThreadItem::CollabAgentToolCall { model, reasoning_effort, .. } = &mut item {
        *model = Some(args.model.clone().unwrap_or_default());
        *reasoning_effort = Some(effort.clone().unwrap_or(ReasoningEffort::Medium));
    }
    turn.started(item).await;

    let mut settings = turn.settings.clone();
    settings.mode = loomd_protocol::ModeKind::Default;
    settings.mode_instructions = None;
    let checked = check(cx, &args.agent_type, &args.model, &args.reasoning_effort);
    let spawned = match checked {
        Ok(()) => {
            if let Some(model) = args.model {
                settings.model = model;
            }
            settings.reasoning_effort = effort.clone();
            let child = ChildThread {
                parent: turn.thread,
                depth: cx.thread.depth + 1,
                role: args.agent_type.clone(),
                settings: settings.clone(),
                profile: Arc::clone(&turn.profile),
                agent_tree: Arc::clone(&cx.thread.agent_tree),
                with_history: args.fork_context,
                path: None,
            };
            cx.thread.host.spawn(child, AgentTask::User(input), max_threads(turn), cx.origin()).await
        }
        Err(problem) => Err(problem),
    };
    let (new_thread_id, nickname, status) = match &spawned {
        Ok((id, nickname)) => (Some(id.to_string()), Some(nickname.clone()), cx.thread.agent_tree.status(*id)),
        Err(problem) => (None, None, AgentStatus::Errored(problem.clone())),
    };
    let end = CollabAgentSpawnEnd {
        call_id: call.id.clone(),
        sender_thread_id: turn.thread_id.clone(),
        new_thread_id,
        new_agent_nickname: nickname,
        new_agent_role: args.agent_type,
        prompt,
        model: settings.model,
        reasoning_effort: effort.unwrap_or(ReasoningEffort::Medium),
        status,
    };
    turn.completed(collab::spawn(end.clone()), Some(Event::CollabAgentSpawnEnd(end))).await;
    let (id, nickname) = spawned?;
    Ok(serde_json::json!({ "agent_id": id.to_string(), "nickname": nickname }).to_string().into())
}

pub(in crate::tools) fn check(
    cx: &ToolCx,
    role: &Option<String>,
    model: &Option<String>,
    effort: &Option<ReasoningEffort>,
) -> Result<(), String> {
    let turn = &cx.action.turn;
    if cx.thread.depth >= max_depth(turn) {
        return Err("Agent depth limit reached. Solve the task yourself.".into());
    }
    if let Some(role) = role {
        let configured = turn.profile.config.config.agents.as_ref();
        if !ROLES.contains(&role.as_str()) && !configured.is_some_and(|agents| agents.roles.contains_key(role)) {
            return Err(format!("unknown agent_type '{role}'"));
        }
    }
    let models = turn.profile.catalogue.list(true);
    if let Some(wanted) = model
        && *wanted != turn.settings.model
        && !models.iter().any(|model| model.model == *wanted)
    {
        let known: Vec<_> = models.iter().map(|model| model.model.as_str()).collect();
        return Err(format!("Unknown model `{wanted}` for spawn_agent. Available models: {}", known.join(", ")));
    }
    let name = model.as_ref().unwrap_or(&turn.settings.model);
    if let Some(effort) = effort
        && let Some(model) = models.iter().find(|model| model.model == *name)
        && !model.supported_reasoning_efforts.iter().any(|option| option.reasoning_effort == *effort)
    {
        let word = |effort: &ReasoningEffort| crate::context::name_of(effort).unwrap_or_default();
        let supported: Vec<_> =
            model.supported_reasoning_efforts.iter().map(|option| word(&option.reasoning_effort)).collect();
        return Err(format!(
            "Reasoning effort `{}` is not supported for model `{name}`. Supported reasoning efforts: {}",
            word(effort),
            supported.join(", ")
        ));
    }
    Ok(())
}
