//! Why a store operation failed, in terms of threads and their records. The texts are written for clients.

use std::io;
use std::path::Path;

use crate::ThreadId;

/// The result of a store operation.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a store operation failed. A `place` is where the store keeps the thread: a path, for the file store.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Nothing is stored for the thread.
    #[error("no rollout found for thread id {id}")]
    NotFound { id: ThreadId },
    /// The thread has no records.
    #[error("rollout at {place} is empty")]
    Empty { place: String },
    /// The records begin without session metadata, so that their thread is unknown.
    #[error("rollout at {place} does not start with session metadata")]
    NoSessionMeta { place: String },
    /// The thread cannot be archived from, or fetched back to, where it is.
    #[error("rollout path `{place}` {rule}")]
    Misplaced { place: String, rule: String },
    /// Another thread is already where this one would go.
    #[error("{place} already exists")]
    Exists { place: String },
    /// Another writer has the thread's lease. The process is unknown while it is taking the lease.
    #[error("thread {id} is in use by {}", holder(*pid))]
    Held { id: ThreadId, pid: Option<u32> },
    /// The lease was taken over; nothing was written.
    #[error("the lease on thread {id} is no longer valid")]
    StaleLease { id: ThreadId },
    /// What the store keeps threads in has failed. Nothing half-written was left behind.
    #[error("{place}: {reason}")]
    Storage { place: String, failure: Failure, reason: String },
    /// A record cannot be written as JSON.
    #[error("cannot encode a record: {reason}")]
    Encode { reason: String },
    /// The index failed, and failed again after it was rebuilt.
    #[error("thread index unavailable: {reason}")]
    Index { reason: String },
    /// The operation was given up because the server is stopping.
    #[error("the store is shutting down")]
    Stopped,
}

/// The kinds of [`Error::Storage`] that a caller may treat differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// There is nothing at the place.
    Missing,
    /// The process may not read or write there.
    Denied,
    /// There is no room left.
    Full,
    /// The connection to the database was lost or cannot be made. The operation may have been done or not.
    Unreachable,
    /// A read or write failed for another reason; it may succeed later.
    Other,
}

fn holder(pid: Option<u32>) -> String {
    pid.map_or_else(|| "another process".into(), |pid| format!("process {pid}"))
}

/// A path as errors name it.
pub(crate) fn place(path: &Path) -> String {
    path.display().to_string()
}

impl Error {
    /// An error of the operating system at a path.
    pub(crate) fn io<P: AsRef<Path>>(path: P) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Storage {
            place: place(path.as_ref()),
            failure: Failure::of(&error),
            reason: error.to_string(),
        }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Encode { reason: error.to_string() }
    }
}

impl Failure {
    fn of(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::Missing,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Self::Denied,
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ => Self::Other,
        }
    }
}
