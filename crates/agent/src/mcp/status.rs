//! `mcpServerStatus/list`: what servers offer. Live connections are used; others are opened for the answer and closed
//! unless a thread uses them.

use std::sync::Arc;

use loomd_mcp::{Endpoint, Listing, Resources, Server, ServerSet, SetEntry, StartError, Tool as McpTool, sanitised};
use loomd_protocol::{JsonValue, McpAuthStatus, McpServerConnectionStatus, McpServerInfo, McpServerStatus, Tool};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::rules::ToolRules;
use super::services::McpServices;
use super::thread_server::Startup;
use super::thread_servers::ThreadServers;

/// How much of each server is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusDetail {
    Full,
    /// Without resources and templates.
    ToolsAndAuth,
}

/// Why there is no such page.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PageError {
    #[error("invalid cursor: {0}")]
    Invalid(String),
    #[error("cursor {cursor} exceeds total MCP servers {total}")]
    Beyond { cursor: usize, total: usize },
}

/// The range of a page of `total` entries, and the cursor of the next.
pub(crate) fn page(
    total: usize,
    cursor: Option<&str>,
    limit: Option<u32>,
) -> Result<(std::ops::Range<usize>, Option<String>), PageError> {
    let start = match cursor {
        None => 0,
        Some(text) => text.parse().map_err(|_| PageError::Invalid(text.into()))?,
    };
    if start > total {
        return Err(PageError::Beyond { cursor: start, total });
    }
    let limit = limit.map_or(total, |limit| limit.max(1) as usize);
    let end = start.saturating_add(limit).min(total);
    Ok((start..end, (end < total).then(|| end.to_string())))
}

/// The status of every server of a set, sorted by name. All are asked at once.
pub(crate) async fn statuses(services: &McpServices, set: &ServerSet, detail: StatusDetail) -> Vec<McpServerStatus> {
    let mut asked = JoinSet::new();
    for (name, entry) in set.iter() {
        let server = services.servers.get(&entry.reached);
        let (name, entry, rules) = (name.to_owned(), entry.clone(), services.rules(entry));
        asked.spawn(async move {
            let started = async {
                match entry.config.enabled {
                    true => server.start().await.map(Some),
                    false => Ok(None),
                }
            };
            let (auth_status, started) = tokio::join!(server.auth_status(), started);
            status(name, &entry, &server, &*rules, started, detail, auth_status).await
        });
    }
    sorted(asked.join_all().await)
}

/// The same for the servers of a thread, as far as they have started, with the state of its connections.
pub(crate) async fn thread_statuses(
    servers: &ThreadServers,
    set: &ServerSet,
    detail: StatusDetail,
) -> Vec<McpServerStatus> {
    let Some(services) = servers.services() else { return Vec::new() };
    let mut asked = JoinSet::new();
    for (name, entry) in set.iter() {
        let (runtime, started) = match servers.get(name) {
            None => (McpServerConnectionStatus::Disabled, Ok(None)),
            Some(known) => match known.startup() {
                Startup::Starting => (McpServerConnectionStatus::Starting, Ok(None)),
                Startup::Cached(listing) => (McpServerConnectionStatus::Starting, Ok(Some(listing))),
                Startup::Ready => (McpServerConnectionStatus::Connected, Ok(known.listing())),
                Startup::Failed(error @ StartError::NotLoggedIn) => {
                    (McpServerConnectionStatus::AuthenticationRequired, Err(error))
                }
                Startup::Failed(error) => (McpServerConnectionStatus::Failed, Err(error)),
            },
        };
        let server = services.servers.get(&entry.reached);
        let (name, entry, rules) = (name.to_owned(), entry.clone(), services.rules(entry));
        asked.spawn(async move {
            // Only a server that is connected is asked for its resources.
            let detail = match runtime {
                McpServerConnectionStatus::Connected => detail,
                _ => StatusDetail::ToolsAndAuth,
            };
            let auth_status = server.auth_status().await;
            let status = status(name, &entry, &server, &*rules, started, detail, auth_status).await;
            McpServerStatus { runtime_status: Some(runtime), ..status }
        });
    }
    sorted(asked.join_all().await)
}

fn sorted(mut statuses: Vec<McpServerStatus>) -> Vec<McpServerStatus> {
    statuses.sort_by(|a, b| a.name.cmp(&b.name));
    statuses
}

/// The status of one server: `started` is what is known of it, or why it did not start.
async fn status(
    name: String,
    entry: &SetEntry,
    server: &Server,
    rules: &dyn ToolRules,
    started: Result<Option<Arc<Listing>>, StartError>,
    detail: StatusDetail,
    auth_status: McpAuthStatus,
) -> McpServerStatus {
    let (listing, error) = match started {
        Ok(listing) => (listing, None),
        Err(error) => (None, Some(format!("MCP startup failed: {error}"))),
    };
    let (resources, resource_templates) = match (&listing, detail) {
        (Some(_), StatusDetail::Full) => {
            let timeout = entry.config.tool_timeout();
            let (resources, templates) = tokio::join!(
                server.list_all(Resources::Resources, timeout),
                server.list_all(Resources::Templates, timeout)
            );
            (decoded(resources.unwrap_or_default()), decoded(templates.unwrap_or_default()))
        }
        _ => (Vec::new(), Vec::new()),
    };
    McpServerStatus {
        name,
        tools: listing.as_ref().map(|listing| tools(listing, rules)).unwrap_or_default(),
        resources,
        resource_templates,
        auth_status,
        runtime_status: None,
        server_info: listing.as_ref().and_then(|listing| server_info(listing.server_info.as_ref()?)),
        server_capabilities: listing.as_ref().map(|listing| listing.capabilities.clone().into()),
        tools_error: error,
        tool_list_meta: None,
        plugin_id: entry.plugin_id().map(str::to_owned),
        http_origin: match &entry.reached.endpoint {
            Endpoint::Http(server) => server.origin(),
            Endpoint::Stdio(_) => None,
        },
    }
}

/// What a server says of itself. Members that are not what they should be are left out.
fn server_info(info: &JsonValue) -> Option<McpServerInfo> {
    let text = |name: &str| info.get(name).and_then(JsonValue::as_str).map(str::to_owned);
    Some(McpServerInfo {
        name: text("name")?,
        title: text("title"),
        version: text("version").unwrap_or_default(),
        description: text("description"),
        icons: info.get("icons").and_then(JsonValue::as_array).cloned(),
        website_url: text("websiteUrl"),
    })
}

fn tools(listing: &Listing, rules: &dyn ToolRules) -> std::collections::BTreeMap<String, Tool> {
    let offered = listing.tools.iter().filter(|tool| rules.offers(tool));
    let name = |tool: &McpTool| match rules.app(tool) {
        Some((_, names)) => names.joined().trim_start_matches("mcp__codex_apps__").to_owned(),
        None => sanitised(&tool.name),
    };
    offered.map(|tool| (name(tool), wire(tool))).collect()
}

fn wire(tool: &McpTool) -> Tool {
    let member = |name: &str| tool.raw.get(name).filter(|value| !value.is_null()).cloned();
    Tool {
        name: tool.name.clone(),
        title: member("title").and_then(|title| title.as_str().map(str::to_owned)),
        description: tool.description.clone(),
        input_schema: tool.input_schema.clone(),
        output_schema: member("outputSchema"),
        annotations: member("annotations"),
        icons: member("icons").and_then(|icons| icons.as_array().cloned()),
        meta: member("_meta"),
    }
}

/// The entries that are what they should be.
fn decoded<T: DeserializeOwned>(entries: Vec<JsonValue>) -> Vec<T> {
    entries.into_iter().filter_map(|entry| serde_json::from_str(&entry.to_string()).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_cut_by_a_numeric_cursor() {
        assert_eq!(page(3, None, None), Ok((0..3, None)));
        assert_eq!(page(3, None, Some(2)), Ok((0..2, Some("2".into()))));
        assert_eq!(page(3, Some("2"), Some(0)), Ok((2..3, None)));
        assert_eq!(page(3, Some("3"), Some(5)), Ok((3..3, None)));
        assert_eq!(page(3, Some("4"), None), Err(PageError::Beyond { cursor: 4, total: 3 }));
        assert_eq!(page(3, Some("x"), None), Err(PageError::Invalid("x".into())));
    }
}
