//! The rules of the tools of apps: named after their app, and allowed by its settings.

use std::sync::Arc;

use loomd_apps::{AppRules, Connector, ToolNames, tool_names};
use loomd_mcp::Tool;
use loomd_protocol::{AppToolApproval, AppsConfig, JsonObject};

use super::rules::{ApprovalSubject, ToolRules};

pub(crate) struct AppToolRules(AppRules);

impl AppToolRules {
    pub fn new(config: AppsConfig) -> Self {
        Self(AppRules::new(config))
    }
}

impl ToolRules for AppToolRules {
    /// A tool that names no app is never offered.
    fn offers(&self, tool: &Tool) -> bool {
        Connector::of(tool).is_some_and(|connector| self.0.allows(&connector, tool))
    }

    fn raw_name(&self, server: &str, tool: &Tool) -> String {
        match self.app(tool) {
            Some((_, names)) => names.joined(),
            None => format!("mcp__{server}__{}", tool.name),
        }
    }

    fn approval_mode(&self, tool: &Tool) -> AppToolApproval {
        Connector::of(tool).map_or(AppToolApproval::Prompt, |connector| self.0.approval_mode(&connector, tool))
    }

    fn approval_subject(&self, _server: &str, tool: &Tool, others: &[Arc<Tool>]) -> ApprovalSubject {
        let Some(connector) = Connector::of(tool) else { return ApprovalSubject::default() };
        let of_others =
            || others.iter().filter_map(|other| Connector::of(other)).filter(|other| other.id == connector.id);
        let description = connector.description.clone().or_else(|| of_others().find_map(|other| other.description));
        let mut meta = JsonObject::new();
        meta.insert("source".into(), "connector".into());
        meta.insert("connector_id".into(), connector.id.as_str().into());
        meta.insert("connector_name".into(), connector.name.as_str().into());
        if let Some(description) = description {
            meta.insert("connector_description".into(), description.into());
        }
        ApprovalSubject { name: connector.name, meta }
    }

    fn approval_key(&self, _server: &str, tool: &Tool) -> Vec<String> {
        let id = Connector::of(tool).map(|connector| connector.id).unwrap_or_default();
        ["apps", &id, "tools", &tool.name, "approval_mode"].map(str::to_owned).into()
    }

    fn app(&self, tool: &Tool) -> Option<(Connector, ToolNames)> {
        let connector = Connector::of(tool)?;
        let names = tool_names(&connector, tool);
        Some((connector, names))
    }
}
