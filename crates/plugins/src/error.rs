//! Why something about plugins could not be done.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    #[error("marketplace file `{}` does not exist", .0.display())]
    NoMarketplace(PathBuf),
    #[error("invalid marketplace file `{}`: {detail}", path.display())]
    InvalidMarketplace { path: PathBuf, detail: String },
    #[error("plugin `{plugin}` was not found in marketplace `{marketplace}`")]
    NotFound { plugin: String, marketplace: String },
    #[error("plugin `{plugin}` is not available for install in marketplace `{marketplace}`")]
    NotAvailable { plugin: String, marketplace: String },
    /// The request or the plugin is at fault, in words for the user.
    #[error("{0}")]
    Invalid(String),
    #[error("{action}: {error}")]
    Io { action: String, error: io::Error },
}

impl PluginError {
    pub(crate) fn io(action: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let action = action.into();
        move |error| Self::Io { action, error }
    }

    /// Whether the request is at fault, not this machine.
    pub fn is_refusal(&self) -> bool {
        !matches!(self, Self::Io { .. })
    }
}
