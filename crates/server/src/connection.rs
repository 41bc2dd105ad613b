//! One connection, from its first byte to its last: the handshake, the gates, and the requests in
//! progress.
//!
//! Requests start in the order they come: each is polled once where it is read, so what it sends to other tasks is sent
//! in that order. Those that are pending then go on concurrently; a slow request does not delay the others.

use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use futures_util::FutureExt;
use loomd_agent::ClientIdentity;
use loomd_console::Role;
use loomd_ownership::NodeId;
use loomd_protocol::{
    ClientRequest, DecodeError, Incoming, InitializeCapabilities, InitializeParams, InitializeResponse, Level,
    RequestId, RpcError, ServerInfo, ServerNotification, Stability, ThreadStatusChangedNotification, UNBUILT,
    W3cTraceContext, encode_error,
};
use loomd_telemetry::SpanContext;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tracing::{Instrument, debug, error, info, info_span, warn};

use crate::answer::AnswerSlot;
use crate::app::App;
use crate::connections::{Client, ConnectionId, Recipient};
use crate::context::{Context, decider};
use crate::dispatch::dispatch;
use crate::identity;
use crate::in_flight::{InFlight, Kind};
use crate::limits;
use crate::link::Links;
use crate::nodes::Requester;
use crate::outbound::{Notification, OutboundQueue};
use crate::processes::Processes;
use crate::routing::{self, Route};
use crate::samples::Samples;
use crate::throttle::{Throttle, short};

/// A message from a transport.
pub(crate) enum Inbound {
    Message(Bytes),
    /// The beginning of a message that was too long to keep.
    Oversized(Bytes),
}

/// The transport of clients that may be on other machines or belong to other users.
pub(crate) const REMOTE: &str = "remote websocket";

/// Who is at the other end of a connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PeerKind {
    /// Limits what a session of the console may send; other clients are not limited.
    pub role: Option<Role>,
    /// Another node that acts for a client, or for itself.
    pub node: Option<NodePeer>,
}

/// Another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NodePeer {
    pub id: NodeId,
    /// It acts for itself, and wants to know of all threads.
    pub is_observer: bool,
}

/// The source of a connection's messages.
pub(crate) trait Source: Send {
    /// Returns the next message; `None` at the end. Cancel-safe.
    fn next(&mut self) -> impl Future<Output = Option<Inbound>> + Send;

    /// Resolves when the peer has sent its last message, although that may not have been received yet.
    fn ended(&self) -> impl Future<Output = ()> + Send + 'static {
        std::future::pending()
    }
}

/// Serves a connection until its peer disconnects, it is cut, or the server stops. All requests that were received are
/// answered first, as far as that can be done in bounded time.
pub(crate) async fn serve(
    app: Arc<App>,
    transport: &'static str,
    peer: PeerKind,
    mut source: impl Source,
    outbound: Arc<OutboundQueue>,
    stop: CancellationToken,
) {
    let id = app.connections.next_id();
    let span = info_span!("connection", rpc.transport = transport, id = id.0);
    let PeerKind { role, node } = peer;
    let links = app.nodes.as_ref().map(|nodes| {
        let (app, nodes) = (Arc::clone(&app), Arc::clone(nodes));
        Links::new(app, nodes, id, Arc::clone(&outbound), role, transport == REMOTE)
    });
    let mut connection = Connection {
        app,
        id,
        transport,
        role,
        node,
        links,
        outbound,
        client: None,
        requests: InFlight::default(),
        processes: Arc::default(),
        spawned: Arc::default(),
        samples: Arc::default(),
        unexpected: Throttle::default(),
    };
    async {
        let ended = source.ended();
        let give_up = async {
            ended.await;
            tokio::time::sleep(limits::DRAIN).await;
        };
        let mut give_up = pin!(give_up);
        loop {
            let outbound = Arc::clone(&connection.outbound);
            let room = connection.requests.has_room();
            let next = async {
                outbound.has_room().await;
                room.await;
                source.next().await
            };
            tokio::select! {
                biased;
                () = connection.requests.next() => {}
                () = outbound.is_cut() => break,
                () = stop.cancelled() => {
                    _ = timeout(limits::DRAIN, connection.receive_the_rest(&mut source)).await;
                    break;
                }
                () = &mut give_up => break,
                inbound = next => match inbound {
                    Some(inbound) => connection.take(inbound).await,
                    None => break,
                },
            }
        }
        connection.end().await;
    }
    .instrument(span)
    .await;
}

struct Connection {
    app: Arc<App>,
    id: ConnectionId,
    transport: &'static str,
    /// Limits what a session of the console may send; other clients are not limited.
    role: Option<Role>,
    /// The node at the other end.
    node: Option<NodePeer>,
    /// The connections to other nodes for this client, where there are several.
    links: Option<Arc<Links>>,
    outbound: Arc<OutboundQueue>,
    /// Known after the handshake.
    client: Option<Arc<Client>>,
    requests: InFlight,
    /// The programs that its client runs.
    processes: Arc<Processes>,
    spawned: Arc<Processes>,
    samples: Arc<Samples>,
    /// Logs of invalid messages.
    unexpected: Throttle,
}

impl Connection {
    async fn take(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Message(message) => self.receive(&message).await,
            Inbound::Oversized(head) => self.refuse_oversized(&head),
        }
    }

    /// Receives what the peer had sent before the server began to stop.
    async fn receive_the_rest(&mut self, source: &mut impl Source) {
        while let Ok(Some(inbound)) = timeout(limits::QUIET, source.next()).await {
            self.take(inbound).await;
        }
    }

    async fn receive(&mut self, message: &[u8]) {
        match Incoming::parse(message) {
            Ok(Incoming::Request { id, method, params, trace, .. }) => {
                let parent = trace.and_then(|trace| self.span_context(&trace));
                if let Some(role) = self.role
                    && let Err(message) = role.check_request(&method, params.map(RawValue::get))
                {
                    return self.refuse(&id, RpcError::invalid_request(message));
                }
                match ClientRequest::decode(&method, params) {
                    Ok(ClientRequest::Initialize(decoded)) => {
                        self.initialize(&id, decoded);
                        if let (Some(links), Some(params), Some(client)) = (&self.links, params, &self.client) {
                            links.initialized(params.to_owned(), Arc::clone(client));
                        }
                    }
                    Ok(request) => self.request(id, request, params, parent).await,
                    Err(error) => self.refuse(&id, self.not_decoded(&method, error)),
                }
            }
            Ok(Incoming::Notification { method, .. }) => {
                info!(method = ?short(&method), "ignoring a client notification");
            }
            Ok(Incoming::Response { id, result }) => self.answered(&id, Ok(result)),
            Ok(Incoming::Error { id, error }) => self.answered(&id, Err(error)),
            Err(error) => {
                if let Some(count) = self.unexpected.admit() {
                    error!(%error, bytes = message.len(), count, "ignoring an invalid message");
                }
            }
        }
    }

    /// The client's position in a trace. Malformed ones are ignored.
    fn span_context(&mut self, trace: &W3cTraceContext) -> Option<SpanContext> {
        let parent = trace.traceparent.as_deref()?;
        let context = SpanContext::parse(parent, trace.tracestate.as_deref());
        if context.is_none()
            && let Some(count) = self.unexpected.admit()
        {
            warn!(count, "ignoring a malformed traceparent");
        }
        context
    }

    /// Takes a client's response to a server request.
    fn answered(&mut self, id: &RequestId, answer: Result<&RawValue, RpcError>) {
        if self.role.is_some_and(|role| !role.may_answer()) {
            if let Some(count) = self.unexpected.admit() {
                warn!(count, "ignoring a response of a session that may only view");
            }
            return;
        }
        if self.links.as_ref().is_some_and(|links| links.answer(id, &answer)) {
            return;
        }
        let by = || decider(self.id, self.client.as_deref(), self.role);
        if !self.app.server_requests.answer(self.id, id, answer, by)
            && let Some(count) = self.unexpected.admit()
        {
            warn!(count, "ignoring a response to an unknown server request");
        }
    }

    /// The handshake: the result, the warnings of the start, and only then the broadcasts.
    fn initialize(&mut self, id: &RequestId, params: InitializeParams) {
        if self.client.is_some() {
            return self.refuse(id, RpcError::invalid_request("Already initialized"));
        }
        if let Err(error) = identity::check_name(&params.client_info.name) {
            return self.refuse(id, error);
        }
        let user_agent = self.app.identity.user_agent(&params.client_info);
        let result = InitializeResponse {
            user_agent: user_agent.clone(),
            codex_home: self.app.sources.home.clone(),
            platform_family: std::env::consts::FAMILY.into(),
            platform_os: std::env::consts::OS.into(),
            server_info: Some(ServerInfo {
                name: "loomd".into(),
                version: self.app.identity.levels.version.clone(),
                build: env!("CARGO_PKG_VERSION").into(),
            }),
        };
        let level = self.app.identity.levels.of_connection(&params);
        self.outbound.set_level(level);
        match level.response(id, &result) {
            Ok(reply) => self.outbound.reply(reply),
            Err(error) => return self.refuse(id, RpcError::internal(error.to_string())),
        }
        let capabilities = params.capabilities.unwrap_or_default();
        if capabilities.event_ids {
            self.outbound.send_event_ids();
        }
        let client = Arc::new(Client {
            identity: Arc::new(ClientIdentity {
                user_agent,
                originator: self.app.identity.originator(&params.client_info),
                name: params.client_info.name,
                protocol_version: self.app.identity.levels.version.clone(),
                newer: level >= Level::V0_166,
                openai_form: has_openai_form(&capabilities),
            }),
            version: params.client_info.version,
            level,
            experimental: capabilities.experimental_api,
            event_ids: capabilities.event_ids,
            is_node: self.node.is_some(),
            opted_out: capabilities.opt_out_notification_methods.unwrap_or_default().into_iter().collect(),
        });
        let recipient = Recipient { client: Arc::clone(&client), outbound: Arc::clone(&self.outbound) };
        for warning in self.app.current_warnings() {
            let warning = Notification::new(ServerNotification::ConfigWarning(warning));
            if recipient.wants(&warning) {
                self.outbound.send_now(&warning);
            }
        }
        self.app.connections.join(self.id, recipient);
        self.app.start_background_work();
        self.client = Some(client);
        if self.node.is_some_and(|node| node.is_observer) {
            for (id, status) in self.app.threads().statuses() {
                let changed = ThreadStatusChangedNotification { thread_id: id.to_string(), status };
                self.outbound.send_now(&Notification::new(ServerNotification::ThreadStatusChanged(changed)));
            }
        }
    }

    /// Starts a request. `parent` is the client's position in a trace.
    async fn request(
        &mut self,
        id: RequestId,
        request: ClientRequest,
        params: Option<&RawValue>,
        parent: Option<SpanContext>,
    ) {
        let Some(client) = &self.client else {
            return self.refuse(&id, RpcError::invalid_request("Not initialized"));
        };
        if !client.experimental
            && let Some(name) = request.experimental_use(client.level)
        {
            return self.refuse(&id, needs_capability(name));
        }
        if self.requests.is_full() {
            return self.refuse(&id, RpcError::overloaded());
        }
        let span = info_span!(
            "request",
            rpc.system = "jsonrpc",
            rpc.method = request.method(),
            rpc.transport = self.transport,
            rpc.request_id = ?short(&id.to_string()),
            api_version = "v2",
            client.name = ?short(&client.identity.name),
            client.version = ?short(&client.version),
        );
        let cx = Context {
            app: Arc::clone(&self.app),
            connection: self.id,
            client: Arc::clone(client),
            outbound: Arc::clone(&self.outbound),
            processes: Arc::clone(&self.processes),
            spawned: Arc::clone(&self.spawned),
            samples: Arc::clone(&self.samples),
            role: self.role,
            may_run_processes: self.transport != REMOTE || self.app.remote_processes,
            answer: AnswerSlot::new(id, Arc::clone(&self.outbound)),
        };
        let method = request.method();
        let kind = Kind::of(method);
        let by = self.node.map_or(Requester::Client, |node| Requester::Node(node.id));
        let routed = self.links.as_ref().and_then(|links| {
            let route = Route::of(by, &request, params, client.event_ids)?;
            Some((Arc::clone(links), route))
        });
        let work = async move {
            let handled = async {
                match routed {
                    Some((links, route)) => routing::serve(&cx, &links, route, request).await,
                    None => dispatch(&cx, request).await,
                }
            };
            let handled = loomd_telemetry::within(parent, handled);
            if AssertUnwindSafe(handled).catch_unwind().await.is_err() {
                error!(method, "a handler panicked");
                cx.answer.refuse(&RpcError::internal(format!("internal error in {method}")));
            }
            kind
        };
        let mut work = Box::pin(work.instrument(span));
        if poll_fn(|cx| Poll::Ready(work.as_mut().poll(cx))).await.is_pending() {
            self.requests.push(kind, work);
        }
    }

    /// Returns the refusal of a request that was not decoded: an unknown method, wrong params, or a method that is known
    /// and not served.
    fn not_decoded(&self, method: &str, error: DecodeError) -> RpcError {
        let Some((name, stability)) = UNBUILT.iter().find(|(name, _)| *name == method) else { return error.into() };
        match &self.client {
            None => RpcError::invalid_request("Not initialized"),
            Some(client) if *stability == Stability::Experimental && !client.experimental => needs_capability(name),
            Some(_) => RpcError::not_supported(name),
        }
    }

    fn refuse(&self, id: &RequestId, error: RpcError) {
        debug!(code = error.code, message = ?short(&error.message), "refused");
        self.outbound.reply(encode_error(id, &error));
    }

    fn refuse_oversized(&mut self, head: &[u8]) {
        error!(limit = limits::MAX_LINE, "refusing a message that is too long");
        if let Some(id) = Incoming::find_request_id(head) {
            let message = format!("message is too long: limit is {} bytes", limits::MAX_LINE);
            self.refuse(&id, RpcError::invalid_request(message));
        }
    }

    /// Unregisters the connection, then waits for its requests in progress.
    async fn end(&mut self) {
        if let Some(links) = &self.links {
            links.end();
        }
        self.app.connections.leave(self.id);
        self.app.disconnect(self.id);
        self.end_processes();
        let drain = async {
            while self.requests.len() > 0 {
                self.requests.next().await;
            }
        };
        if timeout(limits::DRAIN, drain).await.is_err() {
            warn!(left = self.requests.len(), "giving up on requests in progress");
        }
        self.outbound.finish();
    }

    /// Stops the programs that the client can no longer reach. On stdio it may still read answers, so programs without
    /// an id run to their end.
    fn end_processes(&self) {
        self.spawned.stop();
        self.samples.cancel_all();
        match self.transport {
            "stdio" => self.processes.stop_named(),
            _ => self.processes.stop(),
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(links) = &self.links {
            links.end();
        }
        self.app.connections.leave(self.id);
    }
}

fn needs_capability(name: &str) -> RpcError {
    RpcError::invalid_request(format!("{name} requires experimentalApi capability"))
}

/// Whether a client answers elicitations of the mode `openai/form`.
fn has_openai_form(capabilities: &InitializeCapabilities) -> bool {
    capabilities.mcp_server_openai_form_elicitation == Some(true)
        || capabilities.extensions.as_ref().is_some_and(|extensions| extensions.contains_key("openai/form"))
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use loomd_config::{ConfigSources, LoadRequest, Overrides, load};
    use loomd_protocol::AbsolutePathBuf;

    use super::*;
    use crate::outbound::WhenFull;

    fn connection(home: &tempfile::TempDir) -> Connection {
        let home = AbsolutePathBuf::new(home.path()).unwrap();
        let flags = Overrides::default();
        let config = load(&LoadRequest::new(&home, &flags)).unwrap();
        let sources = ConfigSources { home, system_file: None, user_home: None, flags, live: Default::default() };
        let app = Arc::new(App::new(sources, &config, Vec::new()));
        let id = app.connections.next_id();
        let outbound = Arc::new(OutboundQueue::new(WhenFull::Cut));
        Connection {
            app,
            id,
            transport: "test",
            role: None,
            node: None,
            links: None,
            outbound,
            client: None,
            requests: InFlight::default(),
            processes: Arc::default(),
            spawned: Arc::default(),
            samples: Arc::default(),
            unexpected: Throttle::default(),
        }
    }

    async fn reply(connection: &mut Connection, message: &str) -> serde_json::Value {
        connection.receive(message.as_bytes()).await;
        let mut batch = connection.outbound.next().await.unwrap();
        serde_json::from_slice(&batch.remove(0)).unwrap()
    }

    const INITIALIZE: &str = r#"{"id":0,"method":"initialize","params":{"clientInfo":{"name":"a","version":"1"}}}"#;
    const PING: &str = r#"{"id":1,"method":"thread/loaded/list"}"#;

    #[tokio::test]
    async fn a_request_beyond_the_limit_is_refused_as_overloaded() {
        let home = tempfile::tempdir().unwrap();
        let mut connection = connection(&home);
        reply(&mut connection, INITIALIZE).await;
        for _ in 0..limits::MAX_IN_FLIGHT {
            connection.requests.push(Kind::Short, Box::pin(pending()));
        }
        let error = &reply(&mut connection, PING).await["error"];
        assert_eq!((&error["code"], &error["message"]), (&(-32001).into(), &"Server overloaded; retry later.".into()));
        connection.requests = InFlight::default();
        assert_eq!(reply(&mut connection, PING).await["result"]["data"], serde_json::json!([]));
    }

    /// Yields all messages at once, then ends.
    struct Flood(std::vec::IntoIter<String>);

    impl Source for Flood {
        async fn next(&mut self) -> Option<Inbound> {
            self.0.next().map(|message| Inbound::Message(message.into()))
        }
    }

    #[tokio::test]
    async fn a_flood_of_requests_is_answered_and_not_refused() {
        let home = tempfile::tempdir().unwrap();
        let Connection { app, outbound, .. } = &connection(&home);
        let count = 4 * limits::MAX_IN_FLIGHT;
        // Listing reads the disk, so each of these waits for another thread.
        let list = |id| format!(r#"{{"id":{id},"method":"thread/list"}}"#);
        let messages: Vec<_> = [INITIALIZE.to_owned()].into_iter().chain((1..=count).map(list)).collect();
        let served = serve(
            Arc::clone(app),
            "test",
            PeerKind::default(),
            Flood(messages.into_iter()),
            Arc::clone(outbound),
            CancellationToken::new(),
        );
        let read = async {
            let (mut results, mut errors) = (0, 0);
            while let Ok(batch) = outbound.next().await {
                for message in batch {
                    let message: serde_json::Value = serde_json::from_slice(&message).unwrap();
                    results += usize::from(message.get("result").is_some());
                    errors += usize::from(message.get("error").is_some());
                }
            }
            (results, errors)
        };
        let ((), seen) = tokio::join!(served, read);
        assert_eq!(seen, (count + 1, 0));
    }

    #[tokio::test]
    async fn broadcasts_reach_a_connection_only_between_its_handshake_and_its_end() {
        let home = tempfile::tempdir().unwrap();
        let mut connection = connection(&home);
        let warning =
            || ServerNotification::ThreadClosed(loomd_protocol::ThreadClosedNotification { thread_id: "t".into() });
        let app = Arc::clone(&connection.app);
        app.broadcast(warning()).await;
        let result = reply(&mut connection, INITIALIZE).await;
        assert_eq!(result["result"]["serverInfo"]["name"], "loomd", "nothing came before the result");
        app.broadcast(warning()).await;
        assert_eq!(connection.outbound.next().await.unwrap().len(), 1);
        connection.end().await;
        app.broadcast(warning()).await;
        assert!(connection.outbound.next().await.is_err());
    }
}
