//! What all threads share beside their store.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use loomd_exec::{Environment, Shell};
use loomd_model::Http;

use crate::images::Images;

pub struct Services {
    /// The home directory of the server.
    pub home: PathBuf,
    pub http: Arc<Http>,
    /// What commands inherit.
    pub environment: Environment,
    pub(crate) images: Arc<Images>,
    shell: OnceLock<Shell>,
}

impl Services {
    pub fn new(home: PathBuf, http: Arc<Http>, environment: Environment) -> Self {
        Self { home, http, environment, images: Arc::default(), shell: OnceLock::new() }
    }

    /// The user's shell; looked up when it is first needed.
    pub(crate) fn shell(&self) -> &Shell {
        self.shell.get_or_init(|| Shell::of_user(self.search_path()))
    }

    /// The name of the user's shell.
    pub(crate) fn shell_name(&self) -> &str {
        self.shell().path.file_name().and_then(|name| name.to_str()).unwrap_or("sh")
    }

    /// Where programs are looked for.
    pub(crate) fn search_path(&self) -> &str {
        self.environment.get("PATH").unwrap_or_default()
    }
}
