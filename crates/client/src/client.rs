//! The client: connects, calls, and hands out threads, turns and events.

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

/// A connection to a server. Clones share it; when the last one is gone, and every thread and turn that came from
/// it, the server is told.
///
/// There is a method for every request of the protocol, named after it (`thread/name/set` is
/// [`thread_name_set`](Self::thread_name_set)); [`call`](Self::call) does the same for a method given as a type.
/// The shorter names ([`start_thread`](Self::start_thread), [`run_turn`](Self::run_turn), …) do what most programs
/// want.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    /// In place of the one in the options.
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
    /// Threads that this connection is subscribed to.
    open: Mutex<BTreeSet<String>>,
}

#[derive(Clone)]
pub(crate) enum ConnectionState {
    Up(Arc<Link>),
    /// The connection is being made again.
    Down,
    /// There will be no connection any more.
    Over(Arc<Disconnect>),
    /// It was closed here.
    Closed,
}

impl Client {
    /// Connects and shakes hands.
    pub async fn connect(endpoint: impl Into<Endpoint>, options: Options) -> Result<Self, Error> {
        Self::open(endpoint, options).await.map(|(client, _)| client)
    }

    /// Connects, shakes hands, and gives every event from the first on: the server's warnings about its
    /// configuration come right after the handshake.
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

    /// What the server said about itself when this client first connected.
    pub fn server(&self) -> &InitializeResponse {
        &self.shared.server
    }

    /// The same client with another timeout_for: `None` waits for ever.
    pub fn with_timeout(&self, timeout: impl Into<Option<Duration>>) -> Self {
        Self { shared: Arc::clone(&self.shared), request_timeout: timeout.into() }
    }

    /// Events from now on.
    pub fn events(&self, filter: Filter) -> Events {
        self.shared.hub.subscribe(filter)
    }

    /// Calls a method.
    pub async fn call<C: Call>(&self, params: C::Params) -> Result<C::Result, Error> {
        let result = self.request(C::METHOD, &params).await?;
        lenient::decode_result(&result).map_err(|source| Error::Decode { method: C::METHOD.to_owned(), source })
    }

    /// Calls a method that this release has no type for.
    pub async fn call_json(&self, method: &str, params: JsonValue) -> Result<JsonValue, Error> {
        let result = self.request(method, &params).await?;
        serde_json::from_str(result.get()).map_err(|source| Error::Decode { method: method.to_owned(), source })
    }

    /// Takes leave of the server and waits until it has gone, too. A server that this client started ends with
    /// that; turns that it runs are interrupted. Other clones, and requests in progress, get [`Error::Closed`].
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
                    // Nothing was sent, so the next connection will do as well.
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
        // It is answered when the command ends, and the server has a clock for that.
        if method == call::CommandExec::METHOD { None } else { self.request_timeout }
    }
}

/// One connection, made and introduced.
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
            opt_out_notification_methods: (!options.opt_out.is_empty()).then(|| options.opt_out.clone()),
        };
        let params = InitializeParams { client_info: options.client.clone(), capabilities: Some(capabilities) };
        let Some(result) = link.request(method, &params).await? else {
            return Err(link.lost().await);
        };
        let server =
            lenient::decode_result(&result).map_err(|source| Error::Decode { method: method.to_owned(), source })?;
        link.notify(INITIALIZED).await?;
        Ok((link, server))
    };
    within(method, options.request_timeout, connecting).await
}

/// Waits for an answer, but not for ever.
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

/// The server did not start the request, so it may be made again. Servers differ in how they say so.
fn is_overload(error: &RpcError) -> bool {
    let server_defined = (-32099..=-32000).contains(&error.code);
    let named = || error.data.as_ref().is_some_and(|data| data.to_string().contains("server_overloaded"));
    error.code == RpcError::OVERLOADED || server_defined && named()
}

impl Shared {
    /// The live connection, or the next one after `lost`; waits while it is being made.
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

    /// Unless the client was closed, which is for ever.
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

    /// Threads to resume after a reconnect.
    pub(crate) fn open_threads(&self) -> Vec<String> {
        self.open().iter().cloned().collect()
    }

    pub(crate) fn untrack(&self, thread_id: &str) {
        self.open().remove(thread_id);
    }

    /// Keeps track of what this connection is subscribed to.
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
