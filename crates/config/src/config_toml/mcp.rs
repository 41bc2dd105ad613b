//! `[mcp_servers.<name>]`: a program or a URL, and settings of its tools.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use loomd_protocol::AppToolApproval;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::secret::{Secret, as_written};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "McpServerToml", into = "McpServerToml")]
pub struct McpServer {
    pub transport: McpTransport,
    /// A disabled server is never started.
    pub enabled: bool,
    /// Threads cannot start without this server.
    pub required: bool,
    pub startup_timeout: Option<Duration>,
    pub tool_timeout: Option<Duration>,
    /// The tools that are offered, by raw name; `disabled_tools` are then removed.
    pub enabled_tools: Option<Vec<String>>,
    pub disabled_tools: Option<Vec<String>>,
    pub scopes: Option<Vec<String>>,
    pub tools: BTreeMap<String, McpTool>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum McpTransport {
    Stdio {
        command: String,
        args: Vec<String>,
        env: Option<BTreeMap<String, Secret>>,
        /// The names of variables that are passed on to the program.
        env_vars: Vec<String>,
        cwd: Option<PathBuf>,
    },
    StreamableHttp {
        url: String,
        bearer_token_env_var: Option<String>,
        http_headers: Option<BTreeMap<String, Secret>>,
        /// Header name to variable name.
        env_http_headers: Option<BTreeMap<String, String>>,
        oauth_resource: Option<String>,
    },
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct McpTool {
    /// Whether calls need approval: by the tool's annotations, always, never. Default: `auto`.
    pub approval_mode: Option<AppToolApproval>,
}

impl McpServer {
    pub fn startup_timeout(&self) -> Duration {
        self.startup_timeout.unwrap_or(Duration::from_secs(30))
    }

    pub fn tool_timeout(&self) -> Duration {
        self.tool_timeout.unwrap_or(Duration::from_secs(120))
    }
}

/// The table as written, before its keys are checked against each other.
#[derive(Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
struct McpServerToml {
    /// The program, for a server on stdio.
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    /// The arguments of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Vec<String>>,
    /// Environment variables that are set for the program.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_written")]
    env: Option<BTreeMap<String, Secret>>,
    /// Environment variables that are passed on to the program.
    #[serde(skip_serializing_if = "is_none_or_empty")]
    env_vars: Option<Vec<String>>,
    /// The working directory of the program. Default: that of loomd.
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<PathBuf>,
    /// The URL, for a server over streamable HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    /// Refused: use `bearer_token_env_var`.
    #[serde(skip_serializing)]
    bearer_token: Option<Secret>,
    /// The environment variable that has the bearer token.
    #[serde(skip_serializing_if = "Option::is_none")]
    bearer_token_env_var: Option<String>,
    /// Headers of every request.
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "as_written")]
    http_headers: Option<BTreeMap<String, Secret>>,
    /// Headers of every request, with the environment variables that have their values.
    #[serde(skip_serializing_if = "Option::is_none")]
    env_http_headers: Option<BTreeMap<String, String>>,
    /// The resource that a login is for. Default: the URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    oauth_resource: Option<String>,
    /// Whether the server is used. Default: `true`.
    enabled: Option<bool>,
    /// Whether threads fail to start without the server. Default: `false`.
    #[serde(skip_serializing_if = "is_not_set")]
    required: Option<bool>,
    /// The limit of the handshake and of the first listing of tools, in seconds. Default: 30.
    #[serde(skip_serializing_if = "Option::is_none")]
    startup_timeout_sec: Option<f64>,
    /// The same in milliseconds, unless `startup_timeout_sec` is set.
    #[serde(skip_serializing)]
    startup_timeout_ms: Option<u64>,
    /// The limit of a call, in seconds. Default: 120.
    tool_timeout_sec: Option<f64>,
    /// The tools that are offered. Default: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    enabled_tools: Option<Vec<String>>,
    /// Tools that are not offered.
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled_tools: Option<Vec<String>>,
    /// The scopes of a login. Default: those of the authorization server.
    #[serde(skip_serializing_if = "Option::is_none")]
    scopes: Option<Vec<String>>,
    /// Settings of tools, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    tools: BTreeMap<String, McpTool>,
}

fn is_none_or_empty(list: &Option<Vec<String>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}

fn is_not_set(flag: &Option<bool>) -> bool {
    *flag != Some(true)
}

impl TryFrom<McpServerToml> for McpServer {
    type Error = String;

    fn try_from(toml: McpServerToml) -> Result<Self, String> {
        let startup_timeout = match (toml.startup_timeout_sec, toml.startup_timeout_ms) {
            (Some(seconds), _) => Some(duration("startup_timeout_sec", seconds)?),
            (None, millis) => millis.map(Duration::from_millis),
        };
        let tool_timeout = toml.tool_timeout_sec.map(|seconds| duration("tool_timeout_sec", seconds)).transpose()?;
        let refuse = |transport: &str, fields: &[(&str, bool)]| match fields.iter().find(|(_, set)| *set) {
            Some((field, _)) => Err(format!("{field} is not supported for {transport}")),
            None => Ok(()),
        };
        let transport = if let Some(command) = toml.command {
            refuse(
                "stdio",
                &[
                    ("url", toml.url.is_some()),
                    ("bearer_token_env_var", toml.bearer_token_env_var.is_some()),
                    ("bearer_token", toml.bearer_token.is_some()),
                    ("http_headers", toml.http_headers.is_some()),
                    ("env_http_headers", toml.env_http_headers.is_some()),
                    ("oauth_resource", toml.oauth_resource.is_some()),
                ],
            )?;
            McpTransport::Stdio {
                command,
                args: toml.args.unwrap_or_default(),
                env: toml.env,
                env_vars: toml.env_vars.unwrap_or_default(),
                cwd: toml.cwd,
            }
        } else if let Some(url) = toml.url {
            refuse(
                "streamable_http",
                &[
                    ("args", toml.args.is_some()),
                    ("env", toml.env.is_some()),
                    ("env_vars", toml.env_vars.is_some()),
                    ("cwd", toml.cwd.is_some()),
                    ("bearer_token", toml.bearer_token.is_some()),
                ],
            )?;
            McpTransport::StreamableHttp {
                url,
                bearer_token_env_var: toml.bearer_token_env_var,
                http_headers: toml.http_headers,
                env_http_headers: toml.env_http_headers,
                oauth_resource: toml.oauth_resource,
            }
        } else {
            return Err("invalid transport".into());
        };
        Ok(Self {
            transport,
            enabled: toml.enabled.unwrap_or(true),
            required: toml.required.unwrap_or(false),
            startup_timeout,
            tool_timeout,
            enabled_tools: toml.enabled_tools,
            disabled_tools: toml.disabled_tools,
            scopes: toml.scopes,
            tools: toml.tools,
        })
    }
}

fn duration(field: &str, seconds: f64) -> Result<Duration, String> {
    Duration::try_from_secs_f64(seconds).map_err(|error| format!("{field}: {error}"))
}

impl From<McpServer> for McpServerToml {
    fn from(server: McpServer) -> Self {
        let rest = Self {
            enabled: Some(server.enabled),
            required: Some(server.required),
            startup_timeout_sec: server.startup_timeout.map(|timeout| timeout.as_secs_f64()),
            tool_timeout_sec: server.tool_timeout.map(|timeout| timeout.as_secs_f64()),
            enabled_tools: server.enabled_tools,
            disabled_tools: server.disabled_tools,
            scopes: server.scopes,
            tools: server.tools,
            ..Self::default()
        };
        match server.transport {
            McpTransport::Stdio { command, args, env, env_vars, cwd } => {
                Self { command: Some(command), args: Some(args), env, env_vars: Some(env_vars), cwd, ..rest }
            }
            McpTransport::StreamableHttp {
                url,
                bearer_token_env_var,
                http_headers,
                env_http_headers,
                oauth_resource,
            } => Self { url: Some(url), bearer_token_env_var, http_headers, env_http_headers, oauth_resource, ..rest },
        }
    }
}
