//! The console beside the websocket: the page's files, its sessions, and its own websocket, for which a session's cookie
//! takes the place of `--ws-auth`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use loomd_console::{Console, Origin, Role, SOCKET, Session};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::ServeError;
use super::websocket::{PeerCheck, RouterState, accept};

/// A request to serve the console on a websocket listener.
pub struct ConsoleRequest {
    /// Further origins under which browsers reach the listener, such as that of a proxy that adds TLS.
    pub origins: Vec<Origin>,
    /// Receives the address of the first link, once the listener is bound.
    pub on_ready: Box<dyn FnOnce(&str) + Send>,
    /// Whether the listener's own lines are not printed.
    pub quiet: bool,
}

/// The longest body that the page sends.
pub(super) const MAX_BODY: usize = 4096;

/// How often a connected session is checked for having been revoked.
const CHECK_EVERY: Duration = Duration::from_secs(2);

/// Sets up the console of a bound listener and makes the first link.
pub(super) async fn open(
    home: &Path,
    address: SocketAddr,
    origins: Vec<Origin>,
) -> Result<(Arc<Console>, String), ServeError> {
    if !address.ip().to_canonical().is_loopback() && origins.is_empty() {
        return Err(ServeError::PublicConsole(address));
    }
    let console = Arc::new(Console::new(home, address.port(), origins));
    let ours = Arc::clone(&console);
    let link = spawn_blocking(move || ours.create_link(Role::Drive)).await.map_err(std::io::Error::other)??;
    let host = if address.ip().is_unspecified() { ([127, 0, 0, 1], address.port()).into() } else { address };
    Ok((console, format!("http://{host}{link}")))
}

/// Answers the requests of the page; all others go on to the websocket.
pub(super) async fn route(State(listening): State<RouterState>, request: Request, next: Next) -> Response {
    let Some(console) = listening.console.clone() else { return next.run(request).await };
    if !Console::serves(request.uri().path(), request.headers()) {
        return next.run(request).await;
    }
    if let Some(PeerCheck(Err(reason))) = request.extensions().get() {
        return (StatusCode::FORBIDDEN, *reason).into_response();
    }
    let (mut parts, body) = request.into_parts();
    if parts.uri.path() == SOCKET {
        let headers = parts.headers.clone();
        let ours = Arc::clone(&console);
        return match spawn_blocking(move || ours.admit(&headers)).await {
            Ok(Ok(session)) => accept(listening, &mut parts, Some(ConsoleSession::new(console, session))).await,
            Ok(Err(refusal)) => (*refusal).map(Body::from),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
    }
    let Ok(body) = to_bytes(body, MAX_BODY).await else { return StatusCode::PAYLOAD_TOO_LARGE.into_response() };
    match spawn_blocking(move || console.respond(&parts, &body)).await {
        Ok(answer) => answer.map(Body::from),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// The session of a connected page.
pub(super) struct ConsoleSession {
    console: Arc<Console>,
    session: Session,
}

impl ConsoleSession {
    pub fn new(console: Arc<Console>, session: Session) -> Self {
        Self { console, session }
    }

    pub fn role(&self) -> Role {
        self.session.role
    }

    /// Resolves when the session has been revoked. Cancel-safe.
    pub async fn revoked(&self) {
        loop {
            sleep(CHECK_EVERY).await;
            let (console, session) = (Arc::clone(&self.console), self.session.clone());
            if matches!(spawn_blocking(move || console.is_valid(&session)).await, Ok(false)) {
                return;
            }
        }
    }
}
