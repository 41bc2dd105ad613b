//! Accounts: which account is signed in, how that changes, and the credentials of model calls. There is one
//! [`Accounts`] per process, shared by all connections and threads, so a login takes effect on the next call of every
//! thread. Knows no connections: callers pass a reply, which is called before any notification that results from it,
//! and a [`Host`] sends notifications to clients.

mod auth_json;
mod backend;
mod change;
mod claims;
mod credentials;
mod error;
mod external;
mod host;
mod identity;
mod issuer;
mod login;
mod member;
mod options;
mod rate_limits;
mod read;
mod refresh;
mod renew;
mod storage;

use std::io;
use std::sync::{Arc, OnceLock};

use loomd_model::Http;
use parking_lot::{Mutex, MutexGuard};

pub use backend::{BackendError, BackendResponse};
pub use claims::TokenError;
pub use error::AccountError;
pub use external::{ExternalTokens, MissingAccount};
pub use host::{ClientId, Host, RequestError};
pub use member::Member;
pub use options::Options;
pub use read::ChatgptAccount;

use auth_json::AuthJson;
use identity::Identity;
use issuer::Issuer;
use login::PendingLogin;
use renew::RenewalLock;
use storage::Storage;

/// The owner of the account state. Clones share it.
#[derive(Clone)]
pub struct Accounts(Arc<Inner>);

struct Inner {
    options: Options,
    storage: Storage,
    http: Arc<Http>,
    issuer: Issuer,
    host: Arc<dyn Host>,
    /// Loaded on first use. Later changes to the file by other programs do not take effect by themselves.
    current: Mutex<Option<Arc<AccountState>>>,
    /// Held during a login or logout, until its notifications are sent.
    change_lock: tokio::sync::Mutex<()>,
    renewal_lock: RenewalLock,
    pending: Mutex<Option<PendingLogin>>,
    /// Held by the login that listens for a browser.
    callback_port: Arc<tokio::sync::Mutex<()>>,
}

/// The identity, and the credentials that it comes from.
#[derive(Debug, Default)]
struct AccountState {
    identity: Option<Identity>,
    file: AuthJson,
    /// Why the tokens cannot be refreshed, once the issuer has refused.
    refresh_failure: OnceLock<String>,
}

impl Accounts {
    pub fn new(options: Options, http: Arc<Http>, host: Arc<dyn Host>) -> Self {
        let storage = Storage::new(&options.home, options.store);
        let issuer = Issuer::new(Arc::clone(&http), options.issuer.clone(), options.refresh_url.clone());
        Self(Arc::new(Inner {
            options,
            storage,
            http,
            issuer,
            host,
            current: Mutex::default(),
            change_lock: Default::default(),
            renewal_lock: RenewalLock::default(),
            pending: Mutex::default(),
            callback_port: Arc::default(),
        }))
    }

    fn current(&self) -> Arc<AccountState> {
        let mut current = self.lock();
        Arc::clone(current.get_or_insert_with(|| Arc::new(self.load_state())))
    }

    /// Loads the state from the storage.
    fn load_state(&self) -> AccountState {
        self.state_of(self.0.storage.load())
    }

    fn state_of(&self, file: AuthJson) -> AccountState {
        AccountState { identity: Identity::of(&file, &self.0.options), file, refresh_failure: OnceLock::new() }
    }

    fn set_state(&self, current: AccountState) {
        *self.lock() = Some(Arc::new(current));
    }

    /// Stores credentials and adopts them. Holds the state's lock, so that storage and state cannot diverge.
    fn save(&self, file: AuthJson) -> io::Result<()> {
        let mut current = self.lock();
        self.0.storage.save(&file)?;
        *current = Some(Arc::new(self.state_of(file)));
        Ok(())
    }

    /// Stores credentials, unless `old` has been replaced.
    fn save_if_current(&self, old: &Arc<AccountState>, file: &AuthJson) -> io::Result<()> {
        let current = self.lock();
        let is_there = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, old));
        if is_there { self.0.storage.save(file) } else { Ok(()) }
    }

    /// Deletes all credentials.
    fn clear(&self) -> io::Result<()> {
        let mut current = self.lock();
        self.0.storage.delete()?;
        *current = Some(Arc::default());
        Ok(())
    }

    fn pending(&self) -> MutexGuard<'_, Option<PendingLogin>> {
        self.0.pending.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<AccountState>>> {
        self.0.current.lock()
    }
}

#[cfg(test)]
mod tests;
