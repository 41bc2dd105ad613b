//! `[loomd]`: settings of this server only. Other programs that share the file ignore it.

use std::collections::BTreeMap;

use loomd_protocol::{AbsolutePathBuf, ApprovalDefault};
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
    /// Whether turns that a killed server left unfinished are taken up at the next start. Default: `listening`.
    pub recover_turns: Option<RecoverTurns>,
    /// Resource limits of sandboxed commands.
    pub limits: Option<CommandLimits>,
    /// What may be spent on model calls and tools. At 80% of a limit clients are warned, at 100% the turn fails with
    /// `sessionBudgetExceeded`.
    pub budgets: Option<Budgets>,
    /// The prices of models, by model or as `provider/model`, which takes precedence. Calls of other models count as free
    /// for budgets.
    pub prices: BTreeMap<String, ModelPrice>,
    /// How long clients have for the approvals of turns.
    pub approvals: Option<Approvals>,
    /// Whether a listener answers `GET /metrics`. Default: only a listener on a loopback address.
    pub metrics: Option<bool>,
    /// The PostgreSQL database that keeps the threads, as `postgres://USER@HOST:PORT/DATABASE`, which several servers may
    /// share. `--store` and the variable `LOOMD_STORE` take precedence. Default: files in the home.
    pub store: Option<String>,
    /// Where other nodes reach this one, as `ws://HOST:PORT`. Only with `store`. `--node-url` takes precedence. Default:
    /// the address that is listened on.
    pub node_url: Option<String>,
    /// What distinguishes this node, for threads that ask for it: names such as `gpu`. Only with `store`.
    pub node_labels: Option<Vec<String>>,
}

/// When unfinished turns are taken up. Where they are not, they are shown as interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RecoverTurns {
    /// At every start, also of a server on stdio.
    Always,
    /// When a server starts that listens on a websocket or a unix socket.
    #[default]
    Listening,
    Never,
}

/// Approvals that no client decides.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Approvals {
    /// The seconds until the default decision counts, also when the server is restarted meanwhile. Default: approvals
    /// stay open until a client decides or the turn ends.
    pub timeout_sec: Option<u64>,
    /// The decision after `timeout_sec`, without which it has no effect: `decline`, `accept` or `cancel`, which also
    /// interrupts the turn. Questions get no answers, and forms with fields are not accepted. Default: `decline`.
    #[serde(rename = "default")]
    pub default_decision: Option<ApprovalDefault>,
}

/// Budgets. A request may state lower ones for its thread or turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Budgets {
    /// What each turn may spend.
    pub turn: Option<BudgetLimits>,
    /// What each thread may spend as long as it exists, its child agents included.
    pub thread: Option<BudgetLimits>,
    /// What all threads of the home may spend on a day, in UTC.
    pub day: Option<BudgetLimits>,
}

/// The limits of a budget. A limit that is not set does not apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct BudgetLimits {
    /// Tokens of input and output, cached ones included.
    pub tokens: Option<u64>,
    /// Dollars, as far as `prices` has prices.
    #[serde(deserialize_with = "loomd_protocol::amount")]
    pub dollars: Option<f64>,
    /// Model calls, those of reviewers and of compaction included.
    pub model_calls: Option<u64>,
    /// Tool calls.
    pub tool_calls: Option<u64>,
    /// Seconds that turns take, approvals included.
    pub seconds: Option<u64>,
}

/// The price of a model in dollars per million tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ModelPrice {
    /// Input that is not cached. Default: 0.
    #[serde(deserialize_with = "loomd_protocol::amount")]
    pub input: Option<f64>,
    /// Input that the provider has cached. Default: as `input`.
    #[serde(deserialize_with = "loomd_protocol::amount")]
    pub cached_input: Option<f64>,
    /// Input that the provider writes to its cache. Default: as `input`.
    #[serde(deserialize_with = "loomd_protocol::amount")]
    pub cache_write_input: Option<f64>,
    /// Output, that of reasoning included. Default: 0.
    #[serde(deserialize_with = "loomd_protocol::amount")]
    pub output: Option<f64>,
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
