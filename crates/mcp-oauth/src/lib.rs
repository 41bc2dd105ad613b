//! OAuth for MCP servers that are reached over HTTP: whether a server wants it ([`McpOauth::status`]), logins in a browser
//! ([`McpOauth::login`]), the stored tokens and their refresh ([`McpOauth::bearer`]). There is one [`McpOauth`] per process.
//! Implements
//! [`loomd_mcp::Credentials`]. Knows no connections of clients.

mod authorization_server;
mod callback;
mod credentials;
mod discovery;
mod error;
mod login;
mod refresh;
mod server;
mod store;
mod tokens;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use loomd_config::ConfigToml;
use loomd_config::config_toml::McpCredentialsStore;
use loomd_model::Http;
use loomd_protocol::McpAuthStatus;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

pub use callback::CallbackSettings;
pub use error::OauthError;
pub use login::Login;
pub use server::OauthServer;
pub use store::{Keyring, KeyringError};

use authorization_server::AuthorizationServer;
use refresh::Refreshes;
use store::Store;

/// How many logins may wait for a browser at the same time.
const MAX_LOGINS: usize = 32;

/// The credentials of MCP servers. Clones share them.
#[derive(Clone)]
pub struct McpOauth(Arc<Inner>);

struct Inner {
    store: Store,
    issuers: AuthorizationServer,
    refreshes: Mutex<HashMap<String, Arc<Refreshes>>>,
    logins: Arc<Semaphore>,
    /// Returns environment variables.
    env: Environment,
}

type Environment = fn(&str) -> Option<String>;

impl McpOauth {
    /// Tokens are stored as `config` says; nothing is read before it is needed.
    pub fn new(home: &Path, config: &ConfigToml, http: Arc<Http>, env: Environment) -> Self {
        let kind = config.mcp_oauth_credentials_store.unwrap_or_default();
        Self::with_keyring(home, kind, http, env, store::system_keyring())
    }

    /// As [`new`](Self::new), with another keyring than the system's.
    pub fn with_keyring(
        home: &Path,
        kind: McpCredentialsStore,
        http: Arc<Http>,
        env: Environment,
        keyring: Option<Arc<dyn Keyring>>,
    ) -> Self {
        Self(Arc::new(Inner {
            store: Store::new(home, kind, keyring),
            issuers: AuthorizationServer::new(http),
            refreshes: Mutex::default(),
            logins: Arc::new(Semaphore::new(MAX_LOGINS)),
            env,
        }))
    }

    /// Returns how a server is authenticated. Looks for OAuth metadata only if nothing is configured or stored.
    pub async fn status(&self, server: &OauthServer) -> McpAuthStatus {
        if server.has_authorization {
            return McpAuthStatus::BearerToken;
        }
        match self.0.store.load(&server.key()).await {
            Ok(Some(tokens)) if self.is_refused(server, &tokens) => return McpAuthStatus::NotLoggedIn,
            Ok(Some(_)) => return McpAuthStatus::OAuth,
            Ok(None) => {}
            Err(error) => tracing::warn!(server = server.name, %error, "cannot read the tokens of an MCP server"),
        }
        match self.0.issuers.discover(server).await {
            Ok(Some(_)) => McpAuthStatus::NotLoggedIn,
            Ok(None) | Err(_) => McpAuthStatus::Unsupported,
        }
    }

    /// Deletes the tokens of a server. Returns whether there were any.
    pub async fn logout(&self, server: &OauthServer) -> Result<bool, OauthError> {
        Ok(self.0.store.delete(&server.key()).await?)
    }
}

#[cfg(test)]
mod tests;
