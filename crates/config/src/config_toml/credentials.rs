//! Environment variables of the server that hold credentials of providers and MCP servers.

use std::collections::BTreeSet;

use super::mcp::McpTransport;
use super::{ConfigToml, ModelProvider};

/// The API key variable that the program itself reads.
const OWN: &str = "CODEX_API_KEY";

impl ConfigToml {
    /// Returns the names of all variables that this server reads credentials from, set or not.
    pub fn credential_variables(&self) -> BTreeSet<String> {
        let built_in = ModelProvider::built_in_ids().filter_map(ModelProvider::built_in);
        let mut names: BTreeSet<String> = built_in.filter_map(|provider| provider.env_key).collect();
        names.insert(OWN.into());
        for provider in self.model_providers.values() {
            names.extend(provider.env_key.clone());
            names.extend(provider.env_http_headers.iter().flatten().map(|(_, variable)| variable.clone()));
        }
        for server in self.mcp_servers.values() {
            if let McpTransport::StreamableHttp { bearer_token_env_var, env_http_headers, .. } = &server.transport {
                names.extend(bearer_token_env_var.clone());
                names.extend(env_http_headers.iter().flatten().map(|(_, variable)| variable.clone()));
            }
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credential_variables_include_built_in_and_configured_providers_and_mcp_servers() {
        let config: ConfigToml = toml::from_str(
            r#"
            [model_providers.mine]
            name = "Mine"
            env_key = "MY_KEY"
            env_http_headers = { "X-Team" = "MY_TEAM" }
            [mcp_servers.far]
            url = "http://localhost:1/"
            bearer_token_env_var = "FAR_TOKEN"
            "#,
        )
        .unwrap();
        let names = config.credential_variables();
        for name in ["MY_KEY", "MY_TEAM", "FAR_TOKEN", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "CODEX_API_KEY"] {
            assert!(names.contains(name), "{name}");
        }
        assert!(!names.contains("PATH"));
    }
}
