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
}
