//! One live connection to a server, from the handshake to its end.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::JsonValue;
use parking_lot::Mutex;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientNotification, ClientRequest, CustomRequest, RequestId,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RequestHandle, RoleClient, RunningService, ServiceError,
    serve_client,
};
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::caller::Caller;
use crate::config::{Authorization, Endpoint, ServerConfig, is_valid_name};
use crate::error::{CallError, StartError};
use crate::in_flight::{CallEntry, CallTag, InFlight};
use crate::inbound::{Inbound, Users};
use crate::limits::{MAX_PAGES, MAX_RESOURCES};
use crate::listing::{Listing, Tool, ToolPages};
use crate::servers::Shared;
use crate::transport::{HttpOptions, HttpWire, Hub, Link, OVERSIZED, StdioWire, Wire, WireError};

/// The code of a server that does not know a method.
const METHOD_NOT_FOUND: i64 = -32601;

/// A server that ran for this long has not failed to start.
const PROVEN: Duration = Duration::from_secs(60);

/// Tools that were listed longer ago are listed again for a new thread.
const STALE: Duration = Duration::from_secs(60);

/// A connection. It is closed when dropped.
pub(crate) struct Connection {
    opened: Instant,
    /// When the tools were listed.
    listed: Mutex<Instant>,
    hub: Hub,
    listing: Mutex<Arc<Listing>>,
    /// The sandbox state that the server was sent last, if it wants to know it.
    sandbox_state: tokio::sync::Mutex<Option<JsonValue>>,
    service: RunningService<RoleClient, Inbound>,
}

impl Connection {
    /// Starts or reaches a server, shakes hands and lists its tools.
    pub async fn open(config: &ServerConfig, shared: &Shared, users: Arc<Users>) -> Result<Arc<Self>, StartError> {
        if !is_valid_name(&config.name) {
            return Err(StartError::InvalidName(config.name.clone()));
        }
        let limit = config.startup_timeout;
        let late = |_| StartError::Timeout(limit);
        let opened = tokio::time::timeout(limit, Self::shake_hands(config, shared, users)).await;
        let connection = opened.map_err(late)??;
        let tools = connection.list_tools(limit).await.map_err(|error| match error {
            CallError::Timeout { .. } => StartError::Timeout(limit),
            other => StartError::Listing(other.to_string()),
        })?;
        connection.set_tools(tools);
        let connection = Arc::new(connection);
        tokio::spawn(follow_changes(Arc::downgrade(&connection), connection.hub.clone(), limit));
        Ok(connection)
    }

    async fn shake_hands(config: &ServerConfig, shared: &Shared, users: Arc<Users>) -> Result<Self, StartError> {
        let hub = Hub {
            server: config.name.as_str().into(),
            calls: Arc::new(InFlight::default()),
            tools_changed: Arc::new(Notify::new()),
            introduction: Arc::default(),
            closed: CancellationToken::new(),
        };
        let link = match &config.endpoint {
            Endpoint::Stdio(server) => {
                let started = StdioWire::start(&config.name, server, &shared.environment).await;
                Link::Stdio(started.map_err(|error| StartError::Spawn(Arc::new(error)))?)
            }
            Endpoint::Http(server) => {
                let credentials = match server.authorization {
                    Authorization::OAuth => &shared.oauth,
                    Authorization::Account => &shared.account,
                };
                let (env, agent) = (&shared.environment, shared.user_agent());
                let options = HttpOptions::new(&config.name, server, env, &agent, Arc::clone(credentials))?;
                Link::Http(HttpWire::new(options, Arc::clone(&shared.http)))
            }
        };
        let (calls, closed) = (Arc::clone(&hub.calls), hub.closed.clone());
        let inbound = Inbound::new(config.name.clone(), shared.client_config(config.openai_form), calls, users, closed)
            .with_openai_form(config.openai_form);
        let service = serve_client(inbound, Wire::new(hub.clone(), link)).await.map_err(handshake_error)?;
        let introduction = hub.introduction.get().cloned().unwrap_or_default();
        let listing = Listing {
            tools: Vec::new(),
            capabilities: introduction.get("capabilities").and_then(JsonValue::as_object).cloned().unwrap_or_default(),
            server_info: introduction.get("serverInfo").cloned(),
            instructions: introduction.get("instructions").and_then(JsonValue::as_str).map(str::to_owned),
        };
        let listing = Mutex::new(Arc::new(listing));
        let now = Instant::now();
        Ok(Self {
            opened: now,
            listed: Mutex::new(now),
            hub,
            listing,
            sandbox_state: tokio::sync::Mutex::default(),
            service,
        })
    }

    pub fn is_closed(&self) -> bool {
        self.hub.closed.is_cancelled()
    }

    /// Whether it has been open for so long that its end is no sign of a server that cannot run.
    pub fn is_proven(&self) -> bool {
        self.opened.elapsed() > PROVEN
    }

    /// Resolves when the connection has ended.
    pub async fn closed(&self) {
        self.hub.closed.cancelled().await;
    }

    /// Whether calls are in flight.
    pub fn is_busy(&self) -> bool {
        !self.hub.calls.is_empty()
    }

    pub fn listing(&self) -> Arc<Listing> {
        Arc::clone(&self.listing.lock())
    }

    /// Lists the tools again when that was long ago and the server does not say when they change.
    pub async fn refresh(&self, limit: Duration) {
        let announced = self.listing().capabilities.get("tools").and_then(|tools| tools.get("listChanged")).cloned();
        let stale = self.listed.lock().elapsed() > STALE;
        if stale && announced != Some(JsonValue::Bool(true)) {
            match self.list_tools(limit).await {
                Ok(tools) => self.set_tools(tools),
                Err(error) => tracing::debug!(server = %self.hub.server, %error, "the tools could not be listed again"),
            }
        }
    }

    pub fn set_tools(&self, tools: Vec<Arc<Tool>>) {
        *self.listed.lock() = Instant::now();
        let mut listing = self.listing.lock();
        // Unchanged tools stay the same list, so that nothing is made of them anew.
        if listing.tools == tools {
            return;
        }
        *listing = Arc::new(Listing { tools, ..Listing::clone(&listing) });
    }

    /// Sends a request and waits for its answer. When the future is dropped, and after `limit`, the server is told
    /// that the request is cancelled. Time in which the user is asked does not count.
    pub async fn request(
        &self,
        method: &'static str,
        params: Option<JsonValue>,
        limit: Duration,
        caller: Option<Arc<dyn Caller>>,
    ) -> Result<JsonValue, CallError> {
        let mut request = CustomRequest::new(method, params);
        let registered = caller.map(|caller| self.hub.calls.register(caller));
        let entry = registered.as_ref().map(|registered| Arc::clone(&registered.entry));
        if let Some(entry) = &entry {
            request.extensions.insert(CallTag(Arc::clone(entry)));
        }
        let request = ClientRequest::CustomRequest(request);
        let peer = self.service.peer();
        let deadline = Instant::now() + limit;
        let late = || CallError::Timeout { method, limit };
        let sent = tokio::select! {
            sent = peer.send_request_with_option(request, PeerRequestOptions::no_options()) => sent,
            () = self.hub.closed.cancelled() => return Err(CallError::Closed),
            () = tokio::time::sleep_until(deadline) => return Err(late()),
        };
        let RequestHandle { rx, id, peer, .. } = sent.map_err(call_error)?;
        let mut pending = CancelOnDrop { peer, id: Some(id) };
        let answered = tokio::select! {
            biased;
            answered = rx => answered.unwrap_or(Err(ServiceError::TransportClosed)),
            () = self.hub.closed.cancelled() => Err(ServiceError::TransportClosed),
            () = expired(deadline, entry.as_deref()) => return Err(late()),
        };
        pending.id = None;
        match answered.map_err(call_error)? {
            ServerResult::CustomResult(result) => Ok(result.0),
            _ => Err(CallError::Unexpected { method, reason: "an answer of another kind".into() }),
        }
    }

    /// All tools, page by page.
    pub async fn list_tools(&self, limit: Duration) -> Result<Vec<Arc<Tool>>, CallError> {
        let mut pages = ToolPages::default();
        let mut take = |page| {
            pages.add(page);
            pages.is_full()
        };
        match self.pages("tools/list", "tools", limit, &mut take).await {
            // It has none.
            Err(CallError::Server { code: METHOD_NOT_FOUND, .. }) => {}
            listed => listed?,
        }
        Ok(pages.finish(&self.hub.server))
    }

    /// All entries of a listing.
    pub async fn list_all(
        &self,
        method: &'static str,
        member: &str,
        limit: Duration,
    ) -> Result<Vec<JsonValue>, CallError> {
        let mut entries = Vec::new();
        self.pages(method, member, limit, &mut |page| {
            entries.extend(page);
            entries.len() >= MAX_RESOURCES
        })
        .await?;
        entries.truncate(MAX_RESOURCES);
        Ok(entries)
    }

    /// Takes the pages of a listing until `take` has enough, within `limit` for each.
    async fn pages(
        &self,
        method: &'static str,
        member: &str,
        limit: Duration,
        take: &mut (dyn FnMut(Vec<JsonValue>) -> bool + Send),
    ) -> Result<(), CallError> {
        let mut cursor: Option<String> = None;
        for _ in 0..MAX_PAGES {
            let (page, next) = self.page(method, member, cursor.as_deref(), limit).await?;
            if take(page) || next.is_none() || next == cursor {
                break;
            }
            cursor = next;
        }
        Ok(())
    }

    /// One page of a listing, and the cursor of the next one.
    pub async fn page(
        &self,
        method: &'static str,
        member: &str,
        cursor: Option<&str>,
        limit: Duration,
    ) -> Result<(Vec<JsonValue>, Option<String>), CallError> {
        let params = cursor.map_or_else(|| json!({}), |cursor| json!({ "cursor": cursor }));
        let mut result = self.request(method, Some(params), limit, None).await?;
        let next = result.get("nextCursor").and_then(JsonValue::as_str).map(str::to_owned);
        match result.get_mut(member).map(JsonValue::take) {
            Some(JsonValue::Array(entries)) => Ok((entries, next)),
            _ => Err(CallError::Unexpected { method, reason: format!("`{member}` is no list") }),
        }
    }

    /// Sends the sandbox state to a server that wants to know it, when it has changed.
    pub async fn send_sandbox_state(&self, state: &JsonValue, limit: Duration) -> Result<(), CallError> {
        let capabilities = &self.listing().capabilities;
        let wanted = capabilities.get("experimental").and_then(|some| some.get("codex/sandbox-state")).is_some();
        if !wanted {
            return Ok(());
        }
        let mut sent = self.sandbox_state.lock().await;
        if sent.as_ref() != Some(state) {
            self.request("codex/sandbox-state/update", Some(state.clone()), limit, None).await?;
            *sent = Some(state.clone());
        }
        Ok(())
    }
}

/// Lists the tools again when the server says that they have changed, until the connection ends.
async fn follow_changes(connection: std::sync::Weak<Connection>, hub: Hub, limit: Duration) {
    loop {
        tokio::select! {
            () = hub.tools_changed.notified() => {}
            () = hub.closed.cancelled() => return,
        }
        let Some(connection) = connection.upgrade() else { return };
        match connection.list_tools(limit).await {
            Ok(tools) => connection.set_tools(tools),
            Err(error) => tracing::warn!(server = %hub.server, %error, "the changed tools could not be listed"),
        }
    }
}

/// Resolves at the deadline, which moves by the time that the user was asked.
async fn expired(deadline: Instant, entry: Option<&CallEntry>) {
    let mut at = deadline;
    loop {
        tokio::time::sleep_until(at).await;
        let moved = deadline + entry.map_or(Duration::ZERO, CallEntry::paused);
        if moved <= Instant::now() {
            return;
        }
        // While the user is asked the deadline keeps moving.
        at = moved.max(Instant::now() + Duration::from_millis(50));
    }
}

/// Tells the server that a request is no longer waited for, when dropped before it was answered.
struct CancelOnDrop {
    peer: Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        let peer = self.peer.clone();
        let cancelled = CancelledNotificationParam::new(Some(id), Some("the request is no longer needed".into()));
        let cancelled = ClientNotification::CancelledNotification(CancelledNotification::new(cancelled));
        runtime.spawn(async move {
            let _ = peer.send_notification(cancelled).await;
        });
    }
}

fn handshake_error(error: ClientInitializeError) -> StartError {
    match &error {
        ClientInitializeError::TransportError { error: cause, .. } => match cause.error.downcast_ref::<WireError>() {
            Some(WireError::NotLoggedIn) => StartError::NotLoggedIn,
            Some(cause) => StartError::Handshake(cause.to_string()),
            None => StartError::Handshake(error.to_string()),
        },
        _ => StartError::Handshake(error.to_string()),
    }
}

fn call_error(error: ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) if error.code.0 == OVERSIZED => CallError::TooLarge,
        ServiceError::McpError(error) => {
            CallError::Server { code: error.code.0.into(), message: error.message.into_owned() }
        }
        ServiceError::TransportClosed => CallError::Closed,
        ServiceError::TransportSend(error) => match error.error.downcast_ref::<WireError>() {
            Some(WireError::Closed) => CallError::Closed,
            Some(cause) => CallError::Transport(cause.to_string()),
            None => CallError::Transport(error.to_string()),
        },
        other => CallError::Transport(other.to_string()),
    }
}
