//! `mcpServer/oauth/login`

use std::time::Duration;

use loomd_mcp::Endpoint;
use loomd_mcp_oauth::CallbackSettings;
use loomd_protocol::{
    McpServerOauthLoginCompletedNotification, McpServerOauthLoginParams, McpServerOauthLoginResponse, RpcError,
    ServerNotification, call,
};

use crate::answer::Handled;
use crate::context::Context;
use crate::refusals::wire_error;

/// How long the reload of loaded threads may delay the notification.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(2);

/// `mcpServer/oauth/login`: answers with the URL to open. When the login has ended, every
/// client is notified.
pub(crate) async fn login(cx: &Context, params: McpServerOauthLoginParams) -> Handled<call::McpServerOauthLogin> {
    let McpServerOauthLoginParams { name, scopes, timeout_secs } = params;
    let servers = cx.app.agent.configured_mcp_servers().map_err(wire_error)?;
    let Some(entry) = servers.get(&name) else {
        return Err(RpcError::invalid_request(format!("No MCP server named '{name}' found.")));
    };
    let Endpoint::Http(server) = &entry.reached.endpoint else {
        return Err(RpcError::invalid_request("OAuth login is only supported for streamable HTTP servers."));
    };
    let server = cx.app.mcp_oauth.server(&name, server);
    let loaded = loomd_config::load(&cx.app.sources.request())
        .map_err(|error| RpcError::invalid_request(format!("failed to load configuration: {error}")))?;
    let limit = timeout_secs.map(|seconds| Duration::from_secs(seconds.try_into().unwrap_or(0)));
    let callback = CallbackSettings::new(&loaded.config);
    let started = cx.app.mcp_oauth.login(&server, scopes, limit, &callback).await;
    let login =
        started.map_err(|error| RpcError::internal(format!("failed to login to MCP server '{name}': {error}")))?;
    let (responder, answer) = cx.answer.responder();
    responder.send(Ok(McpServerOauthLoginResponse { authorization_url: login.authorization_url.clone() }));
    let app = cx.app.clone();
    tokio::spawn(async move {
        let error = login.completed().await.err().map(|error| error.to_string());
        if error.is_none() {
            // Threads that are loaded start the server that refused them. A busy thread does not hold up the clients.
            let reloaded = tokio::time::timeout(RELOAD_TIMEOUT, app.agent.reload_mcp_servers()).await;
            if !matches!(reloaded, Ok(Ok(()))) {
                tracing::warn!(server = name, "loaded threads may not use the login before they are reloaded");
            }
        }
        let completed = McpServerOauthLoginCompletedNotification { name, success: error.is_none(), error };
        app.broadcast(ServerNotification::McpServerOauthLoginCompleted(completed)).await;
    });
    Ok(answer)
}
