//! What all threads share beside their store.

use std::path::PathBuf;
use std::sync::Arc;

use loomd_model::Http;

pub struct Services {
    /// The home directory of the server.
    pub home: PathBuf,
    pub http: Arc<Http>,
}

impl Services {
    pub(crate) fn shell_name(&self) -> &str {
        "bash"
    }
}
