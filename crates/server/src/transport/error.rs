//! The errors of serving clients.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

use thiserror::Error;

use crate::auth::AuthError;

#[derive(Debug, Error)]
pub enum ServeError {
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(
        "refusing to listen on ws://{0} without authentication, because other machines can reach it; use `--ws-auth \
         capability-token --ws-token-file PATH` or `--ws-auth signed-bearer-token --ws-shared-secret-file PATH`, or \
         `--allow-unauthenticated` to accept any client"
    )]
    Unauthenticated(SocketAddr),
    #[error("`--console` needs a websocket: add `--listen ws://IP:PORT`")]
    ConsoleNeedsWebsocket,
    #[error(
        "refusing to serve the console on ws://{0}, because other machines can reach it; name the origin under which \
         browsers do, with TLS in front: `--console-origin https://HOST`"
    )]
    PublicConsole(SocketAddr),
    #[error(
        "other nodes cannot connect to ws://{0}: name an address of this machine that they reach, with `--node-url \
         ws://HOST:PORT`"
    )]
    NoNodeUrl(SocketAddr),
    #[error("cannot connect to {0}: {1}")]
    Upstream(String, String),
    #[error(transparent)]
    Console(#[from] loomd_console::AccessError),
    #[error("{} is in use by another server", .0.display())]
    SocketInUse(PathBuf),
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
}
