//! The errors of the crate.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::RpcError;
use thiserror::Error;

use crate::{CompletedTurn, Disconnect};

#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Error {
    #[error("cannot connect to {endpoint}: {source}")]
    Connect { endpoint: String, source: ConnectError },
    /// An error response.
    #[error("{method}: {error}")]
    Rpc { method: String, error: Box<RpcError> },
    /// The request may still be carried out.
    #[error("no answer to {method} within {after:?}")]
    Timeout { method: String, after: Duration },
    /// No event of the turn within [`Options::turn_timeout`](crate::Options::turn_timeout); the turn was interrupted.
    #[error("no event of turn {turn_id} for {after:?}")]
    TurnTimeout { thread_id: String, turn_id: String, after: Duration },
    /// The turn took longer than [`Options::turn_limit`](crate::Options::turn_limit); it was interrupted.
    #[error("turn {turn_id} did not end within {after:?}")]
    TurnLimit { thread_id: String, turn_id: String, after: Duration },
    /// The turn ended with status `failed`; the value holds what it did until then.
    #[error("the turn failed: {}", .0.error_message())]
    TurnFailed(Box<CompletedTurn>),
    /// The connection was lost. Pending requests may have been carried out.
    #[error("{0}")]
    Disconnected(Arc<Disconnect>),
    /// [`Client::close`](crate::Client::close) was called.
    #[error("the client is closed")]
    Closed,
    /// The response does not fit the types of this release.
    #[error("cannot decode the answer to {method}: {source}")]
    Decode { method: String, source: serde_json::Error },
    #[error("cannot encode the params of {method}: {source}")]
    Encode { method: String, source: serde_json::Error },
    #[error("no turn is running in thread {thread_id}")]
    NoActiveTurn { thread_id: String },
    /// The subscriber's queue overflowed; the events after that are lost.
    #[error("the event stream was read too slowly")]
    Lagged,
}

impl Error {
    /// The error response, for [`Error::Rpc`].
    pub fn rpc(&self) -> Option<&RpcError> {
        match self {
            Self::Rpc { error, .. } => Some(error),
            _ => None,
        }
    }
}

/// Why a connection could not be made.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An HTTP answer in place of the websocket handshake: 401 if the token is missing or wrong.
    #[error("the server refused with status {status}: {body}")]
    Refused { status: u16, body: String },
    #[error("not a websocket server: {0}")]
    Handshake(String),
    #[error("not a websocket URL; expected `ws://HOST:PORT` or `wss://HOST:PORT`")]
    BadUrl,
    #[error("unsupported URL scheme: expected `ws://` or `wss://`")]
    NotWs,
    #[error("cannot use a root certificate: {0}")]
    BadCertificate(String),
    #[error("invalid bearer token: not allowed in a header")]
    BadToken,
}
