//! Requests that use an MCP server directly: a tool's call and a resource's read, without a turn.

use std::sync::Arc;

use loomd_mcp::{CallError, ServerSet, ToolCall};
use loomd_protocol::{
    JsonObject, JsonValue, McpResourceReadResponse, McpServerStatus, McpServerToolCallParams, McpServerToolCallResponse,
};
use loomd_store::ThreadId;

use crate::agent::Agent;
use crate::mcp::{self, StatusDetail, ThreadServer};
use crate::refusal::Refusal;
use crate::settings::Profile;
use crate::thread::Op;
use crate::threads::{LoadedThread, Threads};

impl Threads {
    /// Calls a tool of one of a thread's servers, as a client asks for it: without an approval, an item or a turn. A
    /// server that is starting is waited for.
    pub async fn call_mcp_tool(&self, params: McpServerToolCallParams) -> Result<McpServerToolCallResponse, Refusal> {
        let (id, loaded) = self.started_thread(&params.thread_id).await?;
        let server = thread_server(&loaded, &params.server)?;
        let failed = |reason: String| {
            Refusal::failed(format!("tool call failed for `{}/{}`: {reason}", params.server, params.tool))
        };
        let arguments = match params.arguments {
            None | Some(JsonValue::Null) => None,
            Some(JsonValue::Object(arguments)) => Some(arguments),
            Some(other) => return Err(failed(format!("MCP tool arguments must be a JSON object, got {other}"))),
        };
        started(&server).await?;
        let mut meta = match params.meta {
            Some(JsonValue::Object(meta)) => meta,
            _ => JsonObject::new(),
        };
        meta.insert("threadId".into(), id.to_string().into());
        tracing::info!(thread = %id, server = params.server, tool = params.tool, "a client calls an MCP tool directly");
        let call = ToolCall {
            tool: params.tool.clone(),
            arguments,
            meta,
            timeout: server.entry.config.tool_timeout(),
            sandbox_state: None,
        };
        let result = server.server.call_tool(call, loaded.mcp.direct_caller()).await;
        let result = result.map_err(|error| match error {
            CallError::NotStarted(error) => {
                Refusal::failed(format!("failed to get client: MCP startup failed: {error}"))
            }
            other => failed(other.to_string()),
        })?;
        Ok(McpServerToolCallResponse {
            content: result.content,
            structured_content: result.structured_content,
            is_error: result.is_error.then_some(true),
            meta: result.meta.map(Into::into),
        })
    }

    /// The configuration that a loaded thread runs on.
    pub fn loaded_profile(&self, thread_id: &str) -> Result<Arc<Profile>, Refusal> {
        Ok(self.loaded_thread(thread_id)?.1.profile)
    }

    /// The status of the servers of a loaded thread, with the state of its connections. Does not wait for servers that
    /// are starting.
    pub(crate) async fn mcp_statuses(
        &self,
        thread_id: &str,
        select: impl FnOnce(ServerSet) -> Result<(ServerSet, Option<String>), Refusal>,
        detail: StatusDetail,
    ) -> Result<(Vec<McpServerStatus>, Option<String>), Refusal> {
        let (_, loaded) = self.started_thread(thread_id).await?;
        let (set, next) = select(ServerSet::clone(&loaded.mcp.configured()))?;
        Ok((mcp::thread_statuses(&loaded.mcp, &set, detail).await, next))
    }

    /// A loaded thread that has its servers: it takes them right after it was opened.
    async fn started_thread(&self, thread_id: &str) -> Result<(ThreadId, LoadedThread), Refusal> {
        let (id, loaded) = self.loaded_thread(thread_id)?;
        match self.ask(&loaded, |reply| Op::Show { turns: false, reply }).await {
            Some(_) => Ok((id, loaded)),
            None => Err(Refusal::not_found(id)),
        }
    }

    fn loaded_thread(&self, thread_id: &str) -> Result<(ThreadId, LoadedThread), Refusal> {
        let id = crate::turn_requests::parse_id(thread_id)?;
        let loaded = self.get(id).ok_or_else(|| Refusal::not_found(id))?;
        Ok((id, loaded))
    }
}

impl Agent {
    /// Reads a resource of a thread's server, or of a configured one.
    pub async fn read_mcp_resource(
        &self,
        thread_id: Option<&str>,
        server: &str,
        uri: &str,
    ) -> Result<McpResourceReadResponse, Refusal> {
        let read = match thread_id {
            Some(thread_id) => {
                let (_, loaded) = self.threads().started_thread(thread_id).await?;
                let server = thread_server(&loaded, server)?;
                started(&server).await?;
                server.server.read_resource(uri, server.entry.config.tool_timeout()).await
            }
            None => {
                let set = self.configured_mcp_servers()?;
                let entry = set.get(server).filter(|entry| entry.config.enabled).ok_or_else(|| unknown(server))?;
                let services = self.mcp().ok_or_else(|| unknown(server))?;
                let connection = services.servers.get(&entry.reached);
                connection.read_resource(uri, entry.config.tool_timeout()).await
            }
        };
        let result = read.map_err(|error| match error {
            CallError::Server { code, message } => Refusal::OfServer { code, message },
            CallError::NotStarted(error) => {
                Refusal::failed(format!("failed to get client: MCP startup failed: {error}"))
            }
            other => Refusal::failed(format!("resource read failed for `{server}`: {other}")),
        })?;
        match result.get("contents") {
            Some(JsonValue::Array(contents)) => {
                Ok(McpResourceReadResponse { contents: contents.clone(), origin_call_id: None })
            }
            _ => Err(Refusal::failed(format!("resource read failed for `{server}`: `contents` is no list"))),
        }
    }
}

fn thread_server(loaded: &LoadedThread, name: &str) -> Result<Arc<ThreadServer>, Refusal> {
    loaded.mcp.get(name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Refusal {
    Refusal::failed(format!("unknown MCP server '{name}'"))
}

/// Waits until a server has started; one that failed is tried again.
async fn started(server: &ThreadServer) -> Result<(), Refusal> {
    server.started().await;
    let started = server.server.start().await;
    started.map(|_| ()).map_err(|error| Refusal::failed(format!("failed to get client: MCP startup failed: {error}")))
}
