//! The app-server protocol: every message between clients and server as a type, and one table of methods ([`methods`])
//! from which the rest is derived.
//!
//! Does no I/O and needs no runtime. Where to start: [`methods`] lists all methods, [`Incoming`] classifies messages,
//! [`ThreadItem`] is the unit of a turn.

mod delta;
mod envelope;
mod error;
mod level;
mod methods;
mod open;
mod path;
pub mod schema;
mod secret;
mod serde_util;
mod table;
mod types;

pub use delta::TextDelta;
pub use envelope::*;
pub use error::RpcError;
pub use level::Level;
pub use methods::*;
pub use open::*;
pub use path::AbsolutePathBuf;
pub use secret::Secret;
pub use serde_util::amount;
pub use table::{Call, DecodeError, IgnoredParams, MethodInfo, NoParams, ServerCall, Stability};
pub use types::*;

/// Any JSON.
pub type JsonValue = serde_json::Value;
/// A JSON object; members keep their order.
pub type JsonObject = serde_json::Map<String, serde_json::Value>;
