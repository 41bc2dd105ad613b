//! `[loomd]`: settings of this server only. Other programs that share the file ignore it.

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Loomd {
    /// Records all model responses to this file, as a scenario that the rehearsal can play.
    pub record: Option<AbsolutePathBuf>,
    /// The scenario that the rehearsal plays.
    pub scenario: Option<AbsolutePathBuf>,
    /// The release of the protocol that is reported and spoken to all clients, such as `0.118.0`. By default the newest
    /// one is reported, and each connection is served the one that its client shows to speak.
    pub protocol_version: Option<String>,
    /// Allows `process/*`, which runs programs outside of sandboxes, to clients on the network. Default: false. Clients
    /// of the same user on this machine may always use it.
    pub remote_processes: Option<bool>,
    /// Resource limits of sandboxed commands.
    pub limits: Option<CommandLimits>,
}

/// Resource limits of one sandboxed command and its descendants.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandLimits {
    /// The maximum number of processes and threads at a time; 0 for no limit. Default: 4096.
    pub processes: Option<u64>,
    /// The maximum memory of each process in megabytes; 0 for no limit. Default: three quarters of the machine's
    /// memory.
    pub memory_mb: Option<u64>,
}
