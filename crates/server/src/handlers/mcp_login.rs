//! `mcpServer/oauth/login`

use std::time::Duration;

use loomd_agent::working_directory;
use loomd_config::LoadRequest;
use loomd_mcp_oauth::{CallbackSettings, OauthServer};
use loomd_protocol::{
    McpServerOauthLoginCompletedNotification, McpServerOauthLoginParams, McpServerOauthLoginResponse, RpcError,
    ServerNotification, call,
};

use crate::answer::Handled;
use crate::app::environment;
use crate::context::Context;

/// `mcpServer/oauth/login`: answers with the URL to open. When the login has ended, every client is notified.
pub(crate) async fn login(cx: &Context, params: McpServerOauthLoginParams) -> Handled<call::McpServerOauthLogin> {
    let McpServerOauthLoginParams { name, scopes, timeout_secs } = params;
    let cwd = working_directory().ok();
    let request = LoadRequest { cwd: cwd.as_ref(), ..cx.app.sources.request() };
    let loaded = loomd_config::load(&request)
        .map_err(|error| RpcError::invalid_request(format!("failed to load configuration: {error}")))?;
    let Some(server) = loaded.config.mcp_servers.get(&name) else {
        return Err(RpcError::invalid_request(format!("No MCP server named '{name}' found.")));
    };
    let Some(server) = OauthServer::configured(&name, server, &environment) else {
        return Err(RpcError::invalid_request("OAuth login is only supported for streamable HTTP servers."));
    };
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
        let completed = McpServerOauthLoginCompletedNotification { name, success: error.is_none(), error };
        app.broadcast(ServerNotification::McpServerOauthLoginCompleted(completed)).await;
    });
    Ok(answer)
}
