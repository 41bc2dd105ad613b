//! The implicit MCP server whose tools are those of the apps.

use std::collections::BTreeMap;
use std::time::Duration;

use loomd_config::config_toml::{ConfigToml, McpServer, McpTransport};
use loomd_mcp::{Authorization, Endpoint, Origin, ServerConfig, SetEntry};
use loomd_protocol::Secret;

use crate::account::Account;

/// Its name.
pub const SERVER: &str = "codex_apps";

/// The variable whose token is sent instead of the account's.
const TOKEN: &str = "CODEX_CONNECTORS_TOKEN";

const STARTUP: Duration = Duration::from_secs(30);

/// Hosts whose backend is below `/backend-api`.
const CHATGPT_HOSTS: [&str; 2] = ["https://chatgpt.com", "https://chat.openai.com"];

/// Returns the server of an account, with a connection of its own. `env` looks up a variable of our environment.
pub fn server_entry(config: &ConfigToml, account: &Account, env: &dyn Fn(&str) -> Option<String>) -> SetEntry {
    let token = env(TOKEN).filter(|token| !token.trim().is_empty());
    let apps = config.apps.clone().unwrap_or_default();
    let config = McpServer {
        transport: McpTransport::StreamableHttp {
            url: url(config.chatgpt_base_url()),
            http_headers: account_header(account).filter(|_| token.is_none()),
            bearer_token_env_var: token.map(|_| TOKEN.to_owned()),
            env_http_headers: None,
            oauth_resource: None,
        },
        enabled: true,
        required: false,
        startup_timeout: Some(STARTUP),
        tool_timeout: None,
        enabled_tools: None,
        disabled_tools: None,
        scopes: None,
        tools: Default::default(),
    };
    let mut reached = ServerConfig::new(SERVER, &config);
    if let Endpoint::Http(server) = &mut reached.endpoint {
        server.authorization = Authorization::Account;
    }
    SetEntry { config, reached, origin: Origin::Apps(apps) }
}

fn account_header(account: &Account) -> Option<BTreeMap<String, Secret>> {
    let id = account.account_id.clone()?;
    Some(BTreeMap::from([("ChatGPT-Account-ID".to_owned(), Secret::from(id))]))
}

fn url(base: &str) -> String {
    let mut base = base.trim_end_matches('/').to_owned();
    if !base.contains("/backend-api") && CHATGPT_HOSTS.iter().any(|host| base.starts_with(host)) {
        base.push_str("/backend-api");
    }
    let route = match () {
        () if base.contains("/backend-api") => "/wham/apps",
        () if base.contains("/api/codex") => "/apps",
        () => "/api/codex/apps",
    };
    format!("{base}{route}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_url_depends_on_the_backend() {
        for (base, expected) in [
            ("https://chatgpt.com/backend-api/", "https://chatgpt.com/backend-api/wham/apps"),
            ("https://chatgpt.com", "https://chatgpt.com/backend-api/wham/apps"),
            ("http://h/api/codex", "http://h/api/codex/apps"),
            ("http://h:1/", "http://h:1/api/codex/apps"),
        ] {
            assert_eq!(url(base), expected);
        }
    }

    #[test]
    fn a_token_of_the_environment_takes_the_place_of_the_account() {
        let account = Account { account_id: Some("a".into()), chatgpt_user_id: None, is_workspace_account: false };
        let entry =
            |token: &'static str| server_entry(&ConfigToml::default(), &account, &move |_| Some(token.to_owned()));
        let Endpoint::Http(own) = entry("t").reached.endpoint else { panic!("not HTTP") };
        assert!(own.has_own_authorization() && own.headers.is_empty());
        let Endpoint::Http(account) = entry(" ").reached.endpoint else { panic!("not HTTP") };
        assert_eq!(account.headers.len(), 1);
        assert!(!account.has_own_authorization() && account.authorization == Authorization::Account);
    }
}
