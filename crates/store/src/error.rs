//! What can go wrong with threads at rest, said so that a caller can tell a client.

use std::io;
use std::path::{Path, PathBuf};

use crate::ThreadId;

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a store operation failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is stored for the thread.
    #[error("no rollout found for thread id {id}")]
    NotFound { id: ThreadId },
    /// The rollout exists and holds nothing.
    #[error("rollout at {} is empty", path.display())]
    Empty { path: PathBuf },
    /// The rollout does not say which thread it is.
    #[error("rollout at {} does not start with session metadata", path.display())]
    NoSessionMeta { path: PathBuf },
    /// Only threads under `sessions` can be archived.
    #[error("rollout path `{}` must be in sessions directory", path.display())]
    NotInSessions { path: PathBuf },
    /// The file is named after another thread.
    #[error("rollout path `{}` does not match thread id {id}", path.display())]
    WrongName { path: PathBuf, id: ThreadId },
    /// Something is already where the rollout would go.
    #[error("{} already exists", path.display())]
    Exists { path: PathBuf },
    /// Another holder is writing to the thread. The process is unknown when it is just starting to.
    #[error("thread {id} is in use by {}", holder(*pid))]
    Held { id: ThreadId, pid: Option<u32> },
    /// The lease was taken over; nothing was written.
    #[error("the lease on thread {id} is no longer valid")]
    StaleLease { id: ThreadId },
    /// The operating system refused. Nothing half-written was left behind.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: io::Error },
    /// A record cannot be written as JSON.
    #[error("cannot encode a record: {0}")]
    Encode(#[from] serde_json::Error),
    /// The index failed, and failed again after it was rebuilt.
    #[error("thread index unavailable: {0}")]
    Index(#[from] rusqlite::Error),
    /// The work was given up because the server is stopping.
    #[error("the store is shutting down")]
    Stopped,
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

impl Error {
    pub(crate) fn io(path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::Io { path, source }
    }
}
