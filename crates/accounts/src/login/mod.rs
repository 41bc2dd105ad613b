//! ChatGPT logins that wait for the user: in a browser, or with a code on another device. At most one is pending in the
//! process. The task that takes it out of `pending` notifies clients of its end.

mod browser;
mod callback;
mod device;
mod page;
mod success;

use loomd_protocol::{AuthMode, CancelLoginAccountResponse, CancelLoginAccountStatus, ForcedLoginMethod, Secret};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) use browser::PORTS;

use crate::auth_json::{AuthJson, Tokens};
use crate::claims::Claims;
use crate::issuer::IssuedTokens;
use crate::{AccountError, Accounts};

/// The error of an abandoned login.
pub(crate) const NOT_COMPLETED: &str = "Login was not completed";

/// A login that waits for the user.
pub(crate) struct PendingLogin {
    id: String,
    kind: LoginKind,
    /// Stops its tasks.
    stop: CancellationToken,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LoginKind {
    Browser,
    Device,
}

impl LoginKind {
    /// The prefix of error messages of such a login.
    fn prefix(self) -> &'static str {
        match self {
            Self::Browser => "Login server error: ",
            Self::Device => "",
        }
    }

    /// The error of such a login when a browser login replaces it.
    fn replaced_by_browser(self) -> &'static str {
        match self {
            Self::Browser => "Login cancelled",
            Self::Device => NOT_COMPLETED,
        }
    }
}

/// Why a login failed, with the code that the browser page shows.
#[derive(Clone, Debug, PartialEq)]
struct Failure {
    code: String,
    message: String,
}

impl Failure {
    fn new(code: &str, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }

    fn not_saved() -> Self {
        Self::new("persist_failed", "Sign-in completed but credentials could not be saved locally.")
    }
}

impl Accounts {
    /// `account/login/cancel`. Any client may cancel.
    pub async fn cancel(
        &self,
        login_id: &str,
        reply: impl FnOnce(Result<CancelLoginAccountResponse, AccountError>) + Send,
    ) {
        let Ok(id) = Uuid::parse_str(login_id) else { return reply(Err(AccountError::LoginId(login_id.into()))) };
        let abandoned = self.abandon_login(Some(&id.to_string()));
        let status = match &abandoned {
            Some(_) => CancelLoginAccountStatus::Canceled,
            None => CancelLoginAccountStatus::NotFound,
        };
        reply(Ok(CancelLoginAccountResponse { status }));
        self.notify_abandoned(abandoned, NOT_COMPLETED).await;
    }

    /// Stops and returns the pending login, if its id is `id` or `id` is `None`. The caller has to notify clients.
    pub(crate) fn abandon_login(&self, id: Option<&str>) -> Option<PendingLogin> {
        self.take_pending(id).inspect(|pending| pending.stop.cancel())
    }

    pub(crate) async fn notify_abandoned(&self, abandoned: Option<PendingLogin>, why: &str) {
        if let Some(PendingLogin { id, kind, .. }) = abandoned {
            self.notify_login_completed(Some(id), Err(format!("{}{why}", kind.prefix()))).await;
        }
    }

    fn take_pending(&self, id: Option<&str>) -> Option<PendingLogin> {
        self.pending().take_if(|pending| id.is_none_or(|id| pending.id == id))
    }

    /// Whether a ChatGPT login may start.
    fn check_chatgpt(&self) -> Result<(), AccountError> {
        self.check_managed()?;
        match self.0.options.forced_method {
            Some(ForcedLoginMethod::Api) => Err(AccountError::ChatgptDisabled),
            _ => Ok(()),
        }
    }

    /// Registers a login and stops the one that was pending before.
    fn begin(&self, kind: LoginKind) -> (String, CancellationToken, Option<PendingLogin>) {
        let (id, stop) = (Uuid::new_v4().to_string(), CancellationToken::new());
        let before = self.pending().replace(PendingLogin { id: id.clone(), kind, stop: stop.clone() });
        (id, stop, before.inspect(|pending| pending.stop.cancel()))
    }

    /// Ends a login: stores the credentials, if any, and notifies clients. Fails if the login was abandoned meanwhile.
    async fn finish(&self, id: &str, outcome: Result<AuthJson, Failure>) -> Result<(), Failure> {
        let _lock = self.0.change_lock.lock().await;
        let Some(PendingLogin { kind, .. }) = self.take_pending(Some(id)) else {
            return Err(Failure::new("login_cancelled", NOT_COMPLETED));
        };
        let kept = outcome.and_then(|file| {
            // A client may have supplied tokens while the issuer was queried.
            self.check_managed().map_err(|error| Failure::new("external_auth", error.to_string()))?;
            self.save(file).map_err(|error| {
                tracing::error!(%error, "cannot save credentials");
                Failure::not_saved()
            })
        });
        if kept.is_ok() {
            self.0.host.account_changed(self).await;
        }
        let told = kept.as_ref().copied().map_err(|failure| format!("{}{}", kind.prefix(), failure.message));
        self.notify_login_completed(Some(id.into()), told).await;
        kept
    }

    /// Fails unless the tokens are for the required workspace. Unreadable tokens are for none.
    fn check_workspace(&self, granted: &IssuedTokens) -> Result<(), Failure> {
        let Some(forced) = &self.0.options.forced_workspace else { return Ok(()) };
        let claims = Claims::of(granted.id_token.reveal()).unwrap_or_default();
        let message = match claims.auth.chatgpt_account_id {
            Some(workspace) if workspace == *forced => return Ok(()),
            Some(_) => format!("Login is restricted to workspace id {forced}."),
            None => "Login is restricted to a specific workspace, but the token did not include an chatgpt_account_id claim.".into(),
        };
        Err(Failure::new("workspace_restriction", message))
    }
}

/// Returns the credentials to store.
fn credentials(granted: IssuedTokens, api_key: Option<Secret>) -> Result<AuthJson, Failure> {
    let IssuedTokens { id_token, access_token, refresh_token } = granted;
    let claims = Claims::of(id_token.reveal()).map_err(|_| Failure::not_saved())?;
    let account_id = claims.auth.chatgpt_account_id;
    let tokens = Tokens { id_token, access_token, refresh_token, account_id, other: Default::default() };
    let file = AuthJson { auth_mode: Some(AuthMode::Chatgpt), api_key, tokens: Some(tokens), ..AuthJson::default() };
    Ok(file.refreshed_now())
}
