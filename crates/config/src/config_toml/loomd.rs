//! `[loomd]`: what only this server has. Other programs that share the file ignore it.

use loomd_protocol::AbsolutePathBuf;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Loomd {
    /// What models answer is written to this file, as a scenario that the rehearsal can play.
    pub record: Option<AbsolutePathBuf>,
    /// The scenario that the rehearsal plays.
    pub scenario: Option<AbsolutePathBuf>,
    /// What sandboxed commands may take of the machine.
    pub limits: Option<CommandLimits>,
}

/// Limits of one sandboxed command and all that it starts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CommandLimits {
    /// How many processes and threads there may be at a time; 0 for no limit. Without it, 4096.
    pub processes: Option<u64>,
    /// How many megabytes each process may allocate; 0 for no limit. Without it, three quarters of the machine's.
    pub memory_mb: Option<u64>,
}
