//! Bytes to messages and back: stdio, websocket, unix socket. A client in the same process needs none.

mod attach;
mod console;
mod error;
mod in_process;
mod lines;
mod passed;
mod peer;
mod stdio;
mod websocket;

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

pub use crate::upstream::{Upstream, UpstreamAddress};
pub use attach::serve_attached;
pub use console::ConsoleRequest;
pub use error::ServeError;
pub use in_process::serve_in_process;

use crate::app::App;
use crate::auth::{Guard, Policy};
use crate::listen::ListenUrl;
use crate::shutdown::Signals;

/// The default unix socket, inside the home folder.
pub const CONTROL_SOCKET: &str = "app-server-control/app-server-control.sock";

/// Serves clients until the end of stdin or a signal.
pub async fn serve(
    app: Arc<App>,
    listen: ListenUrl,
    policy: Policy,
    console: Option<ConsoleRequest>,
) -> Result<(), ServeError> {
    if console.is_some() && !matches!(listen, ListenUrl::Websocket(_)) {
        return Err(ServeError::ConsoleNeedsWebsocket);
    }
    let stop = CancellationToken::new();
    let hang_up_reloads = matches!(listen, ListenUrl::Websocket(_) | ListenUrl::Passed) && policy.has_secret_file();
    let signals = Signals::catch(!hang_up_reloads)?;
    // Network clients are served until running turns have ended.
    let drains = matches!(listen, ListenUrl::Websocket(_) | ListenUrl::Unix(_) | ListenUrl::Passed);
    app.recover_turns(drains).await;
    let ours = Arc::clone(&app);
    let drain = async move {
        if drains {
            ours.drain().await;
        }
    };
    tokio::select! {
        served = serve_until(app, listen, policy, console, stop.clone()) => served,
        () = signals.obey(drain, &stop) => Ok(()),
    }
}

async fn serve_until(
    app: Arc<App>,
    listen: ListenUrl,
    policy: Policy,
    console: Option<ConsoleRequest>,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let ours = Arc::clone(&app);
    if !matches!(listen, ListenUrl::Websocket(_) | ListenUrl::Passed) {
        app.join_nodes(None);
    }
    match listen {
        ListenUrl::Stdio => stdio::serve(app, stop).await?,
        ListenUrl::Websocket(address) => {
            check_address(address, &policy)?;
            let guard = Guard::new(policy)?;
            websocket::serve_tcp(app, TcpListener::bind(address).await?, guard, console, stop).await?;
        }
        ListenUrl::Passed => match passed::take()? {
            passed::PassedListener::Tcp(listener) => {
                check_address(listener.local_addr()?, &policy)?;
                websocket::serve_tcp(app, listener, Guard::new(policy)?, None, stop).await?;
            }
            passed::PassedListener::Unix(listener) => {
                app.join_nodes(None);
                websocket::serve_passed_unix(app, listener, Guard::new(policy)?, stop).await?;
            }
        },
        ListenUrl::Unix(path) => {
            let path = path.unwrap_or_else(|| app.sources.home.join(CONTROL_SOCKET));
            websocket::serve_unix(app, path, stop).await?;
        }
        ListenUrl::Off => stop.cancelled().await,
    }
    ours.close().await;
    Ok(())
}

/// Refuses to listen beyond this machine without authentication.
fn check_address(address: SocketAddr, policy: &Policy) -> Result<(), ServeError> {
    if *policy == Policy::Open && !address.ip().to_canonical().is_loopback() {
        return Err(ServeError::Unauthenticated(address));
    }
    Ok(())
}

/// Serves any websocket client of the given listener, without authentication, until `stop` is cancelled.
pub async fn serve_on(listener: impl axum::serve::Listener, app: Arc<App>, stop: CancellationToken) {
    let access = websocket::Access {
        peer: |_| peer::Peer::Trusted,
        admission: peer::Admission::Anyone,
        guard: Arc::new(Guard::open()),
        transport: "websocket",
        is_local: true,
        console: None,
    };
    websocket::serve_on(listener, app, access, stop).await;
}
