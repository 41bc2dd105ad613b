//! Refreshes the tokens of a sign-in: before use when they are stale, and after a 401. Other programs may use the same
//! sign-in, so the file is read first, under a lock that programs of this kind share: a refresh token can be spent only
//! once.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use tracing::warn;

use crate::auth_json::AuthJson;
use crate::claims::{Claims, expiry};
use crate::identity::{Identity, Renewal, SignIn};
use crate::issuer::RefreshResponse;
use crate::renew::RenewError;
use crate::{AccountState, Accounts};

/// The age at which tokens without an expiry count as stale.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(8 * 24);

const OTHER_ACCOUNT: &str = "Your access token could not be refreshed because you have since logged out or signed in to another account. Please sign in again.";

impl Accounts {
    /// Returns the state after refreshing stale tokens. If that fails, the old tokens are returned, which may still
    /// work.
    pub(crate) async fn with_fresh_tokens(&self) -> Arc<AccountState> {
        let current = self.current();
        if !current.is_stale() {
            return current;
        }
        if let Err(error) = self.renew(current).await {
            warn!(%error, "using stale tokens: refresh failed");
        }
        self.current()
    }

    /// Refreshes on request of a client: adopts what is stored, whichever program wrote it, or else refreshes the tokens. A
    /// failure changes nothing.
    pub(crate) async fn refresh_for_client(&self) {
        let current = self.current();
        if current.is_external() {
            return;
        }
        let found = self.load_state();
        if found.file != current.file {
            if self.replace_if_current(&current, found) {
                self.publish_change().await;
            }
        } else if let Err(error) = self.renew(current).await {
            warn!(%error, "tokens not refreshed");
        }
    }

    /// Adopts credentials that another program stored for the same account.
    pub(crate) async fn reload(&self, old: &Arc<AccountState>) -> Result<(), RenewError> {
        if let Some(found) = self.reload_same_account(old)?
            && self.replace_if_current(old, found)
        {
            self.publish_change().await;
        }
        Ok(())
    }

    /// Loads credentials that another program stored for the same account. Fails if they are for another account.
    fn reload_same_account(&self, old: &AccountState) -> Result<Option<AccountState>, RenewError> {
        let found = self.load_state();
        if found.file == old.file {
            return Ok(None);
        }
        if found.account_id().is_none() || found.account_id() != old.account_id() {
            return Err(RenewError::Permanent(OTHER_ACCOUNT.into()));
        }
        Ok(Some(found))
    }

    pub(crate) async fn renew_at_issuer(&self, old: &Arc<AccountState>) -> Result<bool, RenewError> {
        let _lock = self.0.storage.lock().await;
        if let Some(found) = self.reload_same_account(old)? {
            return Ok(self.replace_if_current(old, found));
        }
        if let Some(failure) = old.refresh_failure.get() {
            return Err(RenewError::Permanent(failure.clone()));
        }
        let Some(tokens) = &old.file.tokens else { return Ok(false) };
        match self.0.issuer.refresh(&tokens.refresh_token).await {
            Ok(refreshed) => {
                let file = old.file.clone().refreshed(refreshed);
                // The old refresh token is spent, so the new tokens are used even if they cannot be stored.
                if let Err(error) = self.save_if_current(old, &file) {
                    warn!(%error, "refreshed tokens not stored");
                }
                Ok(self.replace_if_current(old, self.state_of(file)))
            }
            Err(error) => {
                if let RenewError::Permanent(why) = &error {
                    _ = old.refresh_failure.set(why.clone());
                }
                Err(error)
            }
        }
    }
}

impl AccountState {
    fn is_stale(&self) -> bool {
        let Some(Identity::Chatgpt(SignIn { renewal: Renewal::Issuer, access_token, last_refresh, .. })) =
            &self.identity
        else {
            return false;
        };
        let now = Timestamp::now();
        let stale = match (expiry(access_token.reveal()), last_refresh) {
            (Some(expiry), _) => expiry <= now.as_second() as f64,
            (None, Some(last)) => now.duration_since(*last) > MAX_AGE,
            (None, None) => false,
        };
        stale && self.refresh_failure.get().is_none()
    }
}

impl AuthJson {
    fn refreshed(mut self, new: RefreshResponse) -> Self {
        if let Some(tokens) = &mut self.tokens {
            // An unreadable id token would sign the user out.
            let id_token = new.id_token.filter(|token| Claims::of(token.reveal()).is_ok());
            for (old, new) in [
                (&mut tokens.id_token, id_token),
                (&mut tokens.access_token, new.access_token),
                (&mut tokens.refresh_token, new.refresh_token),
            ] {
                *old = new.unwrap_or_else(|| old.clone());
            }
        }
        self.refreshed_now()
    }
}
