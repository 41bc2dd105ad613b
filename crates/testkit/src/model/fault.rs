//! Replies without a stream of events: refusals, errors and invalid bytes. Faults inside a stream are steps of
//! [`Reply`].

use loomd_protocol::JsonValue;
use serde_json::json;

use super::Reply;
use super::reply::Body;

/// A response with this status. A string is sent as plain text, any other body as JSON.
pub fn status(status: u16, body: JsonValue) -> Reply {
    let (content_type, body) = match body {
        JsonValue::String(text) => ("text/plain", text.into_bytes()),
        value => ("application/json", value.to_string().into_bytes()),
    };
    Reply::of(Body::Whole { status, content_type, body })
}

/// 429, with or without a `retry-after`.
pub fn rate_limited(retry_after: Option<u32>) -> Reply {
    let reply = error(429, "rate_limit_exceeded", "slow down");
    match retry_after {
        Some(seconds) => reply.header("retry-after", &seconds.to_string()),
        None => reply,
    }
}

/// 500.
pub fn server_error() -> Reply {
    error(500, "server_error", "it broke")
}

/// 401.
pub fn unauthorized() -> Reply {
    error(401, "invalid_api_key", "no such key")
}

/// A status with the usual body of an error. Providers have sent it with status 200, too.
pub fn error(code: u16, kind: &str, message: &str) -> Reply {
    status(code, json!({ "error": { "code": kind, "message": message } }))
}

/// The response to a compaction.
pub fn compacted(output: &[JsonValue]) -> Reply {
    status(200, json!({ "output": output }))
}

/// Closes the connection without a response.
pub fn hang_up() -> Reply {
    garbage([])
}

/// Sends bytes in place of HTTP, then closes the connection.
pub fn garbage(bytes: impl Into<Vec<u8>>) -> Reply {
    Reply::of(Body::Bytes(bytes.into()))
}
