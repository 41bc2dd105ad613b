//! The names of app tools for models: the app's name stands in front, once.

use loomd_mcp::Tool;

use crate::connector::Connector;
use crate::server::SERVER;

/// The two parts of a tool's name. Together they are the name of the function that a model calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNames {
    /// `mcp__codex_apps__<app>`
    pub namespace: String,
    pub name: String,
}

impl ToolNames {
    pub fn joined(&self) -> String {
        format!("{}{}", self.namespace, self.name)
    }
}

/// Returns the names of a tool of an app. The app's name, else its id, is removed from the start of the tool's own name.
pub fn tool_names(connector: &Connector, tool: &Tool) -> ToolNames {
    let (app, id, own) = (prefix(&connector.name), prefix(&connector.id), identifier(&tool.name));
    let rest = [&app, &id]
        .into_iter()
        .filter(|prefix| !prefix.is_empty())
        .find_map(|prefix| own.strip_prefix(prefix.as_str()).filter(|rest| !rest.is_empty()));
    let name = rest.unwrap_or(&own).to_owned();
    let app = if app.is_empty() { id } else { app };
    ToolNames { namespace: format!("mcp__{SERVER}__{app}"), name }
}

/// Lower case, with underscores for all but letters and digits.
fn identifier(name: &str) -> String {
    name.chars().map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '_' }).collect()
}

fn prefix(name: &str) -> String {
    identifier(name.trim()).trim_matches('_').to_owned()
}

#[cfg(test)]
mod tests {
    use loomd_mcp::Annotations;

    use super::*;

    fn tool(name: &str) -> Tool {
        Tool {
            name: name.into(),
            title: None,
            description: None,
            input_schema: serde_json::json!({}),
            annotations: Annotations::default(),
            meta: None,
            raw: Default::default(),
        }
    }

    #[test]
    fn a_tool_loses_the_prefix_of_its_app_once() {
        let beta = Connector { id: "beta".into(), name: "Beta App".into(), description: None };
        for (name, expected) in [
            ("beta_search", "beta_app_search"),
            ("beta-app-find", "beta_app_find"),
            ("Beta App_do-x", "beta_app_do_x"),
            ("beta_app", "beta_app_app"),
            ("betaappfind", "beta_appappfind"),
            ("find", "beta_appfind"),
        ] {
            assert_eq!(tool_names(&beta, &tool(name)).joined(), format!("mcp__codex_apps__{expected}"));
        }
        let odd = Connector { id: "k-1".into(), name: "Ünï Co!".into(), description: None };
        assert_eq!(tool_names(&odd, &tool("do")).joined(), "mcp__codex_apps__n__codo");
        let gamma = Connector { id: "gamma".into(), name: "Gamma".into(), description: None };
        let names = tool_names(&gamma, &tool("gamma_look"));
        assert_eq!((names.namespace.as_str(), names.name.as_str()), ("mcp__codex_apps__gamma", "_look"));
    }
}
