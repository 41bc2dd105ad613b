//! The console beside the websocket: the page's files, its sessions, and its own websocket, for which a session's cookie
//! takes the place of `--ws-auth`.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use loomd_console::{Console, Origin, Role, SOCKET, Session};
use tokio::task::spawn_blocking;
use tokio::time::sleep;

use super::ServeError;

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
const MAX_BODY: usize = 4096;

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
    let named = origins.first().map(ToString::to_string);
    let console = Arc::new(Console::new(home, address.port(), origins));
    let ours = Arc::clone(&console);
    let link = spawn_blocking(move || ours.create_link(Role::Drive)).await.map_err(std::io::Error::other)??;
    let host = if address.ip().is_unspecified() { ([127, 0, 0, 1], address.port()).into() } else { address };
    // Browsers reach the listener under the origin that was named, if any.
    let origin = named.unwrap_or_else(|| format!("http://{host}"));
    Ok((console, format!("{origin}{link}")))
}

/// What becomes of a request of the page.
pub(super) enum Routed {
    Answered(Response),
    /// A websocket of a session that was admitted.
    Socket(Parts, ConsoleSession),
}

/// Answers a request of the page, whose peer was checked, unless it is for a websocket.
pub(super) async fn route(console: Arc<Console>, request: Request) -> Routed {
    let (parts, body) = request.into_parts();
    if parts.uri.path() == SOCKET {
        let headers = parts.headers.clone();
        let ours = Arc::clone(&console);
        return match spawn_blocking(move || ours.admit(&headers)).await {
            Ok(Ok(session)) => Routed::Socket(parts, ConsoleSession { console, session }),
            Ok(Err(refusal)) => Routed::Answered((*refusal).map(Body::from)),
            Err(_) => Routed::Answered(StatusCode::INTERNAL_SERVER_ERROR.into_response()),
        };
    }
    let Ok(body) = to_bytes(body, MAX_BODY).await else {
        return Routed::Answered(StatusCode::PAYLOAD_TOO_LARGE.into_response());
    };
    Routed::Answered(match spawn_blocking(move || console.respond(&parts, &body)).await {
        Ok(answer) => answer.map(Body::from),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    })
}

/// The session of a connected page.
pub(super) struct ConsoleSession {
    console: Arc<Console>,
    session: Session,
}

impl ConsoleSession {
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
