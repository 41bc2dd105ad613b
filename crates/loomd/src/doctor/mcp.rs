//! Checks the configured MCP servers: starts each as a thread does, and counts its tools.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_client::protocol::{
    AskForApproval, ListMcpServerStatusParams, McpAuthStatus, McpServerStartupState, McpServerStatusDetail,
    McpServerStatusUpdatedNotification, SandboxMode, ServerNotification, ThreadStartParams,
};
use loomd_client::{Client, Events};
use loomd_config::config_toml::McpServer;
use loomd_config::{LoadRequest, load};
use loomd_protocol::AbsolutePathBuf;
use tokio::time::timeout;

use super::Finding::{self, Fail, Pass, Warn};
use crate::setup::Setup;
use crate::show::lines;

/// What a start may take beside the handshake and the listing of tools, each of which has the server's own limit.
const MARGIN: Duration = Duration::from_secs(10);

/// The servers of a folder; none if its configuration is not valid, which is reported elsewhere.
pub fn configured(setup: &Setup, cwd: &str) -> BTreeMap<String, McpServer> {
    let cwd = AbsolutePathBuf::new(cwd);
    let request = LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() };
    load(&request).map(|loaded| loaded.config.mcp_servers).unwrap_or_default()
}

pub async fn findings(
    client: &Client,
    mut events: Events,
    servers: &BTreeMap<String, McpServer>,
    cwd: &str,
) -> Vec<Finding> {
    let params = ThreadStartParams {
        cwd: Some(cwd.to_owned()),
        approval_policy: Some(AskForApproval::Never),
        sandbox: Some(SandboxMode::ReadOnly.into()),
        ephemeral: Some(true),
        ..ThreadStartParams::default()
    };
    let limit = servers.values().map(McpServer::startup_timeout).max().unwrap_or_default() * 2 + MARGIN;
    // A thread waits for servers that it requires.
    let thread = match client.with_timeout(limit).start_thread(params).await {
        Ok(thread) => thread,
        Err(error) => return vec![Fail(format!("cannot start a thread: {error}"))],
    };
    let mut starts = BTreeMap::new();
    let wanted = servers.values().filter(|server| server.enabled).count();
    let watch = async {
        while starts.len() < wanted {
            let Some(Ok(event)) = events.next().await else { break };
            if let Some(ServerNotification::McpServerStartupStatusUpdated(update)) = event.notification() {
                ended(update, &mut starts);
            }
        }
    };
    _ = timeout(limit, watch).await;
    drop(events);
    let detail = Some(McpServerStatusDetail::ToolsAndAuthOnly);
    let params = ListMcpServerStatusParams { detail, ..ListMcpServerStatusParams::default() };
    let listed = client.with_timeout(limit).mcp_server_status_list(params).await;
    drop(thread);
    let listed = listed.map(|listed| listed.data).unwrap_or_default();
    let facts = servers.iter().map(|(name, server)| {
        let status = listed.iter().find(|status| status.name == *name);
        let tools = status.map(|status| status.tools.len());
        let auth = status.map(|status| status.auth_status);
        finding(name, server, starts.get(name), tools, auth)
    });
    facts.collect()
}

/// Notes how the start of a server has ended.
fn ended(update: &McpServerStatusUpdatedNotification, starts: &mut BTreeMap<String, Option<String>>) {
    let error = match update.status {
        McpServerStartupState::Starting => return,
        McpServerStartupState::Ready => None,
        McpServerStartupState::Failed | McpServerStartupState::Cancelled => {
            Some(update.error.clone().unwrap_or_else(|| "it did not start".into()))
        }
    };
    starts.insert(update.name.clone(), error);
}

fn finding(
    name: &str,
    server: &McpServer,
    start: Option<&Option<String>>,
    tools: Option<usize>,
    auth: Option<McpAuthStatus>,
) -> Finding {
    let problem = if server.required { Fail } else { Warn };
    match start {
        _ if !server.enabled => Pass(format!("{name}: disabled")),
        None => problem(format!("{name}: no answer in time")),
        Some(Some(_)) if auth == Some(McpAuthStatus::NotLoggedIn) => {
            problem(format!("{name}: not logged in; run `loomd mcp login {name}`"))
        }
        Some(Some(error)) => problem(format!("{name}: {}", lines(error).join(" "))),
        Some(None) => match tools {
            Some(1) => Pass(format!("{name}: 1 tool")),
            Some(count) => Pass(format!("{name}: {count} tools")),
            None => Pass(format!("{name}: started")),
        },
    }
}
