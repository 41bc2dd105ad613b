//! `list_mcp_resources`, `list_mcp_resource_templates` and `read_mcp_resource`.

use std::time::Duration;

use loomd_mcp::{CallResult, Resources};
use loomd_model::ToolSpec;
use loomd_protocol::{JsonObject, JsonValue};
use serde::Deserialize;
use serde_json::json;

use super::item::{CallItem, Called};
use crate::mcp::{ThreadServer, ThreadServers};
use crate::tool_call::{Call, CallInput, ToolResult};
use crate::tools::cx::ToolCx;
use crate::tools::scope::ToolScope;
use crate::tools::spec::{function, string};
use crate::tools::tool::{Tool, ToolFuture, ToolName};

/// The server of an item that names none.
const NO_SERVER: &str = "codex";

/// Lists resources, or templates of resources.
pub(super) struct ListResources(pub Resources);

#[derive(Deserialize)]
struct ListArgs {
    server: Option<String>,
    cursor: Option<String>,
}

impl Tool for ListResources {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain(match self.0 {
            Resources::Resources => "list_mcp_resources",
            Resources::Templates => "list_mcp_resource_templates",
        })
    }

    fn spec(&self, _: &ToolScope<'_>) -> Option<ToolSpec> {
        let description = match self.0 {
            Resources::Resources => {
                "Lists what MCP servers offer to be read: files, database schemas and the like. Prefer these to a web \
                 search."
            }
            Resources::Templates => "Lists templates of resources of MCP servers, which are read with parameters.",
        };
        let properties = [
            ("server", string("The MCP server; all servers if it is left out.")),
            ("cursor", string("`nextCursor` of the page before; only with `server`.")),
        ];
        Some(function(self.name().name, description, &properties, &[]))
    }

    fn parallel(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async move {
            let args: ListArgs = match has_arguments(call) {
                true => call.arguments()?,
                false => ListArgs { server: None, cursor: None },
            };
            let (server, cursor) = (given(args.server), given(args.cursor));
            let shown = server.as_deref().unwrap_or(NO_SERVER).to_owned();
            shown_as_item(cx, call, &shown, list(&cx.thread.mcp, self.0, server, cursor)).await
        })
    }
}

pub(super) struct ReadResource;

#[derive(Deserialize)]
struct ReadArgs {
    server: String,
    uri: String,
}

impl Tool for ReadResource {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("read_mcp_resource")
    }

    fn spec(&self, _: &ToolScope<'_>) -> Option<ToolSpec> {
        let properties = [
            ("server", string("The MCP server, as it is listed.")),
            ("uri", string("The URI of the resource, as it is listed.")),
        ];
        let description = "Reads a resource of an MCP server.";
        Some(function("read_mcp_resource", description, &properties, &["server", "uri"]))
    }

    fn parallel(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async move {
            let args: ReadArgs = call.arguments()?;
            let server = given(Some(args.server)).ok_or("server must be provided")?;
            let uri = given(Some(args.uri)).ok_or("uri must be provided")?;
            shown_as_item(cx, call, &server, read(&cx.thread.mcp, &server, &uri)).await
        })
    }
}

/// Models may leave all arguments out.
fn has_arguments(call: &Call) -> bool {
    !matches!(&call.input, CallInput::Arguments(text) if text.trim().is_empty())
}

/// What is not blank.
fn given(text: Option<String>) -> Option<String> {
    text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
}

/// Shows the work as an item; its result is the output.
async fn shown_as_item(
    cx: &ToolCx,
    call: &Call,
    server: &str,
    work: impl Future<Output = Result<JsonValue, String>>,
) -> ToolResult {
    let turn = &cx.action.turn;
    let arguments: Option<JsonValue> = if has_arguments(call) { Some(call.arguments()?) } else { None };
    let item = CallItem::start(
        turn,
        &call.id,
        Called { server, tool: &call.name, arguments, read_only_hint: None, plugin_id: None },
    )
    .await;
    let result = tokio::select! {
        biased;
        result = work => result.map(|value| value.to_string()),
        () = turn.cancel.cancelled() => Err("aborted".into()),
    };
    match result {
        Ok(text) => {
            let content = vec![json!({ "type": "text", "text": text })];
            item.complete(Ok(&CallResult { content, ..CallResult::default() })).await;
            Ok(text.into())
        }
        Err(message) => {
            item.complete(Err(&message)).await;
            Err(message)
        }
    }
}

async fn list(
    servers: &ThreadServers,
    what: Resources,
    server: Option<String>,
    cursor: Option<String>,
) -> Result<JsonValue, String> {
    let (method, member) = (what.method(), what.member());
    let Some(name) = server else {
        if cursor.is_some() {
            return Err("cursor can only be used when a server is specified".into());
        }
        return Ok(json!({ member: list_all(servers, what).await }));
    };
    let server = find(servers, method, &name)?;
    let listed = server.server.list(what, cursor.as_deref(), timeout(&server)).await;
    let (entries, next) = listed.map_err(|error| format!("{method} failed: {method} failed for `{name}`: {error}"))?;
    let mut page = JsonObject::new();
    page.insert("server".into(), name.as_str().into());
    page.insert(member.into(), entries.into_iter().map(|entry| of_server(&name, entry)).collect());
    if let Some(next) = next {
        page.insert("nextCursor".into(), next.into());
    }
    Ok(page.into())
}

/// The entries of all servers, sorted by server. Those of a server that fails are left out.
async fn list_all(servers: &ThreadServers, what: Resources) -> Vec<JsonValue> {
    let asked: Vec<_> = servers
        .ready()
        .into_iter()
        .map(|(server, _)| {
            tokio_util::task::AbortOnDropHandle::new(tokio::spawn(async move {
                let listed = server.server.list_all(what, timeout(&server)).await;
                let entries = listed.unwrap_or_default().into_iter();
                entries.map(|entry| of_server(&server.name, entry)).collect::<Vec<_>>()
            }))
        })
        .collect();
    let mut entries = Vec::new();
    for listed in asked {
        entries.extend(listed.await.unwrap_or_default());
    }
    entries
}

async fn read(servers: &ThreadServers, name: &str, uri: &str) -> Result<JsonValue, String> {
    const METHOD: &str = "resources/read";
    let server = find(servers, METHOD, name)?;
    let read = server.server.read_resource(uri, timeout(&server)).await;
    let mut read = read.map_err(|error| format!("{METHOD} failed: {METHOD} failed for `{name}` ({uri}): {error}"))?;
    let contents = read.get_mut("contents").map(JsonValue::take).unwrap_or_default();
    Ok(json!({ "server": name, "uri": uri, "contents": contents }))
}

fn find(servers: &ThreadServers, method: &str, name: &str) -> Result<std::sync::Arc<ThreadServer>, String> {
    servers.get(name).ok_or_else(|| format!("{method} failed: unknown MCP server '{name}'"))
}

fn timeout(server: &ThreadServer) -> Duration {
    server.entry.config.tool_timeout()
}

/// An entry of a listing with the server that it is of, first.
fn of_server(server: &str, entry: JsonValue) -> JsonValue {
    let mut named = JsonObject::new();
    named.insert("server".into(), server.into());
    if let JsonValue::Object(entry) = entry {
        named.extend(entry.into_iter().filter(|(name, _)| name != "server"));
    }
    named.into()
}
