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
    #[error("{} is in use by another server", .0.display())]
    SocketInUse(PathBuf),
    #[error("{} exists and is not a socket", .0.display())]
    NotASocket(PathBuf),
}
