//! `.credentials.json`: an object with an entry per server. Other programs write it too, so entries that are not
//! understood are kept. It is replaced atomically, readable by its owner only, and never followed if it is a symlink.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use loomd_protocol::JsonObject;

use super::StoreError;
use crate::tokens::Tokens;

/// The largest file that is read; an entry has about a kilobyte.
const MAX_BYTES: u64 = 4 << 20;

/// How long to wait for another writer. Writing takes milliseconds.
const WRITE_LOCK_TIMEOUT: Duration = Duration::from_secs(5);
/// How long to wait for another program's refresh; longer than one may take.
const REFRESH_LOCK_TIMEOUT: Duration = Duration::from_secs(60);
const LOCK_POLL_INTERVAL: Duration = Duration::from_millis(10);

pub(super) struct CredentialsFile {
    path: PathBuf,
    /// The folder of lock files.
    locks: PathBuf,
}

impl CredentialsFile {
    pub fn new(home: &Path) -> Self {
        Self { path: home.join(".credentials.json"), locks: home.join("loomd") }
    }

    pub fn load(&self, key: &str) -> Result<Option<Tokens>, StoreError> {
        let Some(entry) = self.read()?.remove(key) else { return Ok(None) };
        serde_json::from_value(entry).map(Some).map_err(|_| self.malformed())
    }

    pub fn save(&self, key: &str, tokens: &Tokens) -> Result<(), StoreError> {
        let entry = serde_json::to_value(tokens).map_err(|error| self.not_written(error.into()))?;
        let _lock = self.lock_writers()?;
        let mut entries = self.read()?;
        entries.insert(key.to_owned(), entry);
        self.write(&entries)
    }

    /// Returns whether there was an entry. The file is removed with its last entry.
    pub fn delete(&self, key: &str) -> Result<bool, StoreError> {
        if !self.read()?.contains_key(key) {
            return Ok(false);
        }
        let _lock = self.lock_writers()?;
        let mut entries = self.read()?;
        if entries.shift_remove(key).is_none() {
            return Ok(false);
        }
        if entries.is_empty() {
            fs::remove_file(&self.path).map_err(|error| self.not_written(error))?;
        } else {
            self.write(&entries)?;
        }
        Ok(true)
    }

    pub fn lock_refresh(&self, name: &str) -> Option<File> {
        lock(&self.locks, &format!("mcp-refresh-{name}.lock"), REFRESH_LOCK_TIMEOUT).ok().flatten()
    }

    fn lock_writers(&self) -> Result<File, StoreError> {
        let locked = lock(&self.locks, "mcp-credentials.lock", WRITE_LOCK_TIMEOUT);
        locked.map_err(|error| self.not_written(error))?.ok_or_else(|| StoreError::Locked(self.path.clone()))
    }

    fn read(&self) -> Result<JsonObject, StoreError> {
        match loomd_regular::read_without_link(&self.path, MAX_BYTES) {
            Ok(bytes) if bytes.trim_ascii().is_empty() => Ok(JsonObject::new()),
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|_| self.malformed()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(JsonObject::new()),
            Err(error) => Err(StoreError::Read { path: self.path.clone(), error }),
        }
    }

    fn write(&self, entries: &JsonObject) -> Result<(), StoreError> {
        let text = serde_json::to_vec(entries).map_err(|error| self.not_written(error.into()))?;
        loomd_private::replace(&self.path, text).map_err(|error| self.not_written(error))
    }

    fn malformed(&self) -> StoreError {
        StoreError::Malformed(self.path.clone())
    }

    fn not_written(&self, error: io::Error) -> StoreError {
        StoreError::Write { path: self.path.clone(), error }
    }
}

/// Takes an exclusive lock that ends with the returned file; `None` if another program holds it for too long. Blocks.
fn lock(folder: &Path, name: &str, limit: Duration) -> io::Result<Option<File>> {
    loomd_private::create_dir_all(folder)?;
    let mut options = loomd_private::options();
    let file = options.read(true).write(true).create(true).truncate(false).open(folder.join(name))?;
    let start = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if start.elapsed() < limit => sleep(LOCK_POLL_INTERVAL),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}
