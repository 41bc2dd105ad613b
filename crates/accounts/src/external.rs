//! Tokens that a client brings, for hosts that own the session with ChatGPT. They are kept in memory only, hide
//! what is on disk, and when a call with them is refused the client is asked for new ones.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_protocol::{
    ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshReason, ChatgptAuthTokensRefreshResponse,
    ForcedLoginMethod, LoginAccountResponse, Secret, ServerRequest,
};

use crate::claims::{Claims, plan_from_name};
use crate::identity::{Identity, Renewal, SignIn};
use crate::renew::RenewError;
use crate::{AccountError, AccountState, Accounts, ClientId, TokenError};

/// How long a client may take to bring new tokens. A turn waits for them.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What a client brings.
#[derive(Clone, Debug)]
pub struct ExternalTokens {
    pub access_token: Secret,
    pub account_id: String,
    pub plan: Option<String>,
}

impl Accounts {
    /// `account/login/start` with tokens of a client.
    pub async fn login_with_tokens(
        &self,
        tokens: ExternalTokens,
        from: ClientId,
        reply: impl FnOnce(Result<LoginAccountResponse, AccountError>) + Send,
    ) {
        let _lock = self.0.change_lock.lock().await;
        if self.0.options.forced_method == Some(ForcedLoginMethod::Api) {
            return reply(Err(AccountError::ExternalDisabled));
        }
        let set = || self.set_external_tokens(tokens, from).map(|()| LoginAccountResponse::ChatgptAuthTokens);
        if self.change(set, reply).await {
            self.notify_login_completed(None, Ok(())).await;
        }
    }

    fn set_external_tokens(&self, tokens: ExternalTokens, from: ClientId) -> Result<(), AccountError> {
        if let Some(expected) = self.required_workspace_other_than(&tokens.account_id) {
            return Err(AccountError::WrongWorkspace { expected, received: tokens.account_id });
        }
        let sign_in = tokens.sign_in(Some(from)).map_err(AccountError::ExternalTokens)?;
        self.set_state(AccountState { identity: Some(Identity::Chatgpt(sign_in)), ..AccountState::default() });
        Ok(())
    }

    /// Asks the client that brought the tokens for new ones. It is asked once: what it cannot do now, it will not
    /// be able to do in a moment.
    pub(crate) async fn renew_by_client(
        &self,
        old: &Arc<AccountState>,
        owner: Option<ClientId>,
    ) -> Result<bool, RenewError> {
        let request = ServerRequest::ChatgptAuthTokensRefresh(ChatgptAuthTokensRefreshParams {
            reason: ChatgptAuthTokensRefreshReason::Unauthorized,
            previous_account_id: old.account_id().map(str::to_owned),
        });
        let failed = RenewError::Permanent;
        let answer = tokio::time::timeout(TIMEOUT, self.0.host.request(owner, request))
            .await
            .map_err(|_| failed(format!("auth refresh request timed out after {}s", TIMEOUT.as_secs())))?
            .map_err(|error| failed(format!("auth refresh request failed: {error}")))?;
        let ChatgptAuthTokensRefreshResponse { access_token, chatgpt_account_id, chatgpt_plan_type } =
            serde_json::from_value(answer).map_err(|error| failed(error.to_string()))?;
        if let Some(expected) = self.required_workspace_other_than(&chatgpt_account_id) {
            let message =
                format!("external auth refresh returned workspace {chatgpt_account_id:?}, expected {expected:?}");
            return Err(failed(message));
        }
        let tokens = ExternalTokens { access_token, account_id: chatgpt_account_id, plan: chatgpt_plan_type };
        let sign_in = tokens.sign_in(owner).map_err(|error| failed(error.to_string()))?;
        Ok(self.replace_if_current(
            old,
            AccountState { identity: Some(Identity::Chatgpt(sign_in)), ..AccountState::default() },
        ))
    }

    /// The workspace that it has to be, if it is not this one.
    fn required_workspace_other_than(&self, workspace: &str) -> Option<String> {
        self.0.options.forced_workspace.clone().filter(|forced| forced != workspace)
    }
}

impl ExternalTokens {
    fn sign_in(self, owner: Option<ClientId>) -> Result<SignIn, TokenError> {
        let claims = Claims::of(self.access_token.reveal())?;
        Ok(SignIn {
            renewal: Renewal::Client(owner),
            plan: self.plan.as_deref().map_or_else(|| claims.plan(), plan_from_name),
            claims,
            access_token: self.access_token,
            account_id: Some(self.account_id),
            last_refresh: Some(Timestamp::now()),
        })
    }
}
