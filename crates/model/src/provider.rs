//! A provider, resolved: everything that the configuration and the environment say about reaching it.

use std::sync::Arc;
use std::time::Duration;

use loomd_config::config_toml::ModelProvider;

#[derive(Debug)]
pub struct Provider {
    id: String,
    name: String,
    stream_max_retries: u64,
    stream_idle_timeout: Duration,
}

impl Provider {
    pub fn new(id: &str, config: &ModelProvider, _env: &dyn Fn(&str) -> Option<String>) -> Arc<Self> {
        Arc::new(Self {
            id: id.into(),
            name: config.name.clone(),
            stream_max_retries: config.stream_max_retries(),
            stream_idle_timeout: config.stream_idle_timeout(),
        })
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How often the caller may try again after a stream broke.
    pub fn stream_max_retries(&self) -> u64 {
        self.stream_max_retries
    }

    pub fn stream_idle_timeout(&self) -> Duration {
        self.stream_idle_timeout
    }

    /// Whether [`crate::Session::compact`] can be used.
    pub fn compacts(&self) -> bool {
        self.name == "OpenAI"
    }
}
