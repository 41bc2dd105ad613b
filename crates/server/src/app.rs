//! What all connections share.

use std::path::PathBuf;

use loomd_config::{LoadRequest, Loaded, Overrides};
use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification, ServerNotification};
use tracing::error;

use crate::connections::Connections;
use crate::identity::Identity;
use crate::outbox::Notification;

/// Where configuration comes from; the same for the whole life of the process.
pub struct ConfigSources {
    pub home: AbsolutePathBuf,
    pub system_file: Option<AbsolutePathBuf>,
    pub user_home: Option<PathBuf>,
    pub flags: Overrides,
}

impl ConfigSources {
    /// Configuration is loaded afresh for each request that needs it.
    pub fn request(&self) -> LoadRequest<'_> {
        LoadRequest {
            system_file: self.system_file.as_ref(),
            user_home: self.user_home.as_deref(),
            ..LoadRequest::new(&self.home, &self.flags)
        }
    }
}

/// The server's state, shared by all connections.
pub struct App {
    pub(crate) sources: ConfigSources,
    /// What was wrong at start; told to each client after its handshake.
    pub(crate) warnings: Vec<ConfigWarningNotification>,
    pub(crate) identity: Identity,
    pub(crate) connections: Connections,
}

impl App {
    /// `config` is the configuration at start, or the defaults where it could not be used.
    pub fn new(sources: ConfigSources, config: &Loaded, warnings: Vec<ConfigWarningNotification>) -> Self {
        Self { sources, warnings, identity: Identity::new(config), connections: Connections::default() }
    }

    /// Tells every client that has shaken hands, except those that opted out.
    pub async fn broadcast(&self, notification: ServerNotification) {
        match Notification::new(notification) {
            Ok(notification) => self.connections.broadcast(&notification).await,
            Err(error) => error!(%error, "cannot serialize a notification"),
        }
    }
}
