//! `onDisconnect` of `thread/start` and `thread/resume`: an extension of this server.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a running turn does when the connection of the last subscriber of its thread is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnDisconnect {
    /// It goes on. Approvals wait for a client.
    #[default]
    Continue,
    /// It is interrupted.
    Interrupt,
    /// It stops before its next model call or approval, until a client has subscribed.
    Pause,
}
