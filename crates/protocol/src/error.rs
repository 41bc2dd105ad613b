//! The error object of the wire, and its codes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::JsonValue;

/// An error response: a code, a message, and optional data for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "JSONRPCErrorError")]
pub struct RpcError {
    pub code: i64,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<JsonValue>,
}

impl RpcError {
    /// The caller's fault: unknown method, invalid params, invalid state, not found.
    pub const INVALID_REQUEST: i64 = -32600;
    /// A method that this server knows and does not serve.
    pub const METHOD_NOT_FOUND: i64 = -32601;
    /// Params that decode but contradict each other.
    pub const INVALID_PARAMS: i64 = -32602;
    /// A failure that is not the caller's fault.
    pub const INTERNAL: i64 = -32603;
    /// The server is overloaded; the request was not started and may be repeated.
    pub const OVERLOADED: i64 = -32001;

    pub fn invalid_request(message: impl Into<String>) -> Self {
        Self { code: Self::INVALID_REQUEST, message: message.into(), data: None }
    }

    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self { code: Self::INVALID_PARAMS, message: message.into(), data: None }
    }

    /// A method of the protocol that is not served, or not for what it was called with.
    pub fn not_supported(method: &str) -> Self {
        Self { code: Self::METHOD_NOT_FOUND, message: format!("{method} is not supported yet"), data: None }
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self { code: Self::INTERNAL, message: message.into(), data: None }
    }

    /// The data names the condition in the spelling that clients check.
    pub fn overloaded() -> Self {
        Self {
            code: Self::OVERLOADED,
            message: "Server overloaded; retry later.".into(),
            data: Some(serde_json::json!({ "codex_error_info": "server_overloaded" })),
        }
    }

    pub fn with_data(mut self, data: JsonValue) -> Self {
        self.data = Some(data);
        self
    }
}

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}
