//! Renewal of refused tokens. One renewal runs at a time, and callers with the same refused tokens share its outcome:
//! the client gets one request, and a refresh token is spent once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loomd_model::ModelError;

use crate::identity::{Identity, Renewal, SignIn};
use crate::{AccountState, Accounts};

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum RenewError {
    /// A retry would not help.
    #[error("{0}")]
    Permanent(String),
    #[error("{0}")]
    Transient(String),
}

impl From<RenewError> for ModelError {
    fn from(error: RenewError) -> Self {
        match error {
            RenewError::Permanent(message) => Self::Unauthorized(message),
            RenewError::Transient(message) => Self::Credentials(message),
        }
    }
}

/// Serialises renewals.
#[derive(Default)]
pub(crate) struct RenewalLock {
    /// The number of completed renewals.
    completed: AtomicU64,
    /// The state that the last renewal failed for, and its error.
    last_failure: tokio::sync::Mutex<Option<(Arc<AccountState>, RenewError)>>,
}

impl Accounts {
    /// Renews the tokens of `old`, unless they have been replaced. Runs to completion even if the caller is dropped,
    /// because issued tokens that are not stored are lost.
    pub(crate) async fn renew(&self, old: Arc<AccountState>) -> Result<(), RenewError> {
        let accounts = self.clone();
        let renewal = tokio::spawn(async move {
            // Publishes after the lock is released: a subscriber may need fresh tokens.
            if accounts.renew_exclusively(old).await? {
                accounts.publish_change().await;
            }
            Ok(())
        });
        renewal.await.unwrap_or_else(|error| Err(RenewError::Transient(error.to_string())))
    }

    /// Returns whether clients see a difference.
    async fn renew_exclusively(&self, old: Arc<AccountState>) -> Result<bool, RenewError> {
        let lock = &self.0.renewal_lock;
        let before = lock.completed.load(Ordering::Acquire);
        let mut last_failure = lock.last_failure.lock().await;
        if !Arc::ptr_eq(&old, &self.current()) {
            return Ok(false);
        }
        if let Some((same, error)) = &*last_failure
            && lock.completed.load(Ordering::Acquire) != before
            && Arc::ptr_eq(same, &old)
        {
            return Err(error.clone());
        }
        let outcome = self.renew_now(&old).await;
        *last_failure = outcome.as_ref().err().map(|error| (old, error.clone()));
        lock.completed.fetch_add(1, Ordering::Release);
        outcome
    }

    async fn renew_now(&self, old: &Arc<AccountState>) -> Result<bool, RenewError> {
        match &old.identity {
            Some(Identity::Chatgpt(SignIn { renewal: Renewal::Client(owner), .. })) => {
                self.renew_by_client(old, *owner).await
            }
            Some(Identity::Chatgpt(SignIn { renewal: Renewal::Issuer, .. })) => self.renew_at_issuer(old).await,
            Some(Identity::Key(_)) | None => Ok(false),
        }
    }

    /// Replaces `old`, unless it has been replaced already. Returns whether clients see a difference.
    pub(crate) fn replace_if_current(&self, old: &Arc<AccountState>, new: AccountState) -> bool {
        let mut current = self.lock();
        let is_there = current.as_ref().is_some_and(|current| Arc::ptr_eq(current, old));
        let differs = is_there && new.visible_state() != old.visible_state();
        if is_there {
            *current = Some(Arc::new(new));
        }
        differs
    }
}
