//! The storage of credentials: `auth.json` in the home, or memory. A keyring is not supported: `keyring` fails to
//! store, `auto` uses the file.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loomd_config::config_toml::CliCredentialsStore;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::{Instant, sleep};

use crate::auth_json::AuthJson;

/// Longer than a refresh may take.
const LOCK_TIMEOUT: Duration = Duration::from_secs(40);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// The largest file of credentials that is read.
const MAX_BYTES: u64 = 1 << 20;

pub(crate) struct Storage {
    path: PathBuf,
    kind: CliCredentialsStore,
    memory: Mutex<Option<AuthJson>>,
}

impl Storage {
    pub fn new(home: &Path, kind: CliCredentialsStore) -> Self {
        Self { path: home.join("auth.json"), kind, memory: Mutex::default() }
    }

    /// Loads the credentials. Unreadable or malformed ones count as none.
    pub fn load(&self) -> AuthJson {
        let stored = match self.kind {
            CliCredentialsStore::File | CliCredentialsStore::Auto => {
                loomd_regular::read(&self.path, MAX_BYTES).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok())
            }
            CliCredentialsStore::Ephemeral => self.memory().clone(),
            CliCredentialsStore::Keyring => None,
        };
        stored.unwrap_or_default()
    }

    pub fn save(&self, credentials: &AuthJson) -> io::Result<()> {
        match self.kind {
            CliCredentialsStore::File | CliCredentialsStore::Auto => {
                replace(&self.path, &serde_json::to_vec_pretty(credentials)?)
            }
            CliCredentialsStore::Ephemeral => {
                *self.memory() = Some(credentials.clone());
                Ok(())
            }
            CliCredentialsStore::Keyring => {
                Err(io::Error::other("failed to write OAuth tokens to keyring: there is no keyring"))
            }
        }
    }

    pub fn delete(&self) -> io::Result<()> {
        *self.memory() = None;
        if self.kind == CliCredentialsStore::Ephemeral {
            return Ok(());
        }
        match fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Locks out refreshes of other programs of this kind until the result is dropped. Returns `None` if the lock
    /// cannot be taken in time or the lock file cannot be created; the caller then goes on without it.
    pub async fn lock(&self) -> Option<File> {
        let folder = self.path.parent().filter(|_| self.kind != CliCredentialsStore::Ephemeral)?.join("loomd");
        loomd_private::create_dir_all(&folder).ok()?;
        let mut options = loomd_private::options();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(folder.join("auth.lock")).ok()?;
        let deadline = Instant::now() + LOCK_TIMEOUT;
        loop {
            match file.try_lock() {
                Ok(()) => return Some(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => sleep(LOCK_POLL_INTERVAL).await,
                Err(_) => return None,
            }
        }
    }

    fn memory(&self) -> MutexGuard<'_, Option<AuthJson>> {
        self.memory.lock()
    }
}

/// Replaces the file atomically, through symlinks, readable by the owner only.
fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    loomd_private::replace(fs::canonicalize(path).unwrap_or_else(|_| path.into()), text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use loomd_protocol::Secret;

    use super::*;

    fn key() -> AuthJson {
        AuthJson::of_key(Secret::from("sk".to_owned()))
    }

    #[test]
    fn the_file_is_private_and_formatted_as_documented() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("auth.json");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let storage = Storage::new(home.path(), CliCredentialsStore::File);
        storage.save(&key()).unwrap();
        let text = "{\n  \"auth_mode\": \"apikey\",\n  \"OPENAI_API_KEY\": \"sk\"\n}";
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(storage.load(), key());
        storage.delete().unwrap();
        storage.delete().unwrap();
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 0, "nothing is left behind");
    }

    #[test]
    fn a_symlinked_file_is_written_through() {
        let home = tempfile::tempdir().unwrap();
        let (link, real) = (home.path().join("auth.json"), home.path().join("real"));
        fs::write(&real, "{}").unwrap();
        symlink("real", &link).unwrap();
        Storage::new(home.path(), CliCredentialsStore::File).save(&key()).unwrap();
        assert!(link.is_symlink());
        assert!(fs::read_to_string(&real).unwrap().contains("sk"));
    }

    #[test]
    fn ephemeral_storage_does_not_touch_the_file() {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join("auth.json"), r#"{"OPENAI_API_KEY":"on-disk"}"#).unwrap();
        let storage = Storage::new(home.path(), CliCredentialsStore::Ephemeral);
        assert_eq!(storage.load(), AuthJson::default());
        storage.save(&key()).unwrap();
        assert_eq!(storage.load(), key());
        storage.delete().unwrap();
        assert_eq!(storage.load(), AuthJson::default());
        assert!(home.path().join("auth.json").exists());
    }

    #[test]
    fn keyring_storage_fails_and_auto_uses_the_file() {
        let home = tempfile::tempdir().unwrap();
        let keyring = Storage::new(home.path(), CliCredentialsStore::Keyring);
        assert!(keyring.save(&key()).unwrap_err().to_string().contains("keyring"));
        let auto = Storage::new(home.path(), CliCredentialsStore::Auto);
        auto.save(&key()).unwrap();
        assert_eq!((keyring.load(), auto.load()), (AuthJson::default(), key()));
    }
}
