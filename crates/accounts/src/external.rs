//! Tokens that a client brings, for hosts that own the session with ChatGPT. They are kept in memory only, hide
//! what is on disk, and when a call with them is refused the client is asked for new ones.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_protocol::{
    ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshReason, ChatgptAuthTokensRefreshResponse,
    ForcedLoginMethod, LoginAccountResponse, Secret, ServerRequest,
};

use crate::claims::{Claims, named_plan};
use crate::identity::{Identity, Renewal, SignIn};
use crate::renew::RenewError;
use crate::{AccountError, Accounts, ClientId, Current, TokenError};

/// How long a client may take to bring new tokens. A turn waits for them.
const PATIENCE: Duration = Duration::from_secs(10);

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
        let _order = self.0.order.lock().await;
        if self.0.options.forced_method == Some(ForcedLoginMethod::Api) {
            return reply(Err(AccountError::ExternalDisabled));
        }
        let keep = || self.keep_tokens(tokens, from).map(|()| LoginAccountResponse::ChatgptAuthTokens);
        if self.change(keep, reply).await {
            self.tell_login(None, Ok(())).await;
        }
    }

    fn keep_tokens(&self, tokens: ExternalTokens, from: ClientId) -> Result<(), AccountError> {
        if let Some(expected) = self.forced_away_from(&tokens.account_id) {
            return Err(AccountError::WrongWorkspace { expected, received: tokens.account_id });
        }
        let sign_in = tokens.sign_in(Some(from)).map_err(AccountError::ExternalTokens)?;
        self.adopt(Current { identity: Some(Identity::Chatgpt(sign_in)), ..Current::default() });
        Ok(())
    }

    /// Asks the client that brought the tokens for new ones. It is asked once: what it cannot do now, it will not
    /// be able to do in a moment.
    pub(crate) async fn renew_by_client(
        &self,
        old: &Arc<Current>,
        owner: Option<ClientId>,
    ) -> Result<bool, RenewError> {
        let request = ServerRequest::ChatgptAuthTokensRefresh(ChatgptAuthTokensRefreshParams {
            reason: ChatgptAuthTokensRefreshReason::Unauthorized,
            previous_account_id: old.account_id().map(str::to_owned),
        });
        let failed = RenewError::Permanent;
        let answer = tokio::time::timeout(PATIENCE, self.0.host.ask(owner, request))
            .await
            .map_err(|_| failed(format!("auth refresh request timed out after {}s", PATIENCE.as_secs())))?
            .map_err(|error| failed(format!("auth refresh request failed: {error}")))?;
        let ChatgptAuthTokensRefreshResponse { access_token, chatgpt_account_id, chatgpt_plan_type } =
            serde_json::from_value(answer).map_err(|error| failed(error.to_string()))?;
        if let Some(expected) = self.forced_away_from(&chatgpt_account_id) {
            let message =
                format!("external auth refresh returned workspace {chatgpt_account_id:?}, expected {expected:?}");
            return Err(failed(message));
        }
        let tokens = ExternalTokens { access_token, account_id: chatgpt_account_id, plan: chatgpt_plan_type };
        let sign_in = tokens.sign_in(owner).map_err(|error| failed(error.to_string()))?;
        Ok(self.replace(old, Current { identity: Some(Identity::Chatgpt(sign_in)), ..Current::default() }))
    }

    /// The workspace that it has to be, if it is not this one.
    fn forced_away_from(&self, workspace: &str) -> Option<String> {
        self.0.options.forced_workspace.clone().filter(|forced| forced != workspace)
    }
}

impl ExternalTokens {
    fn sign_in(self, owner: Option<ClientId>) -> Result<SignIn, TokenError> {
        let claims = Claims::of(self.access_token.reveal())?;
        Ok(SignIn {
            renewal: Renewal::Client(owner),
            plan: self.plan.as_deref().map_or_else(|| claims.plan(), named_plan),
            claims,
            access_token: self.access_token,
            account_id: Some(self.account_id),
            last_refresh: Some(Timestamp::now()),
        })
    }
}
