//! [`Client`]: connects, sends requests, and makes threads, turns and event streams.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{
    Call, INITIALIZED, InitializeCapabilities, InitializeParams, InitializeResponse, JsonValue, RpcError, call,
};
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::WithId;
use crate::events::{Events, Filter};
use crate::hub::Hub;
use crate::link::Link;
use crate::options::Options;
use crate::transport::Disconnect;
use crate::{lenient, reconnect};

/// A connection to a server. Clones share it; it is closed when the last clone, [`Thread`](crate::Thread) and
/// [`Turn`](crate::Turn) is dropped.
///
/// There is a method for every request of the protocol, named after it (`thread/name/set` is
/// [`thread_name_set`](Self::thread_name_set)); [`call`](Self::call) takes the method as a type. Shorter methods
/// ([`start_thread`](Self::start_thread), [`run_turn`](Self::run_turn), …) cover common uses.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// Overrides [`Options::request_timeout`].
    request_timeout: Option<Duration>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.shared.endpoint)
    }
}

pub(crate) struct Shared {
    pub(crate) endpoint: Endpoint,
    pub(crate) options: Options,
    pub(crate) hub: Arc<Hub>,
    state: watch::Sender<ConnectionState>,
    server: InitializeResponse,
    /// Ids of the threads that this connection is subscribed to, to be resumed after a reconnect.
    open: Mutex<BTreeSet<String>>,
}

#[derive(Clone)]
pub(crate) enum ConnectionState {
    Up(Arc<Link>),
    /// Reconnecting.
    Down,
    /// Disconnected, with no further attempt to reconnect.
    Over(Arc<Disconnect>),
    /// Closed by [`Client::close`]; final.
    Closed,
}

impl Client {
    /// Connects and makes the handshake.
    pub async fn connect(endpoint: impl Into<Endpoint>, options: Options) -> Result<Self, Error> {
        Self::open(endpoint, options).await.map(|(client, _)| client)
    }

    /// Connects, makes the handshake, and returns a stream of every event from the first on. Configuration warnings
    /// of the server come right after the handshake.
    pub async fn open(endpoint: impl Into<Endpoint>, options: Options) -> Result<(Self, Events), Error> {
        let (endpoint, hub) = (endpoint.into(), Arc::new(Hub::default()));
        let events = hub.subscribe(Filter::default());
        let (link, server) = handshake(&endpoint, &options, &hub).await?;
        let request_timeout = options.request_timeout;
        let shared = Arc::new(Shared {
            endpoint,
            options,
            hub,
            state: watch::Sender::new(ConnectionState::Down),
            server,
            open: Mutex::default(),
        });
        reconnect::supervise(&shared, link);
        Ok((Self { shared, request_timeout }, events))
    }

    /// The server's answer to the first `initialize`.
    pub fn server(&self) -> &InitializeResponse {
        &self.shared.server
    }

    /// A clone with another request timeout; `None` is no timeout.
    pub fn with_timeout(&self, timeout: impl Into<Option<Duration>>) -> Self {
        Self { shared: Arc::clone(&self.shared), request_timeout: timeout.into() }
    }

    /// A stream of the events from now on that pass `filter`.
    pub fn events(&self, filter: Filter) -> Events {
        self.shared.hub.subscribe(filter)
    }

    pub async fn call<C: Call>(&self, params: C::Params) -> Result<C::Result, Error> {
        let result = self.request(C::METHOD, &params).await?;
        lenient::decode_result(&result).map_err(|source| Error::Decode { method: C::METHOD.to_owned(), source })
    }

    /// Sends a request that this release has no type for.
    pub async fn call_json(&self, method: &str, params: JsonValue) -> Result<JsonValue, Error> {
        let result = self.request(method, &params).await?;
        serde_json::from_str(result.get()).map_err(|source| Error::Decode { method: method.to_owned(), source })
    }

    /// Sends a notification. The protocol's only one, `initialized`, is part of the handshake; servers may know more.
    pub async fn notify(&self, method: &str, params: Option<JsonValue>) -> Result<(), Error> {
        let sending = async { self.shared.link(None).await?.notify(method, params.as_ref()).await };
        within(method, self.request_timeout, sending).await
    }

    /// Closes the connection and waits until the server has closed its side. A server that this client spawned exits
    /// then, which interrupts its turns. Other clones and pending requests get [`Error::Closed`].
    pub async fn close(&self) -> Arc<Disconnect> {
        let last = self.shared.state.send_replace(ConnectionState::Closed);
        match last {
            ConnectionState::Up(link) => {
                link.close();
                link.ended().await
            }
            ConnectionState::Over(ended) => ended,
            ConnectionState::Down | ConnectionState::Closed => Arc::default(),
        }
    }

    pub(crate) fn options(&self) -> &Options {
        &self.shared.options
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.shared.hub
    }

    async fn request(&self, method: &str, params: &impl Serialize) -> Result<Box<RawValue>, Error> {
        let attempts = async {
            let mut pauses = self.shared.options.retry.pauses();
            let mut link = self.shared.link(None).await?;
            loop {
                match link.request(method, params).await {
                    Ok(Some(answer)) => return Ok(answer),
                    // Nothing was sent, so the request can go to the next connection.
                    Ok(None) if self.shared.options.reconnect.is_some() => {
                        link = self.shared.link(Some(&link)).await?;
                    }
                    Ok(None) => return Err(link.lost().await),
                    Err(Error::Rpc { error, method }) if is_overload(&error) => match pauses.next() {
                        Some(pause) => sleep(pause).await,
                        None => return Err(Error::Rpc { error, method }),
                    },
                    Err(error) => return Err(error),
                }
            }
        };
        let result = within(method, self.timeout_for(method), attempts).await?;
        self.shared.track_subscription(method, params, &result);
        Ok(result)
    }

    fn timeout_for(&self, method: &str) -> Option<Duration> {
        // It is answered when the command ends, and the server applies the command's own timeout.
        if method == call::CommandExec::METHOD { None } else { self.request_timeout }
    }
}

/// Opens a connection and makes the handshake on it.
pub(crate) async fn handshake(
    endpoint: &Endpoint,
    options: &Options,
    hub: &Arc<Hub>,
) -> Result<(Link, InitializeResponse), Error> {
    let method = call::Initialize::METHOD;
    let connecting = async {
        let transport =
            endpoint.open().await.map_err(|source| Error::Connect { endpoint: endpoint.to_string(), source })?;
        let link = Link::start(transport, Arc::clone(hub), Arc::clone(&options.handler));
        let capabilities = InitializeCapabilities {
            experimental_api: options.experimental_api,
            event_ids: true,
            opt_out_notification_methods: (!options.opt_out.is_empty()).then(|| options.opt_out.clone()),
            ..Default::default()
        };
        let params = InitializeParams { client_info: options.client.clone(), capabilities: Some(capabilities) };
        let Some(result) = link.request(method, &params).await? else {
            return Err(link.lost().await);
        };
        let server =
            lenient::decode_result(&result).map_err(|source| Error::Decode { method: method.to_owned(), source })?;
        link.notify(INITIALIZED, None).await?;
        Ok((link, server))
    };
    within(method, options.request_timeout, connecting).await
}

/// Awaits `answer`, or fails with [`Error::Timeout`].
pub(crate) async fn within<R>(
    method: &str,
    timeout_for: Option<Duration>,
    answer: impl Future<Output = Result<R, Error>>,
) -> Result<R, Error> {
    match timeout_for {
        Some(after) => match timeout(after, answer).await {
            Ok(answer) => answer,
            Err(_) => Err(Error::Timeout { method: method.to_owned(), after }),
        },
        None => answer.await,
    }
}

/// Whether the server refused the request as overloaded, before starting it, so that it can be retried. Servers
/// differ in the error code.
fn is_overload(error: &RpcError) -> bool {
    let server_defined = (-32099..=-32000).contains(&error.code);
    let named = || error.data.as_ref().is_some_and(|data| data.to_string().contains("server_overloaded"));
    error.code == RpcError::OVERLOADED || server_defined && named()
}

impl Shared {
    /// The live connection, other than `lost`; waits while the client reconnects.
    async fn link(&self, lost: Option<&Arc<Link>>) -> Result<Arc<Link>, Error> {
        let mut state = self.state.subscribe();
        let settled = |state: &ConnectionState| match state {
            ConnectionState::Up(link) => lost.is_none_or(|lost| !Arc::ptr_eq(lost, link)),
            ConnectionState::Down => false,
            ConnectionState::Over(_) | ConnectionState::Closed => true,
        };
        let state = state.wait_for(settled).await;
        match state.as_deref() {
            Ok(ConnectionState::Up(link)) => Ok(Arc::clone(link)),
            Ok(ConnectionState::Over(ended)) => Err(Error::Disconnected(Arc::clone(ended))),
            Ok(ConnectionState::Down | ConnectionState::Closed) | Err(_) => Err(Error::Closed),
        }
    }

    /// Sets the state and returns true, unless the client is closed.
    pub(crate) fn enter(&self, next: ConnectionState) -> bool {
        self.state.send_if_modified(|state| {
            let open = !matches!(state, ConnectionState::Closed);
            if open {
                *state = next;
            }
            open
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(*self.state.borrow(), ConnectionState::Closed)
    }

    /// Ids of the threads to resume after a reconnect.
    pub(crate) fn open_threads(&self) -> Vec<String> {
        self.open().iter().cloned().collect()
    }

    pub(crate) fn untrack(&self, thread_id: &str) {
        self.open().remove(thread_id);
    }

    /// Updates the set of open threads from a request that succeeded.
    fn track_subscription(&self, method: &str, params: &impl Serialize, result: &RawValue) {
        match method {
            "thread/start" | "thread/resume" | "thread/fork" => {
                if let Ok(ThreadResult { thread }) = serde_json::from_str(result.get()) {
                    self.open().insert(thread.id);
                }
            }
            "review/start" => {
                if let Ok(ReviewResult { review_thread_id }) = serde_json::from_str(result.get()) {
                    self.open().insert(review_thread_id);
                }
            }
            "thread/unsubscribe" | "thread/archive" | "thread/delete" => {
                if let Ok(JsonValue::Object(params)) = serde_json::to_value(params)
                    && let Some(JsonValue::String(id)) = params.get("threadId")
                {
                    self.untrack(id);
                }
            }
            _ => {}
        }
    }

    fn open(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.open.lock()
    }
}

#[derive(Deserialize)]
struct ThreadResult {
    thread: WithId,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReviewResult {
    review_thread_id: String,
}
