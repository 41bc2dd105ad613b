//! The error of file operations.

use std::io;

use thiserror::Error;

/// Displays as the text that clients get.
#[derive(Debug, Error)]
pub enum FsError {
    /// An invalid request.
    #[error("{0}")]
    Refused(String),
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl FsError {
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::Refused(message.into())
    }

    /// The error kind, for programs.
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
