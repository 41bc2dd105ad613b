//! The services that threads are opened with.

use std::sync::Arc;

use loomd_config::{ConfigError, ConfigSources};

use super::default_provider::DefaultProvider;
use super::enforcement::Enforcement;
use super::models::Models;
use crate::extensions::Extensions;
use crate::refusal::Refusal;
use crate::services::Services;

/// Configuration sources, models and services, shared by all threads.
pub(crate) struct Opener {
    pub sources: Arc<ConfigSources>,
    pub services: Arc<Services>,
    pub models: Models,
    pub enforcement: Arc<Enforcement>,
    pub extensions: Arc<Extensions>,
    default_provider: DefaultProvider,
}

impl Opener {
    pub fn new(
        sources: Arc<ConfigSources>,
        services: Arc<Services>,
        models: Models,
        enforcement: Arc<Enforcement>,
        extensions: Arc<Extensions>,
    ) -> Self {
        Self { sources, services, models, enforcement, extensions, default_provider: DefaultProvider::default() }
    }

    /// Refuses to open a thread while the organisation's requirements are not known. Other errors of the
    /// configuration are left to [`Self::resolver`], which knows the working directory.
    pub fn check_managed(&self) -> Result<(), Refusal> {
        if matches!(*self.sources.live.managed.get(), Ok(None)) {
            return Ok(());
        }
        match loomd_config::load(&self.sources.request()) {
            Err(error @ ConfigError::Cloud(_)) => Err(config_refusal(error)),
            _ => Ok(()),
        }
    }

    /// The provider of threads that recorded none.
    pub fn default_provider(&self) -> String {
        self.default_provider.get(&self.sources)
    }
}

/// Returns the refusal for a configuration that cannot be loaded; it carries the reason why the organisation's
/// requirements are not known.
pub(super) fn config_refusal(error: ConfigError) -> Refusal {
    let message = format!("failed to load configuration: {error}");
    match error {
        ConfigError::Cloud(cause) => Refusal::RequirementsUnavailable { message, cause },
        _ => Refusal::Invalid(message),
    }
}
