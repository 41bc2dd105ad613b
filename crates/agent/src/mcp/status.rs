//! `mcpServerStatus/list`: what servers offer. Live connections are used; others are opened for the answer and closed
//! unless a thread uses them.

use loomd_mcp::{Listing, Resources, ServerSet, SetEntry, Tool as McpTool, sanitised};
use loomd_protocol::{JsonValue, McpServerStatus, Resource, ResourceTemplate, Tool};
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use super::rules::ToolRules;
use super::services::McpServices;

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
            let (auth_status, offered) = tokio::join!(server.auth_status(), offered(&server, &entry, &*rules, detail));
            let Offered { tools, resources, resource_templates } = offered;
            McpServerStatus { name, tools, resources, resource_templates, auth_status }
        });
    }
    let mut statuses = asked.join_all().await;
    statuses.sort_by(|a, b| a.name.cmp(&b.name));
    statuses
}

#[derive(Default)]
struct Offered {
    tools: std::collections::BTreeMap<String, Tool>,
    resources: Vec<Resource>,
    resource_templates: Vec<ResourceTemplate>,
}

/// What a server offers: nothing when it is disabled or does not start.
async fn offered(server: &loomd_mcp::Server, entry: &SetEntry, rules: &dyn ToolRules, detail: StatusDetail) -> Offered {
    if !entry.config.enabled {
        return Offered::default();
    }
    let Ok(listing) = server.start().await else { return Offered::default() };
    let tools = tools(&listing, rules);
    if detail == StatusDetail::ToolsAndAuth {
        return Offered { tools, ..Offered::default() };
    }
    let timeout = entry.config.tool_timeout();
    let (resources, templates) =
        tokio::join!(server.list_all(Resources::Resources, timeout), server.list_all(Resources::Templates, timeout));
    Offered {
        tools,
        resources: decoded(resources.unwrap_or_default()),
        resource_templates: decoded(templates.unwrap_or_default()),
    }
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
