//! How messages reach a server: over pipes to a program, or over HTTP. Both bound what they read, pass progress and
//! changes of the tool list on themselves, in order, and leave the rest to the service loop.

mod http;
mod lines;
mod message;
mod oversized;
mod stdio;

use std::sync::{Arc, OnceLock};

use loomd_protocol::JsonObject;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage};
use rmcp::service::{RoleClient, RxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

pub(crate) use http::{HttpOptions, HttpWire};
pub(crate) use message::OVERSIZED;
pub(crate) use stdio::StdioWire;

use crate::caller::BoxFuture;
use crate::in_flight::{CallTag, InFlight};
use message::{Decoded, Decoder};

/// Why a message could not be sent.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum WireError {
    #[error("{0}")]
    Failed(String),
    #[error("the server does not read its input")]
    Stuck,
    #[error("Transport closed")]
    Closed,
    /// A 401.
    #[error("not logged in")]
    NotLoggedIn,
}

/// What a connection shares with its transport.
#[derive(Clone)]
pub(crate) struct Hub {
    pub server: Arc<str>,
    pub calls: Arc<InFlight>,
    /// Notified when the server says that its tools have changed.
    pub tools_changed: Arc<Notify>,
    /// The result of `initialize`.
    pub introduction: Arc<OnceLock<JsonObject>>,
    /// Cancelled when no more messages will come.
    pub closed: CancellationToken,
}

/// A connection's transport.
pub(crate) struct Wire {
    hub: Hub,
    decoder: Decoder,
    link: Link,
}

pub(crate) enum Link {
    Stdio(StdioWire),
    Http(HttpWire),
}

impl Wire {
    pub fn new(hub: Hub, link: Link) -> Self {
        let decoder = Decoder::new(Arc::clone(&hub.introduction));
        Self { hub, decoder, link }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.hub.closed.cancel();
    }
}

impl Transport<RoleClient> for Wire {
    type Error = WireError;

    fn send(&mut self, message: ClientJsonRpcMessage) -> impl Future<Output = Result<(), WireError>> + Send + 'static {
        note_call(&message);
        let sent: BoxFuture<'static, _> = match &mut self.link {
            Link::Stdio(stdio) => Box::pin(std::future::ready(stdio.send(&message))),
            Link::Http(http) => http.send(message),
        };
        sent
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            if let Some(decoded) = self.decoder.next() {
                match decoded {
                    Decoded::Message(message) => return Some(*message),
                    Decoded::Progress { token, progress } => self.hub.calls.progress(&token, progress),
                    Decoded::ToolsChanged => self.hub.tools_changed.notify_one(),
                }
                continue;
            }
            let more = match &mut self.link {
                Link::Stdio(stdio) => stdio.read(&mut self.decoder, &self.hub.server).await,
                Link::Http(http) => http.read(&mut self.decoder).await,
            };
            if !more {
                self.hub.closed.cancel();
                return None;
            }
        }
    }

    async fn close(&mut self) -> Result<(), WireError> {
        self.hub.closed.cancel();
        match &mut self.link {
            Link::Stdio(stdio) => stdio.close().await,
            Link::Http(http) => http.close().await,
        }
        Ok(())
    }
}

/// Tells a call its ids, before the server can use them.
fn note_call(message: &ClientJsonRpcMessage) {
    if let JsonRpcMessage::Request(request) = message
        && let ClientRequest::CustomRequest(custom) = &request.request
        && let Some(CallTag(entry)) = custom.extensions.get()
        && let Some(meta) = custom.extensions.get::<rmcp::model::RequestMetaObject>()
        && let Some(token) = meta.get_progress_token()
    {
        entry.sent(request.id.clone(), token.0);
    }
}
