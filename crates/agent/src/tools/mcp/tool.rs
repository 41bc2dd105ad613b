//! A tool of an MCP server.

use std::sync::Arc;
use std::time::Instant;

use loomd_apps::{Connector, ToolNames};
use loomd_config::Feature;
use loomd_mcp::{CallError, CallResult, Progress, Tool as ServerTool, ToolCall};
use loomd_model::ToolSpec;
use loomd_protocol::{InputModality, JsonObject, JsonValue, McpToolCallProgressNotification, ServerNotification};
use serde_json::json;
use tokio::sync::mpsc;

use super::approval::{Subject, approve};
use super::item::{CallItem, Called};
use super::output;
use crate::mcp::{ThreadServer, TurnCaller};
use crate::settings::{sandbox_name, sandbox_state};
use crate::tool_call::{Call, CallInput, Output, ToolResult};
use crate::tools::cx::ToolCx;
use crate::tools::scope::ToolScope;
use crate::tools::tool::{Tool, ToolFuture, ToolName};
use crate::turn_cx::TurnCx;

/// Progress notifications that wait to be published.
const UNPUBLISHED: usize = 64;

/// The longest text of a progress notification.
const MAX_PROGRESS: usize = 4096;

pub(super) struct McpTool {
    /// The model's name for it.
    pub name: String,
    pub parameters: JsonValue,
    pub server: Arc<ThreadServer>,
    pub tool: Arc<ServerTool>,
    /// The app that it belongs to.
    pub app: Option<AppTool>,
}

/// What a tool of an app is called, and whether it is searched for.
pub(super) struct AppTool {
    pub connector: Connector,
    pub names: ToolNames,
    /// There are so many tools of apps that they are searched for, where the model can do that.
    pub searched: bool,
    /// The user has named the app, so that its tools are offered in any case.
    pub mentioned: bool,
}

/// Whether the model can search for tools.
pub(super) fn can_search(scope: &ToolScope<'_>) -> bool {
    scope.has(Feature::ToolSearch) && scope.turn.model.supports_tool_search
}

/// A tool of an app under the name that a search returns.
pub(super) struct Namespaced(pub Arc<McpTool>);

impl Tool for Namespaced {
    fn name(&self) -> ToolName<'_> {
        match &self.0.app {
            Some(app) => ToolName { namespace: Some(&app.names.namespace), name: &app.names.name },
            None => self.0.name(),
        }
    }

    fn spec(&self, _: &ToolScope<'_>) -> Option<ToolSpec> {
        None
    }

    fn parallel(&self) -> bool {
        self.0.parallel()
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        self.0.run(cx, call)
    }
}

impl Tool for McpTool {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain(&self.name)
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let mentioned = self.app.as_ref().is_some_and(|app| app.mentioned);
        let offered = mentioned || !self.is_searched() || !can_search(scope);
        (offered && !self.is_grouped(scope)).then(|| ToolSpec::Function {
            name: self.name.clone(),
            description: self.server.rules.description(&self.tool),
            strict: false,
            parameters: self.parameters.clone(),
        })
    }

    fn parallel(&self) -> bool {
        self.tool.annotations.is_read_only()
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        !self.is_grouped(scope)
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(self.call(cx, call))
    }
}

impl McpTool {
    /// Whether it is offered as part of its server's namespace, and called by it. Tools of apps have namespaces of their
    /// own.
    pub fn is_grouped(&self, scope: &ToolScope<'_>) -> bool {
        self.app.is_none() && scope.turn.profile.newer_tools
    }

    /// Whether it is searched for, where the model can do that.
    pub fn is_searched(&self) -> bool {
        self.app.as_ref().is_some_and(|app| app.searched)
    }

    async fn call(&self, cx: &ToolCx, call: &Call) -> ToolResult {
        let turn = &cx.action.turn;
        let arguments = arguments(call).map_err(|problem| output::error(&format!("err: {problem}")))?;
        let begun = Instant::now();
        let called = Called {
            server: &self.server.name,
            tool: &self.tool.name,
            arguments: arguments.clone(),
            read_only_hint: self.tool.annotations.read_only,
            plugin_id: self.server.entry.plugin_id(),
        };
        let item = CallItem::start(turn, &call.id, called).await;
        let result = tokio::select! {
            biased;
            result = self.result(cx, &item, arguments) => result,
            // The server is told as the future is dropped.
            () = turn.cancel.cancelled() => Err("aborted".into()),
        };
        let sees_images = turn.model.input_modalities.contains(&InputModality::Image);
        let result = result.map(|result| output::visible(result, sees_images));
        item.complete(result.as_ref().map_err(String::as_str)).await;
        let is_newer = turn.profile.newer_tools;
        match result {
            Ok(result) if is_newer => {
                Ok(Output { body: output::timed_body(&result, begun.elapsed()), notes: Vec::new() })
            }
            Ok(result) => Ok(Output { body: output::body(&result), notes: Vec::new() }),
            Err(message) if is_newer => Err(message),
            Err(message) => Err(output::error(&message)),
        }
    }

    async fn result(
        &self,
        cx: &ToolCx,
        item: &CallItem<'_>,
        arguments: Option<JsonValue>,
    ) -> Result<CallResult, String> {
        let arguments = match arguments {
            None => None,
            Some(JsonValue::Object(arguments)) => Some(arguments),
            Some(other) => return Err(self.failed(format!("MCP tool arguments must be a JSON object, got {other}"))),
        };
        let subject =
            Subject { call_id: item.id(), server: &self.server, tool: &self.tool, arguments: arguments.as_ref() };
        approve(cx, &subject).await?;
        let turn = &cx.action.turn;
        turn.begin_effects(item.id()).await?;
        let (progress, mut published) = mpsc::channel(UNPUBLISHED);
        let caller = Arc::new(TurnCaller { turn: Arc::clone(turn), progress });
        let request = ToolCall {
            tool: self.tool.name.clone(),
            arguments,
            meta: meta(turn),
            timeout: self.server.entry.config.tool_timeout(),
            sandbox_state: Some(sandbox_state(&turn.settings)),
        };
        let mut called = std::pin::pin!(self.server.server.call_tool(request, caller));
        let result = loop {
            tokio::select! {
                biased;
                Some(progress) = published.recv() => publish(turn, item.id(), progress).await,
                result = &mut called => break result,
            }
        };
        while let Ok(progress) = published.try_recv() {
            publish(turn, item.id(), progress).await;
        }
        result.map_err(|error| self.failed(cause(error)))
    }

    /// The text about a call that failed, for clients and the model.
    fn failed(&self, cause: String) -> String {
        let (server, tool) = (&self.server.name, &self.tool.name);
        format!("tool call error: tool call failed for `{server}/{tool}`\n\nCaused by:\n    {cause}")
    }
}

fn cause(error: CallError) -> String {
    error.to_string()
}

/// The arguments of a call; `None` when it has none.
fn arguments(call: &Call) -> Result<Option<JsonValue>, String> {
    let (CallInput::Arguments(text) | CallInput::Text(text) | CallInput::Search(text)) = &call.input;
    if text.trim().is_empty() {
        return Ok(None);
    }
    serde_json::from_str(text).map(Some).map_err(|error| error.to_string())
}

/// What the server is told of the turn that calls it.
fn meta(turn: &TurnCx) -> JsonObject {
    let about = json!({
        "session_id": turn.thread_id, "turn_id": turn.turn_id, "sandbox": sandbox_name(&turn.settings.sandbox),
    });
    JsonObject::from_iter([("x-codex-turn-metadata".to_owned(), about)])
}

async fn publish(turn: &TurnCx, item_id: &str, progress: Progress) {
    let mut message = match (progress.message, progress.total) {
        (Some(message), _) => message,
        (None, Some(total)) => format!("{} of {total}", progress.progress),
        (None, None) => progress.progress.to_string(),
    };
    message.truncate(message.floor_char_boundary(MAX_PROGRESS));
    turn.publish(ServerNotification::McpToolCallProgress(McpToolCallProgressNotification {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        item_id: item_id.into(),
        message,
    }))
    .await;
}
