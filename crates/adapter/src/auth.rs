//! [`Auth`]: how an evaluation signs in to the server.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loomd_client::protocol::{ChatgptAuthTokensRefreshResponse, JsonValue, LoginAccountParams, Secret};

/// Signs in after the handshake. Without it, the account of the server's home is used.
#[derive(Clone)]
#[non_exhaustive]
pub enum Auth {
    ApiKey(Secret),
    /// Tokens that this program supplies, and renews when the server requests it.
    Tokens(Arc<dyn DynTokenSource>),
}

impl Auth {
    pub fn api_key(key: impl Into<String>) -> Self {
        Self::ApiKey(Secret::from(key.into()))
    }

    pub fn tokens(source: impl TokenSource) -> Self {
        Self::Tokens(Arc::new(source))
    }

    /// Params of `account/login/start`.
    pub(crate) async fn login(&self) -> Result<LoginAccountParams, TokenError> {
        match self {
            Self::ApiKey(api_key) => Ok(LoginAccountParams::ApiKey { api_key: api_key.clone() }),
            Self::Tokens(source) => {
                let Tokens { access_token, account_id, plan } = source.tokens_dyn(TokenRequest::Login).await?;
                Ok(LoginAccountParams::ChatgptAuthTokens {
                    id_token: None,
                    access_token,
                    chatgpt_account_id: Some(account_id),
                    chatgpt_plan_type: plan,
                })
            }
        }
    }

    /// The result of `account/chatgptAuthTokens/refresh`.
    pub(crate) async fn refresh(
        &self,
        previous_account_id: Option<String>,
    ) -> Result<ChatgptAuthTokensRefreshResponse, TokenError> {
        let Self::Tokens(source) = self else { return Err(TokenError::new("the evaluation has no token source")) };
        let Tokens { access_token, account_id, plan } =
            source.tokens_dyn(TokenRequest::Refresh { previous_account_id }).await?;
        Ok(ChatgptAuthTokensRefreshResponse {
            id_token: None,
            access_token,
            chatgpt_account_id: Some(account_id),
            chatgpt_plan_type: plan,
        })
    }
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ApiKey(_) => "ApiKey",
            Self::Tokens(_) => "Tokens",
        })
    }
}

/// Tokens of a ChatGPT account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tokens {
    pub access_token: Secret,
    pub account_id: String,
    pub plan: Option<String>,
}

impl Tokens {
    pub fn new(access_token: impl Into<String>, account_id: impl Into<String>) -> Self {
        Self { access_token: Secret::from(access_token.into()), account_id: account_id.into(), plan: None }
    }

    /// Tokens as their issuer grants them. Account and plan are claims of the id token.
    pub fn granted(id_token: &str, access_token: impl Into<String>) -> Result<Self, TokenError> {
        let claims = claims(id_token).ok_or_else(|| TokenError::new("the id token is not a JSON Web Token"))?;
        let claim = |name: &str| claims["https://api.openai.com/auth"][name].as_str().map(str::to_owned);
        let account_id = claim("chatgpt_account_id")
            .ok_or_else(|| TokenError::new("the id token has no claim `chatgpt_account_id`"))?;
        Ok(Self { plan: claim("chatgpt_plan_type"), ..Self::new(access_token, account_id) })
    }
}

/// The claims of a token. The server, or its provider, verifies the signature.
fn claims(token: &str) -> Option<JsonValue> {
    let payload = token.split('.').nth(1).filter(|_| token.split('.').count() == 3)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// What tokens are needed for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TokenRequest {
    Login,
    /// The provider refused the tokens before.
    Refresh {
        previous_account_id: Option<String>,
    },
}

/// Supplies tokens. Implemented by functions: `|request| async { Tokens::granted(id_token, access_token) }`.
pub trait TokenSource: Send + Sync + 'static {
    fn tokens(&self, request: TokenRequest) -> impl Future<Output = Result<Tokens, TokenError>> + Send;
}

impl<F, Fut> TokenSource for F
where
    F: Fn(TokenRequest) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Tokens, TokenError>> + Send,
{
    fn tokens(&self, request: TokenRequest) -> impl Future<Output = Result<Tokens, TokenError>> + Send {
        self(request)
    }
}

/// Why there are no tokens. The text must not contain them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot get tokens: {0}")]
pub struct TokenError(String);

impl TokenError {
    pub fn new(reason: impl fmt::Display) -> Self {
        Self(reason.to_string())
    }
}

type TokensFuture<'a> = Pin<Box<dyn Future<Output = Result<Tokens, TokenError>> + Send + 'a>>;

/// [`TokenSource`] as a trait object.
pub trait DynTokenSource: Send + Sync {
    fn tokens_dyn(&self, request: TokenRequest) -> TokensFuture<'_>;
}

impl<S: TokenSource> DynTokenSource for S {
    fn tokens_dyn(&self, request: TokenRequest) -> TokensFuture<'_> {
        Box::pin(self.tokens(request))
    }
}
