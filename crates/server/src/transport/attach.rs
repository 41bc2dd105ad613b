//! The console of another server: the page is served here, and its websocket is passed on to that server's. Roles are
//! enforced here, as that server does not know them.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use futures_util::{SinkExt, StreamExt};
use loomd_console::{Console, Role};
use loomd_protocol::{Incoming, RpcError, encode_error};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message as UpstreamMessage;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use super::ServeError;
use super::console::{self, ConsoleRequest, ConsoleSession, Routed};
use super::peer::{Admission, Peer};
use crate::limits;
use crate::shutdown::Signals;
use crate::upstream::{Upstream, UpstreamSocket};

struct Attached {
    console: Arc<Console>,
    upstream: Upstream,
    local: SocketAddr,
}

/// Serves the console of another server on a loopback address until a signal. Fails if that server cannot be reached.
pub async fn serve_attached(
    home: &Path,
    address: SocketAddr,
    upstream: Upstream,
    request: ConsoleRequest,
) -> Result<(), ServeError> {
    upstream.connect().await.map_err(|error| ServeError::Upstream(upstream.address.to_string(), error))?;
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    let (console, link) = console::open(home, local, request.origins).await?;
    (request.on_ready)(&link);
    let router = Router::new().fallback(respond).with_state(Arc::new(Attached { console, upstream, local }));
    let (stop, signals) = (CancellationToken::new(), Signals::catch(true)?);
    tokio::select! {
        served = axum::serve(listener, router.into_make_service_with_connect_info::<SocketAddr>()) => Ok(served?),
        () = stop.cancelled() => Ok(()),
        () = signals.obey(std::future::ready(()), &stop) => Ok(()),
    }
}

async fn respond(
    State(attached): State<Arc<Attached>>,
    ConnectInfo(remote): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response {
    let peer = Peer::Tcp { local: attached.local, remote };
    match spawn_blocking(move || Admission::SameUser.check(peer)).await {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => return (StatusCode::FORBIDDEN, reason).into_response(),
        Err(_) => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
    if !Console::serves(request.uri().path(), request.headers()) {
        return StatusCode::NOT_FOUND.into_response();
    }
    let (mut parts, session) = match console::route(Arc::clone(&attached.console), request).await {
        Routed::Answered(answer) => return answer,
        Routed::Socket(parts, session) => (parts, session),
    };
    let upgrade = match WebSocketUpgrade::from_request_parts(&mut parts, &()).await {
        Ok(upgrade) => upgrade.max_frame_size(limits::MAX_FRAME).max_message_size(limits::MAX_MESSAGE),
        Err(rejection) => return rejection.into_response(),
    };
    match attached.upstream.connect().await {
        Ok(upstream) => upgrade.on_upgrade(async move |page| pass_on(page, upstream, session).await),
        Err(error) => (StatusCode::BAD_GATEWAY, error).into_response(),
    }
}

/// Passes messages on in both directions, one at a time, until either side ends or takes too little, or the session is
/// revoked.
async fn pass_on(mut page: WebSocket, mut upstream: UpstreamSocket, session: ConsoleSession) {
    let role = session.role();
    let mut revoked = std::pin::pin!(session.revoked());
    loop {
        let sent = tokio::select! {
            message = page.recv() => match message {
                Some(Ok(Message::Text(text))) => match check(role, text.as_bytes()) {
                    Verdict::Pass => in_time(upstream.send(UpstreamMessage::text(text.as_str()))).await,
                    Verdict::Refuse(answer) => in_time(page.send(Message::Text(answer.into()))).await,
                    Verdict::Drop => true,
                },
                Some(Ok(Message::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => true,
            },
            message = upstream.next() => match message {
                Some(Ok(UpstreamMessage::Text(text))) => in_time(page.send(Message::Text(text.as_str().into()))).await,
                Some(Ok(UpstreamMessage::Close(_)) | Err(_)) | None => break,
                Some(Ok(_)) => true,
            },
            () = &mut revoked => break,
        };
        if !sent {
            break;
        }
    }
    debug!("a page of the console left");
    _ = timeout(limits::STALLED, upstream.close(None)).await;
}

/// Whether a message was sent before the other side counts as stalled.
async fn in_time<E>(sending: impl Future<Output = Result<(), E>>) -> bool {
    matches!(timeout(limits::STALLED, sending).await, Ok(Ok(())))
}

/// What happens to a message of the page.
#[derive(Debug, PartialEq)]
enum Verdict {
    Pass,
    Refuse(String),
    Drop,
}

fn check(role: Role, message: &[u8]) -> Verdict {
    match Incoming::parse(message) {
        Ok(Incoming::Request { id, method, params, .. }) => {
            match role.check_request(&method, params.map(RawValue::get)) {
                Ok(()) => Verdict::Pass,
                Err(reason) => {
                    let answer = encode_error(&id, &RpcError::invalid_request(reason));
                    Verdict::Refuse(String::from_utf8_lossy(&answer).into_owned())
                }
            }
        }
        Ok(Incoming::Notification { .. }) => Verdict::Pass,
        Ok(Incoming::Response { .. } | Incoming::Error { .. }) if role.may_answer() => Verdict::Pass,
        Ok(Incoming::Response { .. } | Incoming::Error { .. }) | Err(_) => Verdict::Drop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_viewer_can_neither_send_nor_answer_through_an_attached_console() {
        let request = br#"{"id":1,"method":"turn/start","params":{}}"#;
        assert_eq!(check(Role::Drive, request), Verdict::Pass);
        let Verdict::Refuse(answer) = check(Role::View, request) else { panic!("expected a refusal") };
        assert!(answer.contains("the role `view` may not call `turn/start`"), "{answer}");
        let answer = br#"{"id":0,"result":{"decision":"accept"}}"#;
        assert_eq!([Role::View, Role::Approve].map(|role| check(role, answer)), [Verdict::Drop, Verdict::Pass]);
        assert_eq!(check(Role::View, br#"{"id":1,"method":"thread/list"}"#), Verdict::Pass);
        assert_eq!(check(Role::Drive, b"nonsense"), Verdict::Drop);
    }
}
