//! The storage of tokens: the keyring of the desktop, or `.credentials.json` in the home. With `auto`, the keyring is used
//! when it is part of the program and reachable, else the file.

mod file;
mod keyring;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_config::config_toml::McpCredentialsStore;
use loomd_protocol::Secret;
use parking_lot::Mutex;

pub(crate) use keyring::system as system_keyring;
pub use keyring::{Keyring, KeyringError};

use crate::tokens::Tokens;
use file::CredentialsFile;
use keyring::KeyringStore;

#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("failed to read credentials file at {path}: {error}", path = path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("failed to parse credentials file at {path}", path = .0.display())]
    Malformed(PathBuf),
    #[error("failed to write credentials file at {path}: {error}", path = path.display())]
    Write { path: PathBuf, error: io::Error },
    #[error("another program is writing {path}", path = .0.display())]
    Locked(PathBuf),
    #[error("{0}")]
    Keyring(#[from] KeyringError),
    #[error("cannot use the credentials store: {0}")]
    Task(String),
}

/// The tokens at rest. Everything that blocks runs on blocking threads.
pub(crate) struct Store {
    kind: McpCredentialsStore,
    file: Arc<CredentialsFile>,
    keyring: Option<KeyringStore>,
    /// Refreshed tokens that could not be stored, with the spent refresh token that is stored in their place.
    unsaved: Mutex<Vec<(String, Option<Secret>, Tokens)>>,
}

/// The largest number of tokens that are kept in memory because they cannot be stored.
const MAX_UNSAVED: usize = 64;

impl Store {
    pub fn new(home: &Path, kind: McpCredentialsStore, keyring: Option<Arc<dyn Keyring>>) -> Self {
        let file = Arc::new(CredentialsFile::new(home));
        Self { kind, file, keyring: keyring.map(KeyringStore::new), unsaved: Mutex::default() }
    }

    pub async fn load(&self, key: &str) -> Result<Option<Tokens>, StoreError> {
        let stored = self.load_stored(key).await?;
        let unsaved = self.unsaved.lock();
        let newer = unsaved.iter().find(|(name, spent, _)| {
            name == key && stored.as_ref().is_some_and(|stored| stored.refresh_token == *spent)
        });
        Ok(newer.map(|(_, _, tokens)| tokens.clone()).or(stored))
    }

    async fn load_stored(&self, key: &str) -> Result<Option<Tokens>, StoreError> {
        match (self.kind, &self.keyring) {
            (McpCredentialsStore::Keyring, None) => Err(KeyringError::NotBuiltIn.into()),
            (McpCredentialsStore::Keyring, Some(keyring)) => Ok(keyring.load(key).await?),
            (McpCredentialsStore::Auto, Some(keyring)) => match keyring.load(key).await {
                Ok(Some(tokens)) => Ok(Some(tokens)),
                Ok(None) => self.load_from_file(key).await,
                Err(error) => {
                    tracing::debug!(%error, "using the credentials file in place of the keyring");
                    self.load_from_file(key).await
                }
            },
            (McpCredentialsStore::Auto, None) | (McpCredentialsStore::File, _) => self.load_from_file(key).await,
        }
    }

    pub async fn save(&self, key: &str, tokens: Tokens) -> Result<(), StoreError> {
        match (self.kind, &self.keyring) {
            (McpCredentialsStore::Keyring, None) => return Err(KeyringError::NotBuiltIn.into()),
            (McpCredentialsStore::Keyring, Some(keyring)) => keyring.save(key, tokens).await?,
            (McpCredentialsStore::Auto, Some(keyring)) => match keyring.save(key, tokens.clone()).await {
                Ok(()) => {
                    // A copy in the file would outlive the tokens in the keyring.
                    if let Err(error) = self.delete_from_file(key).await {
                        tracing::warn!(%error, "cannot remove old tokens from the credentials file");
                    }
                }
                Err(error) => {
                    tracing::debug!(%error, "using the credentials file in place of the keyring");
                    self.save_to_file(key, tokens).await?;
                }
            },
            (McpCredentialsStore::Auto, None) | (McpCredentialsStore::File, _) => {
                self.save_to_file(key, tokens).await?
            }
        }
        self.forget_unsaved(key);
        Ok(())
    }

    /// Stores refreshed tokens. If that fails they are kept in memory, because the stored refresh token is spent.
    pub async fn save_refreshed(&self, key: &str, spent: Option<Secret>, tokens: Tokens) {
        let Err(error) = self.save(key, tokens.clone()).await else { return };
        tracing::warn!(%error, "refreshed tokens of an MCP server are not stored");
        self.forget_unsaved(key);
        let mut unsaved = self.unsaved.lock();
        if unsaved.len() < MAX_UNSAVED {
            unsaved.push((key.to_owned(), spent, tokens));
        }
    }

    /// Returns whether there was anything to delete.
    pub async fn delete(&self, key: &str) -> Result<bool, StoreError> {
        self.forget_unsaved(key);
        match (self.kind, &self.keyring) {
            (McpCredentialsStore::Keyring, None) => Err(KeyringError::NotBuiltIn.into()),
            (McpCredentialsStore::Keyring, Some(keyring)) => Ok(keyring.delete(key).await?),
            (McpCredentialsStore::Auto, Some(keyring)) => {
                let from_keyring = keyring.delete(key).await.unwrap_or_else(|error| {
                    tracing::warn!(%error, "cannot look for tokens in the keyring");
                    false
                });
                Ok(self.delete_from_file(key).await? || from_keyring)
            }
            (McpCredentialsStore::Auto, None) | (McpCredentialsStore::File, _) => self.delete_from_file(key).await,
        }
    }

    /// Locks out refreshes of the same server by other programs of this kind until the result is dropped. Returns `None` if
    /// the lock cannot be taken; the caller then goes on without it.
    pub async fn lock_refresh(&self, key: &str) -> Option<std::fs::File> {
        let name = key.rsplit('|').next().unwrap_or_default().to_owned();
        self.blocking(move |file| Ok(file.lock_refresh(&name))).await.ok().flatten()
    }

    fn forget_unsaved(&self, key: &str) {
        self.unsaved.lock().retain(|(name, ..)| name != key);
    }

    async fn load_from_file(&self, key: &str) -> Result<Option<Tokens>, StoreError> {
        let key = key.to_owned();
        self.blocking(move |file| file.load(&key)).await
    }

    async fn save_to_file(&self, key: &str, tokens: Tokens) -> Result<(), StoreError> {
        let key = key.to_owned();
        self.blocking(move |file| file.save(&key, &tokens)).await
    }

    async fn delete_from_file(&self, key: &str) -> Result<bool, StoreError> {
        let key = key.to_owned();
        self.blocking(move |file| file.delete(&key)).await
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&CredentialsFile) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let file = Arc::clone(&self.file);
        let done = tokio::task::spawn_blocking(move || work(&file)).await;
        done.unwrap_or_else(|error| Err(StoreError::Task(error.to_string())))
    }
}

#[cfg(test)]
mod tests;
