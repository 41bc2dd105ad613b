//! Tokens that a client supplies, for clients that manage the ChatGPT session. They are held in memory only, take
//! precedence over the stored credentials, and are renewed by a server request to the client after a 401.

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

/// How long a client may take to supply new tokens. A turn waits meanwhile.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Tokens that a client supplies.
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

    /// Requests new tokens from the client that supplied the old ones. Failures are permanent: a repeated request would
    /// fail as well.
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

    /// Returns the required workspace if it is not `workspace`.
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
