//! What can go wrong with a file.

use std::io;

use thiserror::Error;

/// Displays in the words that clients know.
#[derive(Debug, Error)]
pub enum FsError {
    /// The caller asked for something that makes no sense.
    #[error("{0}")]
    Refused(String),
    /// The operating system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FsError {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// The kind of failure, for programs.
    pub fn kind(&self) -> io::ErrorKind {
        match self {
            Self::Refused(_) => io::ErrorKind::InvalidInput,
            Self::Io(error) => error.kind(),
        }
    }

    pub fn os_error(&self) -> Option<i32> {
        match self {
            Self::Refused(_) => None,
            Self::Io(error) => error.raw_os_error(),
        }
    }
}

pub(crate) type Result<T, E = FsError> = std::result::Result<T, E>;
