//! Logins that need nobody else, and logouts. Each is carried out, answered and told before the next begins.

use loomd_protocol::{
    AccountLoginCompletedNotification, ForcedLoginMethod, LoginAccountResponse, LogoutAccountResponse, Secret,
    ServerNotification,
};

use crate::auth_json::AuthJson;
use crate::{AccountError, Accounts};

impl Accounts {
    /// `account/login/start` with a key.
    pub async fn login_with_key(
        &self,
        key: Secret,
        reply: impl FnOnce(Result<LoginAccountResponse, AccountError>) + Send,
    ) {
        let _order = self.0.order.lock().await;
        if let Err(error) = self.keep_key(&key) {
            return reply(Err(error));
        }
        self.0.host.switched(self).await;
        reply(Ok(LoginAccountResponse::ApiKey));
        self.tell_login(None, Ok(())).await;
    }

    /// `account/logout`
    pub async fn logout(&self, reply: impl FnOnce(Result<LogoutAccountResponse, AccountError>) + Send) {
        let _order = self.0.order.lock().await;
        if let Err(error) = self.forget() {
            return reply(Err(AccountError::Logout(error)));
        }
        self.0.host.switched(self).await;
        reply(Ok(LogoutAccountResponse {}));
        self.tell_updated().await;
    }

    fn keep_key(&self, key: &Secret) -> Result<(), AccountError> {
        self.check_managed()?;
        if self.0.options.forced_method == Some(ForcedLoginMethod::Chatgpt) {
            return Err(AccountError::KeyDisabled);
        }
        let key = key.reveal().trim();
        if key.is_empty() {
            return Err(AccountError::EmptyKey);
        }
        self.save(AuthJson::of_key(Secret::from(key.to_owned()))).map_err(AccountError::SaveKey)
    }

    /// As long as a client owns the session, others do not change it.
    fn check_managed(&self) -> Result<(), AccountError> {
        if self.current().is_external() { Err(AccountError::ExternalActive) } else { Ok(()) }
    }

    /// How a login ended, and who is signed in when that is new.
    pub(crate) async fn tell_login(&self, login_id: Option<String>, outcome: Result<(), String>) {
        let (success, error) = (outcome.is_ok(), outcome.err());
        let completed = AccountLoginCompletedNotification { login_id, success, error };
        self.0.host.tell(ServerNotification::AccountLoginCompleted(completed)).await;
        if success {
            self.tell_updated().await;
        }
    }

    pub(crate) async fn tell_updated(&self) {
        self.0.host.tell(ServerNotification::AccountUpdated(self.current().news())).await;
    }
}
