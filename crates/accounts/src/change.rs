//! Logins that need no further step of the user, and logouts. Each holds the change lock until its reply and its
//! notifications are sent.

use loomd_protocol::{
    AccountLoginCompletedNotification, ForcedLoginMethod, LoginAccountResponse, LogoutAccountResponse, Secret,
    ServerNotification,
};

use crate::auth_json::AuthJson;
use crate::login::NOT_COMPLETED;
use crate::{AccountError, Accounts};

impl Accounts {
    /// `account/login/start` with an API key.
    pub async fn login_with_key(
        &self,
        key: Secret,
        reply: impl FnOnce(Result<LoginAccountResponse, AccountError>) + Send,
    ) {
        let _lock = self.0.change_lock.lock().await;
        let key = match self.check_key(&key) {
            Ok(key) => key,
            Err(error) => return reply(Err(error)),
        };
        let save = || self.save(AuthJson::of_key(key)).map_err(AccountError::SaveKey);
        if self.change(|| save().map(|()| LoginAccountResponse::ApiKey), reply).await {
            self.notify_login_completed(None, Ok(())).await;
        }
    }

    /// `account/logout`
    pub async fn logout(&self, reply: impl FnOnce(Result<LogoutAccountResponse, AccountError>) + Send) {
        let _lock = self.0.change_lock.lock().await;
        let clear = || self.clear().map_err(AccountError::Logout);
        if self.change(|| clear().map(|()| LogoutAccountResponse {}), reply).await {
            self.notify_updated().await;
        }
    }

    /// Applies a change, which abandons any pending login, and replies. Returns whether the change succeeded.
    pub(crate) async fn change<T>(
        &self,
        change: impl FnOnce() -> Result<T, AccountError> + Send,
        reply: impl FnOnce(Result<T, AccountError>) + Send,
    ) -> bool {
        let abandoned = self.abandon_login(None);
        let outcome = change();
        let changed = outcome.is_ok();
        if changed {
            self.0.host.account_changed(self).await;
        }
        reply(outcome);
        self.notify_abandoned(abandoned, NOT_COMPLETED).await;
        changed
    }

    /// Validates and trims a key.
    fn check_key(&self, key: &Secret) -> Result<Secret, AccountError> {
        self.check_managed()?;
        if self.0.options.forced_method == Some(ForcedLoginMethod::Chatgpt) {
            return Err(AccountError::KeyDisabled);
        }
        let key = key.reveal().trim();
        if key.is_empty() {
            return Err(AccountError::EmptyKey);
        }
        Ok(Secret::from(key.to_owned()))
    }

    /// Fails while a client manages the session: only that client may change it.
    pub(crate) fn check_managed(&self) -> Result<(), AccountError> {
        if self.current().is_external() { Err(AccountError::ExternalActive) } else { Ok(()) }
    }

    /// Notifies clients of the end of a login and, on success, of the new account.
    pub(crate) async fn notify_login_completed(&self, login_id: Option<String>, outcome: Result<(), String>) {
        let (success, error) = (outcome.is_ok(), outcome.err());
        let completed = AccountLoginCompletedNotification { login_id, success, error };
        self.0.host.notify(ServerNotification::AccountLoginCompleted(completed)).await;
        if success {
            self.notify_updated().await;
        }
    }

    /// Publishes a change of the account that is not the result of a login.
    pub(crate) async fn publish_change(&self) {
        self.0.host.account_changed(self).await;
        self.notify_updated().await;
    }

    async fn notify_updated(&self) {
        self.0.host.notify(ServerNotification::AccountUpdated(self.current().updated_notification())).await;
    }
}
