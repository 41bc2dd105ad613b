//! `account/read` and `getAuthStatus`: the account as clients see it.

use loomd_protocol::{
    Account, AccountUpdatedNotification, AuthMode, GetAccountParams, GetAccountResponse, GetAuthStatusParams,
    GetAuthStatusResponse, Level, PlanType, Secret,
};

use crate::identity::Identity;
use crate::{AccountError, AccountState, Accounts};

/// A ChatGPT account, without its credentials.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatgptAccount {
    pub account_id: Option<String>,
    pub user_id: Option<String>,
    pub plan: PlanType,
}

impl Accounts {
    /// `account/read`. Returns no account if the default provider does not use one. An account without an email is an
    /// error in the older release.
    pub async fn read(&self, params: &GetAccountParams, level: Level) -> Result<GetAccountResponse, AccountError> {
        if params.refresh_token {
            self.refresh_for_client().await;
        }
        let requires_openai_auth = self.0.options.requires_openai_auth;
        let account = if requires_openai_auth { self.current().account() } else { None };
        if level < Level::V0_166 && matches!(&account, Some(Account::Chatgpt { email, .. }) if email.is_empty()) {
            return Err(AccountError::NoEmail);
        }
        Ok(GetAccountResponse { account, requires_openai_auth })
    }

    /// The signed-in ChatGPT account; `None` for an API key, and when nobody is signed in.
    pub fn chatgpt_account(&self) -> Option<ChatgptAccount> {
        match &self.current().identity {
            Some(Identity::Chatgpt(sign_in)) => Some(ChatgptAccount {
                account_id: sign_in.account_id.clone(),
                user_id: sign_in.claims.user_id().map(Into::into),
                plan: sign_in.plan.clone(),
            }),
            _ => None,
        }
    }

    pub fn is_signed_in(&self) -> bool {
        self.current().identity.is_some()
    }

    /// How the user is signed in; `None` without an account.
    pub fn auth_mode(&self) -> Option<AuthMode> {
        self.current().identity.as_ref().map(Identity::mode)
    }

    /// `getAuthStatus`. Unusable credentials count as none.
    pub async fn auth_status(&self, params: &GetAuthStatusParams) -> GetAuthStatusResponse {
        let requires_openai_auth = self.0.options.requires_openai_auth;
        if params.refresh_token == Some(true) {
            self.refresh_for_client().await;
        }
        let current = self.with_fresh_tokens().await;
        let usable = current.identity.as_ref().filter(|_| requires_openai_auth).and_then(|identity| {
            let bearer = identity.bearer().ok().filter(|bearer| !bearer.token.reveal().is_empty())?;
            Some((identity.mode(), Secret::from(bearer.token.reveal().to_owned())))
        });
        let (auth_method, auth_token) = usable.unzip();
        GetAuthStatusResponse {
            auth_method,
            // A token that cannot be refreshed any more is not returned.
            auth_token: auth_token
                .filter(|_| params.include_token == Some(true) && current.refresh_failure.get().is_none()),
            requires_openai_auth: Some(requires_openai_auth),
        }
    }
}

impl AccountState {
    fn account(&self) -> Option<Account> {
        match self.identity.as_ref()? {
            Identity::Key(_) => Some(Account::ApiKey),
            Identity::Chatgpt(sign_in) => {
                let email = sign_in.claims.email().unwrap_or_default();
                Some(Account::Chatgpt { email: email.into(), plan_type: sign_in.plan.clone() })
            }
        }
    }

    /// Whether a client manages the session.
    pub(crate) fn is_external(&self) -> bool {
        self.identity.as_ref().is_some_and(|identity| identity.mode() == AuthMode::ChatgptAuthTokens)
    }

    /// Everything that clients can observe.
    pub(crate) fn visible_state(&self) -> (AccountUpdatedNotification, Option<&str>, Option<&str>) {
        let email = match &self.identity {
            Some(Identity::Chatgpt(sign_in)) => sign_in.claims.email(),
            _ => None,
        };
        (self.updated_notification(), email, self.account_id())
    }

    /// The `account/updated` notification for this state.
    pub(crate) fn updated_notification(&self) -> AccountUpdatedNotification {
        AccountUpdatedNotification {
            auth_mode: self.identity.as_ref().map(Identity::mode),
            plan_type: self.identity.as_ref().and_then(Identity::plan),
        }
    }
}
