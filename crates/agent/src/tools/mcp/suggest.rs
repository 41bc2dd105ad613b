//! `tool_suggest`: the model suggests to install an app that it could use.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use loomd_apps::{SERVER, install_url};
use loomd_config::Feature;
use loomd_model::ToolSpec;
use loomd_protocol::{
    AppInfo, McpElicitationObjectType, McpElicitationSchema, McpServerElicitationAction, McpServerElicitationRequest,
    McpServerElicitationRequestParams,
};
use serde::Deserialize;
use serde_json::json;

use crate::mcp::McpServices;
use crate::tool_call::{Call, ToolResult};
use crate::tools::cx::ToolCx;
use crate::tools::scope::{Role, ToolScope};
use crate::tools::spec::{function, string};
use crate::tools::tool::{Tool, ToolFuture, ToolName};
use crate::turn_cx::TurnCx;

pub(super) struct ToolSuggest {
    pub services: Arc<McpServices>,
    /// The apps that the account can use already.
    pub accessible: BTreeSet<String>,
}

#[derive(Deserialize)]
struct Args {
    tool_type: String,
    action_type: String,
    tool_id: String,
    suggest_reason: String,
}

impl ToolSuggest {
    /// The configured apps that the account cannot use yet.
    fn discoverable(&self, turn: &TurnCx) -> Vec<String> {
        let config = turn.profile.config.config.tool_suggest.as_ref();
        let listed = config.and_then(|config| config.0.get("discoverables")?.as_array());
        let text = |entry: &toml::Value, name: &str| entry.get(name)?.as_str().map(str::to_owned);
        let apps = listed.into_iter().flatten().filter(|entry| text(entry, "type").as_deref() == Some("connector"));
        apps.filter_map(|entry| text(entry, "id")).filter(|id| !self.accessible.contains(id)).collect()
    }
}

impl Tool for ToolSuggest {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("tool_suggest")
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let ids = self.discoverable(scope.turn);
        if ids.is_empty() || scope.role != Role::Main || !scope.has(Feature::ToolSuggest) {
            return None;
        }
        let directory = self.services.apps.as_ref().and_then(|apps| apps.known_directory());
        let mut description = String::from(
            "Suggests to the user to install or enable an app, and waits for their answer. Only when the user clearly \
             wants something that no tool at hand can do and one of these apps fits it; suggest no other app, and none \
             twice that was declined:",
        );
        for id in &ids {
            let known = find(directory.as_deref(), id);
            let name = known.map_or(id.as_str(), |app| app.name.as_str());
            description.push_str(&format!("\n- {name} (id: `{id}`, type: connector, action: install)"));
            if let Some(text) = known.and_then(|app| app.description.as_deref()) {
                description.push_str(&format!(": {text}"));
            }
        }
        let properties = [
            ("tool_type", string("`connector`.")),
            ("action_type", string("`install` or `enable`.")),
            ("tool_id", string(&format!("The id of the app, one of: {}.", ids.join(", ")))),
            ("suggest_reason", string("Why the app helps, one sentence for the user.")),
        ];
        let required = ["tool_type", "action_type", "tool_id", "suggest_reason"];
        Some(function("tool_suggest", &description, &properties, &required))
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.role == Role::Main && scope.has(Feature::ToolSuggest) && !self.discoverable(scope.turn).is_empty()
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(self.suggest(cx, call))
    }
}

impl ToolSuggest {
    async fn suggest(&self, cx: &ToolCx, call: &Call) -> ToolResult {
        let turn = &cx.action.turn;
        let Args { tool_type, action_type, tool_id, suggest_reason } = call.arguments()?;
        if tool_type != "connector" {
            return Err(format!("unknown tool_type `{tool_type}`: expected `connector`"));
        }
        if !matches!(action_type.as_str(), "install" | "enable") {
            return Err(format!("unknown action_type `{action_type}`: expected `install` or `enable`"));
        }
        let reason = suggest_reason.trim();
        if reason.is_empty() {
            return Err("suggest_reason must not be empty".into());
        }
        if !self.discoverable(turn).contains(&tool_id) {
            return Err("tool_id must be one of the apps that tool_suggest lists".into());
        }
        let directory = match &self.services.apps {
            Some(apps) => apps.directory().await,
            None => None,
        };
        let known = find(directory.as_deref(), &tool_id);
        let name = known.map_or(tool_id.as_str(), |app| app.name.as_str());
        let url = known.and_then(|app| app.install_url.clone()).unwrap_or_else(|| install_url(&tool_id, name));
        let request = McpServerElicitationRequestParams {
            thread_id: turn.thread_id.clone(),
            turn_id: Some(turn.turn_id.clone()),
            server_name: SERVER.into(),
            request: McpServerElicitationRequest::Form {
                meta: Some(json!({
                    "codex_approval_kind": "tool_suggestion",
                    "tool_type": tool_type,
                    "suggest_type": action_type,
                    "suggest_reason": reason,
                    "tool_id": tool_id,
                    "tool_name": name,
                    "install_url": url,
                })),
                message: reason.into(),
                requested_schema: McpElicitationSchema {
                    schema: None,
                    r#type: McpElicitationObjectType::Object,
                    properties: BTreeMap::new(),
                    required: None,
                },
            },
        };
        let Some(response) = turn.request(request).await else {
            return Err("the suggestion was cancelled before the user answered".into());
        };
        let confirmed = response.action == McpServerElicitationAction::Accept;
        let completed = confirmed && is_accessible(cx, &tool_id).await;
        let output = json!({
            "completed": completed,
            "user_confirmed": confirmed,
            "tool_type": tool_type,
            "action_type": action_type,
            "tool_id": tool_id,
            "tool_name": name,
            "suggest_reason": reason,
        });
        Ok(output.to_string().into())
    }
}

/// Whether the server of the apps has tools of an app now.
async fn is_accessible(cx: &ToolCx, id: &str) -> bool {
    let Some(server) = cx.thread.mcp.get(SERVER) else { return false };
    let Ok(listing) = server.server.relist().await else { return false };
    let mut apps = listing.tools.iter().filter_map(|tool| loomd_apps::Connector::of(tool));
    apps.any(|connector| connector.id == id)
}

fn find<'a>(directory: Option<&'a [AppInfo]>, id: &str) -> Option<&'a AppInfo> {
    directory?.iter().find(|app| app.id == id)
}
