//! Why an operation of the index failed. SQLite's own errors stay inside: they decide whether the index is rebuilt.

use crate::error::Error;

pub(crate) type Result<T, E = IndexError> = std::result::Result<T, E>;

#[derive(Debug)]
pub(crate) enum IndexError {
    /// The index itself failed.
    Sqlite(rusqlite::Error),
    /// What the index is made from failed.
    Store(Error),
}

impl From<rusqlite::Error> for IndexError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<Error> for IndexError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<serde_json::Error> for IndexError {
    fn from(error: serde_json::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<IndexError> for Error {
    fn from(error: IndexError) -> Self {
        match error {
            IndexError::Sqlite(error) => Self::Index { reason: error.to_string() },
            IndexError::Store(error) => error,
        }
    }
}
