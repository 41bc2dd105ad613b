//! Any number of clients on a websocket listener (TCP or unix socket), a JSON object per text frame,
//! and the health probes beside them.

use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use axum::Router;
use axum::body::Body;
use axum::extract::ws::{CloseCode, CloseFrame, Message, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::{Listener, ListenerExt};
use bytes::Bytes;
use futures_util::future::join;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use loomd_console::Console;
use loomd_ownership::NodeId;
use tokio::net::{TcpListener, UnixListener, UnixSocket, UnixStream};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval_at, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{debug, info, warn};

use super::ServeError;
use super::console::{self, ConsoleRequest, ConsoleSession, Routed};
use super::peer::{Admission, Peer};
use crate::app::App;
use crate::auth::{Guard, Policy};
use crate::connection::{self, Inbound, NodePeer, PeerKind, Source};
use crate::figures::{figures, render};
use crate::limits;
use crate::nodes::Nodes;
use crate::outbound::{End, OutboundQueue, WhenFull};
use crate::throttle::Throttle;
use crate::upstream::{HEADER_LINK, HEADER_NODE, HEADER_REMOTE, HEADER_ROLE};

pub(super) async fn serve_tcp(
    app: Arc<App>,
    listener: TcpListener,
    guard: Guard,
    console: Option<ConsoleRequest>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let (admission, guard) = (admission(&guard), Arc::new(guard));
    let reload = reload_on_hang_up(&guard)?;
    let address = listener.local_addr()?;
    check_node_url(&app, address)?;
    app.join_nodes(Some(format!("ws://{address}")));
    let mut served_console = None;
    match console {
        None => announce(address),
        Some(ConsoleRequest { origins, on_ready, quiet }) => {
            let (console, link) = console::open(&app.sources.home, address, origins).await?;
            served_console = Some(console);
            if !quiet {
                announce(address);
            }
            on_ready(&link);
        }
    }
    let listener = listener.tap_io(|stream| {
        // Deltas are small and must not wait for each other.
        _ = stream.set_nodelay(true);
    });
    let transport = if admission == Admission::SameUser { "websocket" } else { connection::REMOTE };
    let is_local = address.ip().to_canonical().is_loopback();
    let access = Access { peer: Peer::of_tcp, admission, guard, transport, is_local, console: served_console };
    serve_on(listener, app, access, stop).await;
    if let Some(reload) = reload {
        reload.abort();
    }
    Ok(())
}

pub(super) async fn serve_unix(app: Arc<App>, path: PathBuf, stop: CancellationToken) -> Result<(), ServeError> {
    let (listener, _removed_at_the_end) = bind_unix(&path).await?;
    print_to_stderr(&format!("loomd app-server\n  listening on: unix://{}\n", path.display()));
    // The mode of the socket keeps other users out.
    let (admission, guard) = (Admission::Anyone, Arc::new(Guard::open()));
    let access = Access { peer: Peer::of_unix, admission, guard, transport: "unix", is_local: true, console: None };
    serve_on(listener, app, access, stop).await;
    Ok(())
}

/// Serves a unix socket that somebody else made, so that its mode says nothing about who may connect.
pub(super) async fn serve_passed_unix(
    app: Arc<App>,
    listener: UnixListener,
    guard: Guard,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let (admission, guard) = (admission(&guard), Arc::new(guard));
    let reload = reload_on_hang_up(&guard)?;
    let address = listener.local_addr()?;
    let path = address.as_pathname().unwrap_or(Path::new("")).display();
    print_to_stderr(&format!("loomd app-server\n  listening on: unix://{path}\n"));
    let access = Access { peer: Peer::of_unix, admission, guard, transport: "unix", is_local: true, console: None };
    serve_on(listener, app, access, stop).await;
    if let Some(reload) = reload {
        reload.abort();
    }
    Ok(())
}

/// Refuses an address that other nodes cannot connect to, unless they are given another one.
fn check_node_url(app: &App, address: SocketAddr) -> Result<(), ServeError> {
    let is_missing = |nodes: &Arc<Nodes>| nodes.options.token.is_some() && nodes.options.url.is_none();
    match address.ip().is_unspecified() && app.nodes.as_ref().is_some_and(is_missing) {
        true => Err(ServeError::NoNodeUrl(address)),
        false => Ok(()),
    }
}

fn admission(guard: &Guard) -> Admission {
    match guard.policy() {
        Policy::Open => Admission::SameUser,
        Policy::OpenToAll => Admission::Anyone,
        Policy::CapabilityToken(_) | Policy::SignedBearerToken { .. } => Admission::Authenticated,
    }
}

/// A task that reads the secret of the guard again on SIGHUP, if it has one in a file.
fn reload_on_hang_up(guard: &Arc<Guard>) -> io::Result<Option<JoinHandle<()>>> {
    if !guard.has_secret_file() {
        return Ok(None);
    }
    Ok(Some(tokio::spawn(reload_on(signal(SignalKind::hangup())?, Arc::clone(guard)))))
}

/// Which clients a listener serves.
pub(super) struct Access<L: Listener> {
    pub peer: fn(&L::Io) -> Peer,
    pub admission: Admission,
    pub guard: Arc<Guard>,
    pub transport: &'static str,
    /// Only programs on this machine can reach it.
    pub is_local: bool,
    pub console: Option<Arc<Console>>,
}

/// Accepts clients until `stop` is cancelled, then waits for their connections to end.
pub(super) async fn serve_on<L: Listener>(mut listener: L, app: Arc<App>, access: Access<L>, stop: CancellationToken) {
    let Access { peer, admission, guard, transport, is_local, console } = access;
    let has_metrics = app.metrics.unwrap_or(is_local);
    let clients = TaskTracker::new();
    let listening = RouterState { app, guard, clients: clients.clone(), stop: stop.clone(), transport, console };
    let service = TowerToHyperService::new(router(listening, has_metrics));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits::HEADERS);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.cancelled() => break,
        };
        let (io, _) = accepted;
        let peer = peer(&io);
        let (service, http, stop) = (service.clone(), http.clone(), stop.clone());
        tokio::spawn(async move {
            let checked = spawn_blocking(move || match admission.check(peer) {
                Ok(()) => PeerCheck { client: Ok(()), node: Ok(()) },
                refused => PeerCheck { client: refused, node: Admission::Authenticated.check(peer) },
            });
            let unchecked = Err("the client could not be checked");
            let admitted = checked.await.unwrap_or(PeerCheck { client: unchecked, node: unchecked });
            let service = service_fn(move |mut request: hyper::Request<_>| {
                request.extensions_mut().insert(admitted);
                service.call(request)
            });
            let serving = http.serve_connection(TokioIo::new(io), service).with_upgrades();
            tokio::select! {
                served = serving => {
                    if let Err(error) = served {
                        debug!(%error, "an HTTP connection ended");
                    }
                }
                () = stop.cancelled() => {}
            }
        });
    }
    drop(listener);
    clients.close();
    if timeout(limits::DRAIN * 2, clients.wait()).await.is_err() {
        warn!(left = clients.len(), "giving up on clients that do not leave");
    }
}

/// Whether the peer of a connection may open a websocket, as a client, and as a node that authenticates; the error is
/// the body of a 403.
#[derive(Clone, Copy)]
struct PeerCheck {
    client: Result<(), &'static str>,
    node: Result<(), &'static str>,
}

/// A socket that only its owner can reach. One that a dead server left behind is replaced.
async fn bind_unix(path: &Path) -> Result<(UnixListener, SocketFile), ServeError> {
    use std::os::unix::fs::FileTypeExt;
    if let Some(folder) = path.parent() {
        loomd_private::create_dir_all(folder)?;
    }
    match std::fs::symlink_metadata(path) {
        Ok(metadata) if !metadata.file_type().is_socket() => return Err(ServeError::NotASocket(path.to_owned())),
        Ok(_) if UnixStream::connect(path).await.is_ok() => return Err(ServeError::SocketInUse(path.to_owned())),
        _ => {}
    }
    let draft = path.with_extension(format!("{}.new", std::process::id()));
    let socket = UnixSocket::new_stream()?;
    // The file that it is bound to gets the mode of the socket, so no other user can ever open it.
    rustix::fs::fchmod(&socket, rustix::fs::Mode::from_raw_mode(loomd_private::FILE)).map_err(io::Error::from)?;
    socket.bind(&draft)?;
    let placed = socket.listen(BACKLOG).and_then(|listener| std::fs::rename(&draft, path).map(|()| listener));
    let listener = placed.inspect_err(|_| _ = std::fs::remove_file(&draft))?;
    Ok((listener, SocketFile { path: path.to_owned(), identity: identity(path) }))
}

/// Connections that wait to be accepted.
const BACKLOG: u32 = 1024;

/// The file of a unix socket. Removed when dropped, unless another server has replaced it.
struct SocketFile {
    path: PathBuf,
    identity: Option<(u64, u64)>,
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if identity(&self.path) == self.identity {
            _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Device and inode.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    std::fs::symlink_metadata(path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
}

/// Tools read the port from here, so it is printed whatever the log level is.
fn announce(address: SocketAddr) {
    let note = if address.ip().is_loopback() {
        "reachable from this machine only"
    } else {
        warn!(%address, "listening beyond this machine");
        "reachable from other machines: use --ws-auth, and TLS in front"
    };
    print_to_stderr(&format!(
        "loomd app-server\n  listening on: ws://{address}\n  readyz: http://{address}/readyz\n  healthz: http://{address}/healthz\n  note: {note}\n"
    ));
}

/// Errors are ignored: stderr may be closed.
fn print_to_stderr(text: &str) {
    _ = io::stderr().write_all(text.as_bytes());
}

async fn reload_on(mut hang_up: Signal, guard: Arc<Guard>) {
    while hang_up.recv().await.is_some() {
        match guard.reload() {
            Ok(()) => info!("read the websocket secret again"),
            Err(error) => warn!(%error, "keeping the old websocket secret"),
        }
    }
}

/// The state of the router.
#[derive(Clone)]
struct RouterState {
    app: Arc<App>,
    guard: Arc<Guard>,
    clients: TaskTracker,
    stop: CancellationToken,
    transport: &'static str,
    console: Option<Arc<Console>>,
}

fn router(listening: RouterState, has_metrics: bool) -> Router {
    let healthy = || get(|| async { StatusCode::OK });
    let mut router = Router::new().route("/readyz", healthy()).route("/healthz", healthy());
    if has_metrics {
        router = router.route("/metrics", get(metrics));
    }
    router
        .fallback(upgrade)
        .with_state(listening.clone())
        .layer(from_fn(forbid_origin))
        .layer(from_fn_with_state(listening, serve_console))
}

/// Answers the requests of the console's page, if there is one; all others go on.
async fn serve_console(State(listening): State<RouterState>, request: Request, next: Next) -> Response {
    let Some(console) = listening.console.clone() else { return next.run(request).await };
    if !Console::serves(request.uri().path(), request.headers()) {
        return next.run(request).await;
    }
    if let Some(PeerCheck { client: Err(reason), .. }) = request.extensions().get() {
        return (StatusCode::FORBIDDEN, *reason).into_response();
    }
    match console::route(console, request).await {
        Routed::Answered(answer) => answer,
        Routed::Socket(mut parts, session) => accept(listening, &mut parts, Some(session)).await,
    }
}

/// Browsers send an Origin and nothing else does: no web page but the console may talk to this server.
async fn forbid_origin(request: Request, next: Next) -> Response {
    if request.headers().contains_key(header::ORIGIN) {
        return StatusCode::FORBIDDEN.into_response();
    }
    next.run(request).await
}

impl RouterState {
    /// The response to a client that may not use the server.
    fn refusal(&self, parts: &Parts) -> Option<Response> {
        if let Some(PeerCheck { client: Err(reason), .. }) = parts.extensions.get() {
            debug!(reason, "refused a client");
            return Some((StatusCode::FORBIDDEN, *reason).into_response());
        }
        if let Err(reason) = self.guard.check(&parts.headers) {
            debug!(reason, "refused a client");
            let refusal = Response::builder()
                .status(StatusCode::UNAUTHORIZED)
                .header(header::CONTENT_TYPE, "text/plain; charset=utf-8")
                .body(Body::from(reason));
            return Some(refusal.unwrap_or_default());
        }
        None
    }
}

/// The node that a request comes from; the response to one that does not show that it is one.
#[expect(clippy::result_large_err, reason = "it is the response that is sent")]
fn node_peer(listening: &RouterState, parts: &Parts) -> Result<Option<NodePeer>, Response> {
    let Some(id) = parts.headers.get(HEADER_NODE) else { return Ok(None) };
    let refuse = |status, reason: &'static str| {
        debug!(reason, "refused another node");
        Err((status, reason).into_response())
    };
    if let Some(PeerCheck { node: Err(reason), .. }) = parts.extensions.get() {
        return refuse(StatusCode::FORBIDDEN, reason);
    }
    let bearer = parts.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let presented = bearer.and_then(|bearer| bearer.strip_prefix("Bearer "));
    let token = listening.app.nodes.as_ref().and_then(|nodes| nodes.options.token.as_ref());
    let (Some(token), Some(presented)) = (token, presented) else {
        return refuse(StatusCode::UNAUTHORIZED, "this server takes no requests of other nodes");
    };
    if !token.is(presented) {
        return refuse(StatusCode::UNAUTHORIZED, "wrong node token");
    }
    let Some(id) = id.to_str().ok().and_then(|id| id.parse().ok()) else {
        return refuse(StatusCode::BAD_REQUEST, "the id of the node is no number");
    };
    let is_observer = parts.headers.get(HEADER_LINK).is_some_and(|link| link == "observer");
    Ok(Some(NodePeer { id: NodeId(id), is_observer }))
}

/// `GET /metrics`: the figures of the server, for clients that might as well open a websocket.
async fn metrics(State(listening): State<RouterState>, request: Request) -> Response {
    let (parts, _) = request.into_parts();
    if let Some(refusal) = listening.refusal(&parts) {
        return refusal;
    }
    let text = render(&figures(&listening.app));
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// Every other path is a websocket.
async fn upgrade(State(listening): State<RouterState>, request: Request) -> Response {
    let (mut parts, _) = request.into_parts();
    accept(listening, &mut parts, None).await
}

/// Accepts a websocket of a peer that was checked and of a client that authenticates, or of the console, whose session
/// was checked.
async fn accept(listening: RouterState, parts: &mut Parts, session: Option<ConsoleSession>) -> Response {
    let upgrade = match WebSocketUpgrade::from_request_parts(parts, &()).await {
        Ok(upgrade) => upgrade,
        Err(rejection) => return rejection.into_response(),
    };
    let node = match node_peer(&listening, parts) {
        Ok(node) => node,
        Err(refusal) => return refusal,
    };
    // Who holds a session of the console, or is a node, has shown who they are.
    if session.is_none()
        && node.is_none()
        && let Some(refusal) = listening.refusal(parts)
    {
        return refusal;
    }
    if listening.clients.len() >= limits::MAX_CLIENTS {
        return (StatusCode::SERVICE_UNAVAILABLE, "too many clients").into_response();
    }
    let role = parts.headers.get(HEADER_ROLE).and_then(|role| role.to_str().ok()?.parse().ok());
    let is_remote = parts.headers.get(HEADER_REMOTE).is_some_and(|remote| remote == "true");
    let peer = match (&session, node) {
        (Some(session), _) => PeerKind { role: Some(session.role()), node: None },
        (None, node) => PeerKind { role: role.filter(|_| node.is_some()), node },
    };
    let transport = match node {
        None => listening.transport,
        Some(_) if is_remote => connection::REMOTE,
        Some(_) => "node",
    };
    let tracked = listening.clients.token();
    let upgrade = upgrade
        .max_frame_size(limits::MAX_FRAME)
        .max_message_size(limits::MAX_MESSAGE)
        .read_buffer_size(limits::FRAME_BUFFER)
        .write_buffer_size(limits::FRAME_BUFFER);
    upgrade.on_upgrade(async move |socket| {
        serve_client(listening, socket, session, peer, transport).await;
        drop(tracked);
    })
}

async fn serve_client(
    listening: RouterState,
    socket: WebSocket,
    session: Option<ConsoleSession>,
    peer: PeerKind,
    transport: &'static str,
) {
    let (sink, stream) = socket.split();
    let outbound = Arc::new(OutboundQueue::new(WhenFull::Cut));
    let pings = Arc::new(AtomicU32::new(0));
    let close_code = Arc::new(OnceLock::new());
    let frames = Frames {
        stream,
        pings: Arc::clone(&pings),
        close_code: Arc::clone(&close_code),
        unexpected: Throttle::default(),
    };
    let writing = write(sink, Arc::clone(&outbound), &pings, &close_code);
    let serving = connection::serve(listening.app, transport, peer, frames, Arc::clone(&outbound), listening.stop);
    // Always in this order: what one poll of the first queues is sent by the second before the next poll.
    let serving = join(serving, writing);
    let Some(session) = session else {
        serving.await;
        return;
    };
    let cut_when_revoked = async {
        session.revoked().await;
        outbound.cut();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        _ = serving => {}
        () = cut_when_revoked => {}
    }
}

struct Frames {
    stream: SplitStream<WebSocket>,
    /// Pings since the last frame of the peer.
    pings: Arc<AtomicU32>,
    /// The close code for an invalid frame of the peer.
    close_code: Arc<OnceLock<CloseCode>>,
    unexpected: Throttle,
}

impl Source for Frames {
    async fn next(&mut self) -> Option<Inbound> {
        // The writer shares this task. What is answered goes out before more is read: after a Close of
        // the peer nothing can be sent.
        tokio::task::yield_now().await;
        loop {
            let message = match self.stream.next().await? {
                Ok(message) => message,
                Err(error) => {
                    debug!(%error, "a websocket ended");
                    _ = self.close_code.set(close_code_of(error));
                    return None;
                }
            };
            self.pings.store(0, Ordering::Relaxed);
            match message {
                Message::Text(text) => return Some(Inbound::Message(text.into())),
                Message::Binary(frame) => {
                    if let Some(count) = self.unexpected.admit() {
                        warn!(bytes = frame.len(), count, "ignoring a binary frame");
                    }
                }
                // Pongs are sent by the library.
                Message::Ping(_) | Message::Pong(_) => {}
                Message::Close(_) => return None,
            }
        }
    }
}

fn close_code_of(error: axum::Error) -> CloseCode {
    match error.into_inner().downcast_ref() {
        Some(tungstenite::Error::Capacity(_)) => close_code::SIZE,
        Some(tungstenite::Error::Utf8(_)) => close_code::INVALID,
        Some(tungstenite::Error::Protocol(_)) => close_code::PROTOCOL,
        _ => close_code::AWAY,
    }
}

async fn write(
    mut sink: SplitSink<WebSocket, Message>,
    outbound: Arc<OutboundQueue>,
    pings: &AtomicU32,
    close_code: &OnceLock<CloseCode>,
) {
    let mut ticks = interval_at(Instant::now() + limits::PING_EVERY, limits::PING_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let reason = loop {
        let sent = tokio::select! {
            batch = outbound.next() => match batch {
                Ok(batch) => {
                    // A peer that takes what it is sent is alive, even while its own frames are not read.
                    pings.store(0, Ordering::Relaxed);
                    let bytes: usize = batch.iter().map(Bytes::len).sum();
                    timeout(limits::time_to_take(bytes), send(&mut sink, batch)).await
                }
                Err(End::Finished) => {
                    let code = close_code.get().copied().unwrap_or(close_code::AWAY);
                    break CloseFrame { code, reason: "".into() };
                }
                Err(End::Cut) => break CloseFrame { code: close_code::POLICY, reason: "too far behind".into() },
            },
            _ = ticks.tick() => {
                if pings.fetch_add(1, Ordering::Relaxed) >= limits::UNANSWERED_PINGS {
                    outbound.cut();
                    break CloseFrame { code: close_code::AWAY, reason: "no answer to pings".into() };
                }
                timeout(limits::STALLED, sink.send(Message::Ping(Bytes::new()))).await
            },
        };
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(error)) => {
                debug!(%error, "cannot send to a websocket");
                outbound.cut();
                _ = timeout(limits::STALLED, sink.flush()).await;
                return;
            }
            Err(_) => {
                warn!("cutting a websocket that takes too little");
                outbound.cut();
                return;
            }
        }
    };
    let closing = async {
        // After a Close of the peer this sends nothing, but the library has an answer to flush. The
        // peer may be gone already.
        _ = sink.send(Message::Close(Some(reason))).await;
        _ = sink.flush().await;
    };
    _ = timeout(limits::STALLED, closing).await;
}

async fn send(sink: &mut SplitSink<WebSocket, Message>, batch: Vec<Bytes>) -> Result<(), axum::Error> {
    for message in batch {
        match message.try_into() {
            Ok(text) => sink.feed(Message::Text(text)).await?,
            Err(error) => warn!(?error, "dropping a message that is not UTF-8"),
        }
    }
    sink.flush().await
}
