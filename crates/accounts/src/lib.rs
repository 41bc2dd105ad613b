//! Accounts: who is signed in, how that changes, and what model calls are authenticated with. There is one
//! [`Accounts`] per process, shared by all connections and threads, so a login takes effect on the next call of
//! every thread. Knows no connections: whoever asks brings a reply, which is called before any news that follows
//! from it, and a [`Host`] takes the news to clients.

mod auth_json;
mod change;
mod claims;
mod credentials;
mod error;
mod external;
mod host;
mod identity;
mod options;
mod read;
mod renew;
mod storage;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use claims::TokenError;
pub use error::AccountError;
pub use external::ExternalTokens;
pub use host::{AskError, ClientId, Host};
pub use options::Options;

use identity::Identity;
use renew::Turnstile;
use storage::Storage;

/// The owner of identity. Clones are handles to the same one.
#[derive(Clone)]
pub struct Accounts(Arc<Inner>);

struct Inner {
    options: Options,
    storage: Storage,
    host: Arc<dyn Host>,
    /// Read when it is first needed. What others write to the file later does not count by itself.
    current: Mutex<Option<Arc<Current>>>,
    /// One login or logout at a time, with all its news.
    order: tokio::sync::Mutex<()>,
    renewing: Turnstile,
}

/// Who is signed in.
#[derive(Debug)]
struct Current {
    identity: Option<Identity>,
}

impl Accounts {
    pub fn new(options: Options, host: Arc<dyn Host>) -> Self {
        let storage = Storage::new(&options.home, options.store);
        Self(Arc::new(Inner {
            options,
            storage,
            host,
            current: Mutex::default(),
            order: Default::default(),
            renewing: Turnstile::default(),
        }))
    }

    fn current(&self) -> Arc<Current> {
        let mut current = self.lock();
        Arc::clone(current.get_or_insert_with(|| Arc::new(self.stored())))
    }

    /// What the storage says now.
    fn stored(&self) -> Current {
        Current { identity: Identity::of(&self.0.storage.load(), &self.0.options) }
    }

    fn adopt(&self, current: Current) {
        *self.lock() = Some(Arc::new(current));
    }

    fn lock(&self) -> MutexGuard<'_, Option<Arc<Current>>> {
        self.0.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
