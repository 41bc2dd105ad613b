//! [`McpServer`]: an MCP server that the app-server starts or connects to for a thread.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

/// An MCP server, as an entry of `mcp_servers` in the server's configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct McpServer(Map<String, Value>);

impl McpServer {
    /// A program that speaks on its stdin and stdout.
    pub fn stdio<A: Into<String>>(command: impl Into<String>, args: impl IntoIterator<Item = A>) -> Self {
        let args: Vec<String> = args.into_iter().map(Into::into).collect();
        Self(Map::new()).option("command", json!(command.into())).option("args", json!(args))
    }

    /// A server at a URL.
    pub fn http(url: impl Into<String>) -> Self {
        Self(Map::new()).option("url", json!(url.into()))
    }

    /// Sets an environment variable of a program.
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let env = self.0.entry("env").or_insert_with(|| json!({}));
        if let Value::Object(env) = env {
            env.insert(name.into(), Value::String(value.into()));
        }
        self
    }

    /// Sets any other option of the entry, such as `startup_timeout_sec` or `enabled_tools`.
    pub fn option(mut self, name: impl Into<String>, value: Value) -> Self {
        self.0.insert(name.into(), value);
        self
    }
}

/// The `config` of a thread with these servers.
pub(crate) fn config(servers: &BTreeMap<String, McpServer>) -> Option<Map<String, Value>> {
    if servers.is_empty() {
        return None;
    }
    let servers: Map<_, _> =
        servers.iter().map(|(name, server)| (name.clone(), Value::Object(server.0.clone()))).collect();
    Some(Map::from_iter([("mcp_servers".to_owned(), Value::Object(servers))]))
}

/// Whether a name can be that of an MCP server: it becomes part of the names of its tools.
pub(crate) fn is_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}
