//! Errors of configurations. The cases are distinct because methods word the same error differently.

use std::io;

use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification};
use thiserror::Error;

use crate::{CloudError, OverrideError, SourceLocation};

/// Displays as `<path>:<line>:<column>: <message>` when the error has a location.
#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("failed to read {}: {error}", path.display())]
    Unreadable { path: AbsolutePathBuf, error: io::Error },
    /// A file is not TOML.
    #[error("{location}: {message}")]
    Syntax { message: String, location: SourceLocation },
    /// A value has a wrong type or is out of range.
    #[error("{}", match location { Some(location) => format!("{location}: {message}"), None => text.clone() })]
    Type {
        message: String,
        /// The message and the key that it is about, on two lines.
        text: String,
        /// `None` when the value came from a flag or a thread's overrides.
        location: Option<SourceLocation>,
    },
    #[error(transparent)]
    Override(#[from] OverrideError),
    /// The organisation's requirements could not be fetched.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// Contradictory requirements. Names the key.
    #[error("{0}")]
    Requirements(String),
    #[error("config profile `{0}` not found")]
    UnknownProfile(String),
    #[error("Model provider `{0}` not found")]
    UnknownProvider(String),
    /// Each value is valid, but not their combination, or not on this machine.
    #[error("{0}")]
    Invalid(String),
}

impl ConfigError {
    pub fn location(&self) -> Option<&SourceLocation> {
        match self {
            Self::Syntax { location, .. } => Some(location),
            Self::Type { location, .. } => location.as_ref(),
            _ => None,
        }
    }

    pub fn path(&self) -> Option<&AbsolutePathBuf> {
        match self {
            Self::Unreadable { path, .. } => Some(path),
            other => other.location().map(|location| &location.path),
        }
    }

    /// The notification when the server starts in spite of this error.
    pub fn warning(&self) -> ConfigWarningNotification {
        ConfigWarningNotification {
            summary: "Invalid configuration; using defaults.".into(),
            details: Some(self.to_string()),
            path: self.path().map(|path| path.display().to_string()),
            range: self.location().map(|location| location.range.clone()),
        }
    }

    /// The message of `config/read` for this error.
    pub fn read_message(&self) -> String {
        match self {
            Self::Unreadable { .. }
            | Self::Syntax { .. }
            | Self::Override(_)
            | Self::Cloud(_)
            | Self::Requirements(_) => {
                format!("failed to read configuration layers: {self}")
            }
            Self::Type { text, .. } => format!("invalid configuration: {text}"),
            Self::UnknownProfile(_) => format!("failed to resolve feature override precedence: {self}"),
            Self::UnknownProvider(_) | Self::Invalid(_) => format!("invalid configuration: {self}"),
        }
    }
}
