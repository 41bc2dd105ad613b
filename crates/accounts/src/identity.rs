//! The signed-in identity that credentials give: an API key, or a ChatGPT account.

use jiff::Timestamp;
use loomd_model::{Bearer, BearerKind};
use loomd_protocol::{AuthMode, ForcedLoginMethod, PlanType, Secret};

use crate::auth_json::AuthJson;
use crate::claims::Claims;
use crate::{AccountError, ClientId, Options};

#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "there is one in a process")]
pub(crate) enum Identity {
    Key(Secret),
    Chatgpt(SignIn),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SignIn {
    pub renewal: Renewal,
    pub claims: Claims,
    pub plan: PlanType,
    pub access_token: Secret,
    pub account_id: Option<String>,
    pub last_refresh: Option<Timestamp>,
}

/// The source of new tokens after the current ones were refused.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Renewal {
    /// The issuer of the tokens.
    Issuer,
    /// The client that manages the session: the one that supplied the tokens, if known.
    Client(Option<ClientId>),
}

impl Identity {
    /// Returns `None` where the file lacks a part that its mode requires, or the configuration forbids it.
    pub fn of(file: &AuthJson, options: &Options) -> Option<Self> {
        let found = match file.mode() {
            AuthMode::Apikey => Self::Key(file.api_key.clone()?),
            AuthMode::Chatgpt => Self::Chatgpt(SignIn::of(file, Renewal::Issuer)?),
            AuthMode::ChatgptAuthTokens => Self::Chatgpt(SignIn::of(file, Renewal::Client(None))?),
        };
        options.allow(&found).then_some(found)
    }

    pub fn mode(&self) -> AuthMode {
        match self {
            Self::Key(_) => AuthMode::Apikey,
            Self::Chatgpt(SignIn { renewal: Renewal::Client(_), .. }) => AuthMode::ChatgptAuthTokens,
            Self::Chatgpt(_) => AuthMode::Chatgpt,
        }
    }

    pub fn plan(&self) -> Option<PlanType> {
        match self {
            Self::Key(_) => None,
            Self::Chatgpt(sign_in) => Some(sign_in.plan.clone()),
        }
    }

    /// The token for calls. Fails for a ChatGPT account that was never refreshed.
    pub fn bearer(&self) -> Result<Bearer, AccountError> {
        match self {
            Self::Key(key) => Ok(Bearer::key(key.clone())),
            Self::Chatgpt(SignIn { last_refresh: None, .. }) => Err(AccountError::NoTokens),
            Self::Chatgpt(sign_in) => Ok(Bearer {
                token: sign_in.access_token.clone(),
                kind: BearerKind::Chatgpt { account_id: sign_in.account_id.clone() },
            }),
        }
    }
}

impl SignIn {
    fn of(file: &AuthJson, renewal: Renewal) -> Option<Self> {
        let tokens = file.tokens.as_ref()?;
        let claims = Claims::of(tokens.id_token.reveal()).ok()?;
        let last_refresh = file.last_refresh.as_deref().map(str::parse).transpose().ok()?;
        Some(Self {
            renewal,
            plan: claims.plan(),
            claims,
            access_token: tokens.access_token.clone(),
            account_id: tokens.account_id.clone(),
            last_refresh,
        })
    }
}

impl Options {
    /// Whether the configuration allows an identity.
    fn allow(&self, identity: &Identity) -> bool {
        match identity {
            Identity::Key(_) => self.forced_method != Some(ForcedLoginMethod::Chatgpt),
            Identity::Chatgpt(sign_in) => {
                let claimed = &sign_in.claims.auth.chatgpt_account_id;
                let workspace = sign_in.account_id.as_ref().or(claimed.as_ref());
                self.forced_method != Some(ForcedLoginMethod::Api)
                    && (self.forced_workspace.is_none() || self.forced_workspace.as_ref() == workspace)
            }
        }
    }
}
