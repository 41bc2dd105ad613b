//! The keyring of the desktop. It is a feature of this crate (`keyring`); without it there is none.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::tokens::{KeyringEntry, Tokens};

/// The name under which programs that share the keyring store tokens of MCP servers.
#[cfg(feature = "keyring")]
const SERVICE: &str = "Codex MCP Credentials";

/// How long the keyring may take; it may wait for the user to unlock it.
const TIMEOUT: Duration = Duration::from_secs(20);
/// How many calls may wait for the keyring; each holds a thread.
const MAX_CALLS: usize = 4;

#[derive(Clone, Debug, thiserror::Error)]
pub enum KeyringError {
    #[error("the keyring is not part of this build; set `mcp_oauth_credentials_store` to \"file\"")]
    NotBuiltIn,
    #[error("the keyring does not answer")]
    NoAnswer,
    #[error("the keyring's entry is not understood")]
    Malformed,
    #[error("the keyring failed: {0}")]
    Failed(String),
}

/// A keyring, by the name of an entry. Calls may block for long.
pub trait Keyring: Send + Sync {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError>;
    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError>;
    /// Returns whether there was an entry.
    fn delete(&self, name: &str) -> Result<bool, KeyringError>;
}

/// Returns the keyring of the system if it is part of this build.
pub(crate) fn system() -> Option<Arc<dyn Keyring>> {
    #[cfg(feature = "keyring")]
    return Some(Arc::new(SystemKeyring));
    #[cfg(not(feature = "keyring"))]
    None
}

#[cfg(feature = "keyring")]
struct SystemKeyring;

#[cfg(feature = "keyring")]
impl SystemKeyring {
    fn entry(name: &str) -> Result<keyring::Entry, KeyringError> {
        keyring::Entry::new(SERVICE, name).map_err(failed)
    }
}

#[cfg(feature = "keyring")]
fn failed(error: keyring::Error) -> KeyringError {
    KeyringError::Failed(error.to_string())
}

#[cfg(feature = "keyring")]
impl Keyring for SystemKeyring {
    fn get(&self, name: &str) -> Result<Option<String>, KeyringError> {
        match Self::entry(name)?.get_password() {
            Ok(secret) => Ok(Some(secret)),
            Err(keyring::Error::NoEntry) => Ok(None),
            Err(error) => Err(failed(error)),
        }
    }

    fn set(&self, name: &str, secret: &str) -> Result<(), KeyringError> {
        Self::entry(name)?.set_password(secret).map_err(failed)
    }

    fn delete(&self, name: &str) -> Result<bool, KeyringError> {
        match Self::entry(name)?.delete_credential() {
            Ok(()) => Ok(true),
            Err(keyring::Error::NoEntry) => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}

/// Tokens in a keyring, with bounded time and threads.
pub(super) struct KeyringStore {
    keyring: Arc<dyn Keyring>,
    calls: Arc<Semaphore>,
}

impl KeyringStore {
    pub fn new(keyring: Arc<dyn Keyring>) -> Self {
        Self { keyring, calls: Arc::new(Semaphore::new(MAX_CALLS)) }
    }

    pub async fn load(&self, key: &str) -> Result<Option<Tokens>, KeyringError> {
        let name = key.to_owned();
        let Some(text) = self.call(move |keyring| keyring.get(&name)).await? else { return Ok(None) };
        let entry: KeyringEntry = serde_json::from_str(&text).map_err(|_| KeyringError::Malformed)?;
        Ok(Some(entry.into()))
    }

    pub async fn save(&self, key: &str, tokens: Tokens) -> Result<(), KeyringError> {
        let name = key.to_owned();
        let text = serde_json::to_string(&KeyringEntry::from(tokens)).map_err(|_| KeyringError::Malformed)?;
        self.call(move |keyring| keyring.set(&name, &text)).await
    }

    pub async fn delete(&self, key: &str) -> Result<bool, KeyringError> {
        let name = key.to_owned();
        self.call(move |keyring| keyring.delete(&name)).await
    }

    async fn call<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Keyring) -> Result<T, KeyringError> + Send + 'static,
    ) -> Result<T, KeyringError> {
        let call = async {
            let permit = Arc::clone(&self.calls).acquire_owned().await.map_err(|_| KeyringError::NoAnswer)?;
            let keyring = Arc::clone(&self.keyring);
            let done = tokio::task::spawn_blocking(move || {
                // Held until the keyring answers, also when the caller has been cancelled.
                let _permit = permit;
                work(&*keyring)
            });
            done.await.unwrap_or_else(|error| Err(KeyringError::Failed(error.to_string())))
        };
        timeout(TIMEOUT, call).await.unwrap_or(Err(KeyringError::NoAnswer))
    }
}
