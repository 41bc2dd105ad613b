//! Why something was not done.

use loomd_protocol::ThreadReadState;
use loomd_store::ThreadId;

pub type Result<T> = std::result::Result<T, Error>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A value that is refused, whatever is stored.
    #[error("{0}")]
    Invalid(String),
    #[error("thread section not found: {0}")]
    SectionNotFound(String),
    #[error("before thread {before} is not in section {section}")]
    NotInSection { before: ThreadId, section: String },
    #[error("project not found: {0}")]
    ProjectNotFound(String),
    #[error("before project not found: {0}")]
    BeforeProjectNotFound(String),
    #[error("idempotency key refers to deleted project: {0}")]
    KeyOfDeletedProject(String),
    /// The read state is another one than the caller knows: the present one.
    #[error("read state changed")]
    ReadStateConflict(ThreadReadState),
    #[error("the organisation of threads cannot be stored: {0}")]
    Database(#[from] rusqlite::Error),
    #[error("the organisation of threads cannot be stored: {0}")]
    Folder(#[from] std::io::Error),
    #[error("the organisation of threads was written by a newer release (version {0})")]
    Newer(i64),
    /// The process is ending.
    #[error("the server is shutting down")]
    Stopped,
}

impl Error {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::Invalid(message.into())
    }

    /// Whether the caller is at fault, and not the storage.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Database(_) | Self::Folder(_) | Self::Newer(_) | Self::Stopped)
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Database(rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
    }
}
