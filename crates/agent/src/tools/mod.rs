//! The tools that a model can call. A tool is its spec, its arguments and its run; when it may run, what
//! becomes of its output, and what happens when the turn is stopped is the same for all and is done here.
//!
//! [`TOOLS`] is the table of all tools in the order in which they are offered. A tool can be called whether
//! or not it is offered, unless it says otherwise.

mod agents;
mod apply_patch;
mod calls;
mod command;
mod deltas;
mod dynamic;
mod exec_command;
mod net_diff;
mod request_permissions;
mod request_user_input;
mod shell;
mod shell_command;
mod spec;
mod update_plan;
mod view_image;
mod write_stdin;

use std::collections::HashSet;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use loomd_config::{Feature, FeatureSet};
use loomd_model::{ToolSpec, Tools};
use loomd_protocol::{
    FunctionCallOutputBody, InputModality, LocalShellAction, ResponseItem, SandboxPolicy, WebSearchMode,
};
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::WeakSender;

pub(crate) use calls::Calls;
pub(crate) use command::{Task, run as run_command};

use crate::agent_tree::AgentTree;
use crate::guard::Guard;
use crate::hooks::ThreadHooks;
use crate::services::Services;
use crate::shell_memory::ShellMemory;
use crate::terminals::Terminals;
use crate::thread::Op;
use crate::threads::WeakThreads;
use crate::turn::TurnCx;
use net_diff::NetDiff;

/// A tool's answer to the model: what it found, or why not.
pub(crate) type ToolResult = Result<Output, String>;

/// A tool at work.
pub(crate) type ToolFuture<'a> = Pin<Box<dyn Future<Output = ToolResult> + Send + 'a>>;

pub(crate) trait Tool: Send + Sync {
    /// `None` when it is not offered here.
    fn spec(&self, offer: &Offer<'_>) -> Option<ToolSpec>;

    /// Whether it may run beside others of the same answer, provided that it was offered.
    fn parallel(&self) -> bool {
        false
    }

    /// Whether it can be called here at all.
    fn callable(&self, _offer: &Offer<'_>) -> bool {
        true
    }

    /// Whether nothing but the client is touched, so that it can be called again when a thread is replayed.
    fn harmless(&self) -> bool {
        false
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a>;
}

/// All tools by name.
const TOOLS: &[(&str, &dyn Tool)] = &[
    ("exec_command", &exec_command::ExecCommand),
    ("write_stdin", &write_stdin::WriteStdin),
    ("shell_command", &shell_command::ShellCommand),
    ("shell", &shell::Shell),
    ("container.exec", &shell::Alias),
    ("local_shell", &shell::Alias),
    ("update_plan", &update_plan::UpdatePlan),
    ("request_user_input", &request_user_input::RequestUserInput),
    ("request_permissions", &request_permissions::RequestPermissions),
    ("apply_patch", &apply_patch::ApplyPatch),
    ("view_image", &view_image::ViewImage),
    ("spawn_agent", &agents::SpawnAgent),
    ("send_input", &agents::SendInput),
    ("resume_agent", &agents::ResumeAgent),
    ("wait_agent", &agents::WaitAgent),
    ("close_agent", &agents::CloseAgent),
];

/// Tools whose output says how long they ran when they are stopped.
const SHELLS: &[&str] = &["shell", "container.exec", "local_shell", "shell_command"];

/// For whom the tools are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The agent that the user talks to.
    Main,
    /// An agent that another one started.
    Child,
    Reviewer,
}

/// What decides which tools are offered.
pub(crate) struct Offer<'a> {
    pub cx: &'a TurnCx,
    pub role: Role,
    /// How many agents are between it and the user.
    pub depth: i32,
    pub features: FeatureSet,
}

impl Offer<'_> {
    pub fn has(&self, feature: Feature) -> bool {
        self.features.enabled(feature)
    }
}

/// What tools work with.
pub(crate) struct ToolCx {
    pub turn: Arc<TurnCx>,
    pub services: Arc<Services>,
    pub role: Role,
    pub terminals: Arc<Terminals>,
    /// The thread's task.
    pub ops: WeakSender<Op>,
    pub diff: Arc<Mutex<NetDiff>>,
    pub threads: WeakThreads,
    pub agent_tree: Arc<AgentTree>,
    pub depth: i32,
    pub guard: Arc<Guard>,
    pub hooks: Arc<ThreadHooks>,
    pub shell_memory: Arc<ShellMemory>,
}

/// What the tools of a thread share from turn to turn.
#[derive(Clone)]
pub(crate) struct Kit {
    pub services: Arc<Services>,
    pub role: Role,
    pub terminals: Arc<Terminals>,
    pub ops: WeakSender<Op>,
    pub threads: WeakThreads,
    pub agent_tree: Arc<AgentTree>,
    /// How many agents are between this one and the user.
    pub depth: i32,
    pub guard: Arc<Guard>,
    pub hooks: Arc<ThreadHooks>,
    pub shell_memory: Arc<ShellMemory>,
}

/// The tools of one turn.
pub(crate) struct Toolbox {
    cx: Arc<ToolCx>,
    offered: Arc<Tools>,
    names: HashSet<String>,
}

impl Toolbox {
    pub fn new(turn: &Arc<TurnCx>, kit: Kit) -> Self {
        Self::with(turn, kit, Arc::default())
    }

    fn with(turn: &Arc<TurnCx>, kit: Kit, diff: Arc<Mutex<NetDiff>>) -> Self {
        let offer = Offer { cx: turn, role: kit.role, depth: kit.depth, features: turn.profile.config.features };
        let mut specs: Vec<ToolSpec> = Vec::new();
        for (name, tool) in TOOLS {
            // The provider's own tools stand between ours.
            if *name == "view_image" {
                specs.extend(web_search(&offer));
                specs.extend(image_generation(&offer));
            }
            specs.extend(tool.spec(&offer));
        }
        if kit.role == Role::Main {
            specs.extend(dynamic::specs(&turn.profile));
        }
        let names = specs.iter().map(|spec| spec.name().to_owned()).collect();
        let Kit { services, role, terminals, ops, threads, agent_tree, depth, guard, hooks, shell_memory } = kit;
        let cx = ToolCx {
            turn: Arc::clone(turn),
            services,
            role,
            terminals,
            ops,
            diff,
            threads,
            agent_tree,
            depth,
            guard,
            hooks,
            shell_memory,
        };
        Self { cx: Arc::new(cx), offered: Arc::new(Tools::new(specs)), names }
    }

    /// The tools of a reviewer that works in the same surroundings.
    pub fn for_review(turn: &Arc<TurnCx>, of: &Self) -> Self {
        let kit = Kit {
            services: Arc::clone(&of.cx.services),
            role: Role::Reviewer,
            terminals: Arc::clone(&of.cx.terminals),
            ops: of.cx.ops.clone(),
            threads: of.cx.threads.clone(),
            agent_tree: Arc::clone(&of.cx.agent_tree),
            depth: of.cx.depth,
            guard: Arc::clone(&of.cx.guard),
            hooks: Arc::new(of.cx.hooks.within()),
            shell_memory: Arc::clone(&of.cx.shell_memory),
        };
        Self::with(turn, kit, Arc::clone(&of.cx.diff))
    }

    pub fn cx(&self) -> &Arc<ToolCx> {
        &self.cx
    }

    pub fn offered(&self) -> Arc<Tools> {
        Arc::clone(&self.offered)
    }

    fn find(&self, name: &str) -> Option<&'static dyn Tool> {
        let turn = &self.cx.turn;
        let Some((_, tool)) = TOOLS.iter().find(|(known, _)| *known == name) else {
            return dynamic::knows(&turn.profile, name).then_some(&dynamic::Dynamic);
        };
        let (role, depth) = (self.cx.role, self.cx.depth);
        let offer = Offer { cx: turn, role, depth, features: turn.profile.config.features };
        tool.callable(&offer).then_some(*tool)
    }
}

/// A call of a tool.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub id: String,
    pub name: String,
    pub input: CallInput,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum CallInput {
    /// JSON, as the model wrote it.
    Arguments(String),
    /// Free text.
    Text(String),
}

impl Call {
    /// The call that an item of the model is, if it is one that can be answered.
    pub fn of(item: &ResponseItem) -> Option<Self> {
        Some(match item {
            ResponseItem::FunctionCall { name, arguments, call_id, .. } => {
                Self { id: call_id.clone(), name: name.clone(), input: CallInput::Arguments(arguments.clone()) }
            }
            ResponseItem::CustomToolCall { name, input, call_id, .. } => {
                Self { id: call_id.clone(), name: name.clone(), input: CallInput::Text(input.clone()) }
            }
            ResponseItem::LocalShellCall { call_id: Some(call_id), action, .. } => {
                let LocalShellAction::Exec { command, timeout_ms, working_directory, .. } = action;
                let arguments = serde_json::json!({
                    "command": command, "timeout_ms": timeout_ms, "workdir": working_directory,
                });
                Self {
                    id: call_id.clone(),
                    name: "local_shell".into(),
                    input: CallInput::Arguments(arguments.to_string()),
                }
            }
            _ => return None,
        })
    }

    /// The arguments, read.
    pub fn arguments<T: DeserializeOwned>(&self) -> Result<T, String> {
        let text = match &self.input {
            CallInput::Arguments(text) => text.as_str(),
            CallInput::Text(_) => return Err(format!("{} takes arguments, not text", self.name)),
        };
        serde_json::from_str(text).map_err(|error| format!("failed to parse function arguments: {error}"))
    }

    /// What the model is told when there is no such tool.
    fn unsupported(&self) -> String {
        match self.input {
            CallInput::Arguments(_) => format!("unsupported call: {}", self.name),
            CallInput::Text(_) => format!("unsupported custom tool call: {}", self.name),
        }
    }

    fn output(&self, output: FunctionCallOutputBody) -> ResponseItem {
        let call_id = self.id.clone();
        match self.input {
            CallInput::Arguments(_) => ResponseItem::FunctionCallOutput { call_id, output },
            CallInput::Text(_) => ResponseItem::CustomToolCallOutput { call_id, name: None, output },
        }
    }
}

/// What a tool gives back.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Output {
    pub body: FunctionCallOutputBody,
    /// What the model should know besides.
    pub notes: Vec<ResponseItem>,
}

impl From<String> for Output {
    fn from(text: String) -> Self {
        Self { body: FunctionCallOutputBody::Text(text), notes: Vec::new() }
    }
}

impl From<&str> for Output {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

fn web_search(offer: &Offer<'_>) -> Option<ToolSpec> {
    let config = &offer.cx.profile.config.config;
    let full_access = matches!(offer.cx.settings.sandbox, SandboxPolicy::DangerFullAccess);
    let live = match config.web_search.unwrap_or(WebSearchMode::Cached) {
        WebSearchMode::Disabled => return None,
        WebSearchMode::Live => true,
        WebSearchMode::Cached => full_access,
    };
    if offer.role == Role::Reviewer {
        return None;
    }
    let settings = config.tools.as_ref().and_then(|tools| tools.web_search.as_ref());
    Some(ToolSpec::WebSearch {
        external_web_access: live,
        filters: settings
            .and_then(|settings| settings.allowed_domains.as_ref())
            .map(|domains| serde_json::json!({ "allowed_domains": domains })),
        user_location: settings.and_then(|settings| settings.location.as_ref()).and_then(location),
        search_context_size: settings
            .and_then(|settings| settings.context_size.as_ref())
            .and_then(|size| serde_json::to_value(size).ok()),
        search_content_types: None,
    })
}

fn location(location: &impl serde::Serialize) -> Option<serde_json::Value> {
    let mut value = serde_json::to_value(location).ok()?;
    let object = value.as_object_mut()?;
    object.retain(|_, value| !value.is_null());
    object.insert("type".into(), "approximate".into());
    Some(value)
}

fn image_generation(offer: &Offer<'_>) -> Option<ToolSpec> {
    let wanted = offer.has(Feature::ImageGeneration) && offer.cx.model.input_modalities.contains(&InputModality::Image);
    wanted.then(|| ToolSpec::ImageGeneration { output_format: "png".into() })
}
