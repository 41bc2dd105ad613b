//! What the configuration says of apps and their tools.

use loomd_mcp::Tool;
use loomd_protocol::{AppConfig, AppToolApproval, AppToolConfig, AppsConfig};

use crate::connector::Connector;

/// The `[apps]` table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AppRules(AppsConfig);

impl AppRules {
    pub fn new(config: AppsConfig) -> Self {
        Self(config)
    }

    /// Whether an app is enabled: by its own table, else by the defaults.
    pub fn is_enabled(&self, id: &str) -> bool {
        match (self.0.apps.get(id), &self.0.default) {
            (Some(app), _) => app.enabled,
            (None, Some(default)) => default.enabled,
            (None, None) => true,
        }
    }

    /// Whether a tool may be called. Its own table counts before `default_tools_enabled`, which counts before what the
    /// tool says of its effects.
    pub fn allows(&self, connector: &Connector, tool: &Tool) -> bool {
        if !self.is_enabled(&connector.id) {
            return false;
        }
        let (app, default) = (self.app(connector), self.0.default.as_ref());
        let explicit = self.tool(connector, tool).and_then(|tool| tool.enabled);
        if let Some(enabled) = explicit.or(app.and_then(|app| app.default_tools_enabled)) {
            return enabled;
        }
        let destructive = app.and_then(|app| app.destructive_enabled).or(default.map(|all| all.destructive_enabled));
        let open_world = app.and_then(|app| app.open_world_enabled).or(default.map(|all| all.open_world_enabled));
        let hints = &tool.annotations;
        (destructive != Some(false) || hints.destructive != Some(true))
            && (open_world != Some(false) || hints.open_world != Some(true))
    }

    pub fn approval_mode(&self, connector: &Connector, tool: &Tool) -> AppToolApproval {
        let own = self.tool(connector, tool).and_then(|tool| tool.approval_mode);
        let default = self.app(connector).and_then(|app| app.default_tools_approval_mode);
        own.or(default).unwrap_or(AppToolApproval::Auto)
    }

    fn app(&self, connector: &Connector) -> Option<&AppConfig> {
        self.0.apps.get(&connector.id)
    }

    fn tool(&self, connector: &Connector, tool: &Tool) -> Option<&AppToolConfig> {
        self.app(connector)?.tools.as_ref()?.0.get(&tool.name)
    }
}

#[cfg(test)]
mod tests {
    use loomd_mcp::Annotations;
    use serde_json::json;

    use super::*;

    fn rules(config: serde_json::Value) -> AppRules {
        AppRules(serde_json::from_value(config).unwrap())
    }

    fn connector(id: &str) -> Connector {
        Connector { id: id.into(), name: id.into(), description: None }
    }

    fn tool(name: &str, destructive: Option<bool>, open_world: Option<bool>) -> Tool {
        Tool {
            name: name.into(),
            title: None,
            description: None,
            input_schema: json!({}),
            annotations: Annotations { destructive, open_world, ..Annotations::default() },
            meta: None,
            raw: Default::default(),
        }
    }

    #[test]
    fn an_app_is_enabled_by_its_table_else_by_the_defaults() {
        let none = AppRules::default();
        assert!(none.is_enabled("a"));
        let only = rules(json!({ "_default": { "enabled": false }, "a": {} }));
        assert!(only.is_enabled("a") && !only.is_enabled("b"));
        assert!(!only.allows(&connector("b"), &tool("t", None, None)));
    }

    #[test]
    fn a_tool_is_judged_by_the_closest_setting() {
        let (plain, wipes, wide) = (tool("t", None, None), tool("wipe", Some(true), None), tool("w", None, Some(true)));
        let check = |config, expected: [bool; 3]| {
            let rules = rules(config);
            assert_eq!([&plain, &wipes, &wide].map(|tool| rules.allows(&connector("a"), tool)), expected, "{rules:?}");
        };
        check(json!({}), [true, true, true]);
        check(json!({ "a": { "destructive_enabled": false } }), [true, false, true]);
        check(json!({ "_default": { "destructive_enabled": false } }), [true, false, true]);
        check(json!({ "_default": { "destructive_enabled": false }, "a": { "destructive_enabled": true } }), [true; 3]);
        check(json!({ "a": { "open_world_enabled": false } }), [true, true, false]);
        check(json!({ "a": { "destructive_enabled": false, "tools": { "wipe": { "enabled": true } } } }), [true; 3]);
        check(
            json!({ "a": { "default_tools_enabled": false, "tools": { "t": { "enabled": true } } } }),
            [true, false, false],
        );
        check(json!({ "a": { "tools": { "t": { "enabled": false } } } }), [false, true, true]);
        check(json!({ "a": { "enabled": false, "tools": { "t": { "enabled": true } } } }), [false; 3]);
    }

    #[test]
    fn the_approval_mode_of_a_tool_counts_before_that_of_its_app() {
        let rules = rules(json!({ "a": {
            "default_tools_approval_mode": "approve", "tools": { "t": { "approval_mode": "prompt" } } } }));
        let mode = |id: &str, name: &str| rules.approval_mode(&connector(id), &tool(name, None, None));
        assert_eq!(mode("a", "t"), AppToolApproval::Prompt);
        assert_eq!(mode("a", "other"), AppToolApproval::Approve);
        assert_eq!(mode("b", "t"), AppToolApproval::Auto);
    }
}
