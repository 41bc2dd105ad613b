//! What can go wrong with a server.

use std::sync::Arc;
use std::time::Duration;

/// Why a server could not be started.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StartError {
    #[error("Invalid MCP server name '{0}': must match pattern ^[a-zA-Z0-9_-]+$")]
    InvalidName(String),
    /// The program could not be executed.
    #[error("{}", spawn_error(.0))]
    Spawn(Arc<loomd_exec::Error>),
    #[error("handshaking with MCP server failed: {0}")]
    Handshake(String),
    #[error("listing the tools failed: {0}")]
    Listing(String),
    #[error("timed out handshaking with MCP server after {0:?}")]
    Timeout(Duration),
    #[error("not logged in")]
    NotLoggedIn,
    /// A token, a header or the URL cannot be used.
    #[error("{0}")]
    Settings(String),
    #[error("it failed {failures} times in a row and is started again in {} s at the earliest; last error: {last}", .wait.as_secs() + 1)]
    BackingOff { failures: u32, wait: Duration, last: Box<StartError> },
}

impl StartError {
    /// The error as clients see it in start-up notifications.
    pub fn message(&self, server: &str) -> String {
        match self {
            Self::Timeout(limit) => format!(
                "MCP client for `{server}` timed out after {} seconds. Add or adjust `startup_timeout_sec` in your \
                 config.toml:\n[mcp_servers.{server}]\nstartup_timeout_sec = XX",
                limit.as_secs()
            ),
            Self::NotLoggedIn => {
                format!("The {server} MCP server is not logged in. Run `codex mcp login {server}`.")
            }
            other => format!("MCP client for `{server}` failed to start: MCP startup failed: {other}"),
        }
    }
}

/// The system's own words, if it has some.
fn spawn_error(error: &loomd_exec::Error) -> String {
    match error {
        loomd_exec::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

/// Why a request to a server failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CallError {
    /// The server answered with an error.
    #[error("Mcp error: {code}: {message}")]
    Server { code: i64, message: String },
    #[error("timed out awaiting {method} after {limit:?}")]
    Timeout { method: &'static str, limit: Duration },
    /// The server ended while it was called.
    #[error("Transport closed: the server ended during the call; it is started again by the next one")]
    Closed,
    #[error("the server's answer is larger than {} MiB", crate::limits::MAX_MESSAGE >> 20)]
    TooLarge,
    #[error("{0}")]
    Transport(String),
    #[error("the answer is not what {method} returns: {reason}")]
    Unexpected { method: &'static str, reason: String },
    /// It is not running and could not be started.
    #[error("the server could not be started: {0}")]
    NotStarted(StartError),
}
