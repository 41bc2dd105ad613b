//! The handshake: `initialize`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{AbsolutePathBuf, JsonObject};

/// The client's identity. The name is sent in HTTP headers of model calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClientInfo {
    pub name: String,
    pub title: Option<String>,
    pub version: String,
}

/// The client's capabilities.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeCapabilities {
    #[serde(default)]
    pub experimental_api: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opt_out_notification_methods: Option<Vec<String>>,
    /// The release of the protocol that the client speaks, such as `0.166.0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// Whether the client answers `attestation/generate`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub request_attestation: bool,
    /// Extensions that are passed on to MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub extensions: Option<JsonObject>,
    /// Whether the client answers elicitations of the mode `openai/form`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_server_openai_form_elicitation: Option<bool>,
    /// Whether the client signs in to a gateway itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explicit_gateway_oauth: Option<bool>,
    /// Whether the client is sent an `eventId` beside `method` and `params` of everything about a thread, and its
    /// `clientUserMessageId`s make requests idempotent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub event_ids: bool,
}

/// Params of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeParams {
    pub client_info: ClientInfo,
    pub capabilities: Option<InitializeCapabilities>,
}

/// Result of `initialize`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResponse {
    pub user_agent: String,
    pub codex_home: AbsolutePathBuf,
    pub platform_family: String,
    pub platform_os: String,
    /// The program itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_info: Option<ServerInfo>,
}

/// The server program. Clients compare the version with the least one that they support.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerInfo {
    pub name: String,
    /// The release of the protocol that the server reports, as in `userAgent`.
    pub version: String,
    /// The version of the program.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub build: String,
}
