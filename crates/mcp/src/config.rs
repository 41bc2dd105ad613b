//! What decides how a server is reached.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loomd_config::config_toml::{McpServer, McpTransport};
use loomd_protocol::Secret;

/// How a server is reached. Threads with equal configurations share one connection; filters, approvals and deadlines
/// of tools are no part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerConfig {
    pub name: String,
    pub endpoint: Endpoint,
    /// For the handshake, and once more for the first listing of tools.
    pub startup_timeout: Duration,
    /// Whether the server may send forms of any shape, as the request `openai/form`.
    pub openai_form: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Endpoint {
    Stdio(StdioServer),
    Http(HttpServer),
}

/// A program that speaks MCP on its stdin and stdout.
#[derive(Clone, Debug, PartialEq)]
pub struct StdioServer {
    pub command: String,
    pub args: Vec<String>,
    pub env: BTreeMap<String, Secret>,
    /// Variables of our environment that are passed on.
    pub env_vars: Vec<String>,
    pub cwd: Option<PathBuf>,
}

/// A URL that speaks MCP over streamable HTTP.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServer {
    pub url: String,
    pub bearer_token_env_var: Option<String>,
    pub headers: BTreeMap<String, Secret>,
    /// Header name to variable name. Unset and blank variables are skipped.
    pub env_headers: BTreeMap<String, String>,
    pub oauth_resource: Option<String>,
    pub scopes: Option<Vec<String>>,
    pub authorization: Authorization,
}

/// Whose credentials authorize requests when the configuration has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authorization {
    /// An OAuth login to this server.
    OAuth,
    /// The signed-in account.
    Account,
}

impl ServerConfig {
    pub fn new(name: &str, config: &McpServer) -> Self {
        let endpoint = match &config.transport {
            McpTransport::Stdio { command, args, env, env_vars, cwd } => Endpoint::Stdio(StdioServer {
                command: command.clone(),
                args: args.clone(),
                env: env.clone().unwrap_or_default(),
                env_vars: env_vars.clone(),
                cwd: cwd.clone(),
            }),
            McpTransport::StreamableHttp {
                url,
                bearer_token_env_var,
                http_headers,
                env_http_headers,
                oauth_resource,
            } => Endpoint::Http(HttpServer {
                url: url.clone(),
                bearer_token_env_var: bearer_token_env_var.clone(),
                headers: http_headers.clone().unwrap_or_default(),
                env_headers: env_http_headers.clone().unwrap_or_default(),
                oauth_resource: oauth_resource.clone(),
                scopes: config.scopes.clone(),
                authorization: Authorization::OAuth,
            }),
        };
        Self { name: name.into(), endpoint, startup_timeout: config.startup_timeout(), openai_form: false }
    }
}

impl HttpServer {
    /// Scheme, host and port of the URL.
    pub fn origin(&self) -> Option<String> {
        let (scheme, rest) = self.url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next()?;
        let host = authority.rsplit('@').next().filter(|host| !host.is_empty())?;
        Some(format!("{scheme}://{host}"))
    }

    /// Whether the configuration itself authorizes requests, with a token variable or an `Authorization` header.
    pub fn has_own_authorization(&self) -> bool {
        let names_it = |name: &String| name.eq_ignore_ascii_case("authorization");
        self.bearer_token_env_var.is_some()
            || self.headers.keys().any(names_it)
            || self.env_headers.keys().any(names_it)
    }
}

/// Whether a name can be part of the names of tools.
pub fn is_valid_name(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}
