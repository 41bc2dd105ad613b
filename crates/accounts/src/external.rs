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

/// Tokens that a client supplies. What the client does not name is taken from the claims of the id token, or else of
/// the access token.
#[derive(Clone, Debug)]
pub struct ExternalTokens {
    pub id_token: Option<Secret>,
    pub access_token: Secret,
    /// May be `None` only with an id token.
    pub account_id: Option<String>,
    pub plan: Option<String>,
}

/// Why it is not known which account tokens are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MissingAccount {
    #[error("missing field `chatgptAccountId`")]
    Field,
    #[error("`idToken` has no claim `chatgpt_account_id`, and `chatgptAccountId` is missing")]
    Claim,
}

/// Why tokens of a client cannot be used.
enum ExternalError {
    Account(MissingAccount),
    Workspace { expected: String, received: String },
    Token(TokenError),
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
        let sign_in = self.external_sign_in(tokens, Some(from)).map_err(|error| match error {
            ExternalError::Account(missing) => AccountError::MissingAccount(missing),
            ExternalError::Workspace { expected, received } => AccountError::WrongWorkspace { expected, received },
            ExternalError::Token(error) => AccountError::ExternalTokens(error),
        })?;
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
        let ChatgptAuthTokensRefreshResponse { id_token, access_token, chatgpt_account_id, chatgpt_plan_type } =
            serde_json::from_value(answer).map_err(|error| failed(error.to_string()))?;
        let (account_id, plan) = (chatgpt_account_id, chatgpt_plan_type);
        let tokens = ExternalTokens { id_token, access_token, account_id, plan };
        let sign_in = self.external_sign_in(tokens, owner).map_err(|error| match error {
            ExternalError::Account(missing) => failed(missing.to_string()),
            ExternalError::Workspace { expected, received } => {
                failed(format!("external auth refresh returned workspace {received:?}, expected {expected:?}"))
            }
            ExternalError::Token(error) => failed(error.to_string()),
        })?;
        Ok(self.replace_if_current(
            old,
            AccountState { identity: Some(Identity::Chatgpt(sign_in)), ..AccountState::default() },
        ))
    }

    /// The account that tokens sign in to, if the configuration allows it.
    fn external_sign_in(&self, tokens: ExternalTokens, owner: Option<ClientId>) -> Result<SignIn, ExternalError> {
        let ExternalTokens { id_token, account_id, .. } = &tokens;
        if account_id.is_none() && id_token.is_none() {
            return Err(ExternalError::Account(MissingAccount::Field));
        }
        if let Some(named) = account_id {
            self.allow_external(named)?;
        }
        let claims = tokens.claims().map_err(ExternalError::Token)?;
        let account_id = match tokens.account_id {
            Some(named) => named,
            None => {
                let claimed = claims.auth.chatgpt_account_id.clone();
                let claimed = claimed.ok_or(ExternalError::Account(MissingAccount::Claim))?;
                self.allow_external(&claimed)?;
                claimed
            }
        };
        Ok(SignIn {
            renewal: Renewal::Client(owner),
            plan: tokens.plan.as_deref().map_or_else(|| claims.plan(), plan_from_name),
            claims,
            access_token: tokens.access_token,
            account_id: Some(account_id),
            last_refresh: Some(Timestamp::now()),
        })
    }

    /// Refuses any workspace but the one that the configuration requires.
    fn allow_external(&self, workspace: &str) -> Result<(), ExternalError> {
        match &self.0.options.forced_workspace {
            Some(forced) if forced != workspace => {
                Err(ExternalError::Workspace { expected: forced.clone(), received: workspace.to_owned() })
            }
            _ => Ok(()),
        }
    }
}

impl ExternalTokens {
    /// The claims of the id token, completed by those of the access token, which may be opaque then.
    fn claims(&self) -> Result<Claims, TokenError> {
        let access = Claims::of(self.access_token.reveal());
        match &self.id_token {
            Some(id_token) => Ok(Claims::of(id_token.reveal())?.or(access.unwrap_or_default())),
            None => access,
        }
    }
}
