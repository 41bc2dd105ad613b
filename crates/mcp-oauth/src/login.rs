//! A login in a browser, from the search for the authorization server to the stored tokens.

use std::time::Duration;

use hyper::StatusCode;
use loomd_model::BoxFuture;
use loomd_oauth::callback::{Page, plain};
use loomd_oauth::{LoginSecrets, encoded};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::authorization_server::{RegisteredClient, TokenError};
use crate::callback::{self, Code, Delivery, Listener};
use crate::discovery::{Metadata, acceptable};
use crate::tokens::Tokens;
use crate::{CallbackSettings, McpOauth, OauthError, OauthServer};

/// How long the user may take.
const TIMEOUT: Duration = Duration::from_secs(300);
/// The bounds of what a client may ask for.
const MIN_TIMEOUT: Duration = Duration::from_secs(1);
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3600);

/// A login that waits for the browser. Dropped, it ends.
pub struct Login {
    /// Where the user agrees to the login.
    pub authorization_url: String,
    completed: BoxFuture<'static, Result<(), OauthError>>,
}

impl Login {
    /// Resolves when the login has ended. After a success the tokens are stored.
    pub async fn completed(self) -> Result<(), OauthError> {
        self.completed.await
    }
}

impl McpOauth {
    /// Starts a login. `scopes` are those to request: if not given, the configured ones, else all that the authorization
    /// server lists.
    pub async fn login(
        &self,
        server: &OauthServer,
        scopes: Option<Vec<String>>,
        limit: Option<Duration>,
        callback: &CallbackSettings,
    ) -> Result<Login, OauthError> {
        let permit = self.0.logins.clone().try_acquire_owned().map_err(|_| OauthError::TooManyLogins)?;
        let metadata = self.0.issuers.discover(server).await?.ok_or(OauthError::Unsupported)?;
        check("authorization_endpoint", &metadata.authorization_endpoint, server)?;
        check("token_endpoint", &metadata.token_endpoint, server)?;
        let listener = callback.listen().await?;
        let registration = metadata.registration_endpoint.as_deref().ok_or(OauthError::NoRegistration)?;
        check("registration_endpoint", registration, server)?;
        let client = self.0.issuers.register(registration, &listener.redirect_uri).await?;
        let secrets = LoginSecrets::new().map_err(|error| OauthError::Random(error.to_string()))?;
        let scopes = scopes.or_else(|| server.scopes.clone()).or_else(|| metadata.scopes_supported.clone());
        let scope = scopes.unwrap_or_default().join(" ");
        let authorization_url = authorization_url(&metadata, &client, &secrets, &listener, &scope, server);
        let pending = PendingLogin {
            oauth: self.clone(),
            server: server.clone(),
            token_endpoint: metadata.token_endpoint,
            client,
            secrets,
            limit: limit.unwrap_or(TIMEOUT).clamp(MIN_TIMEOUT, MAX_TIMEOUT),
            _permit: permit,
        };
        Ok(Login { authorization_url, completed: Box::pin(pending.run(listener)) })
    }
}

fn check(field: &'static str, url: &str, server: &OauthServer) -> Result<(), OauthError> {
    match acceptable(url, server) {
        Some(_) => Ok(()),
        None => Err(OauthError::Endpoint { field, url: url.to_owned() }),
    }
}

fn authorization_url(
    metadata: &Metadata,
    client: &RegisteredClient,
    secrets: &LoginSecrets,
    listener: &Listener,
    scope: &str,
    server: &OauthServer,
) -> String {
    let challenge = secrets.challenge();
    let mut fields = vec![
        ("response_type", "code"),
        ("client_id", &client.client_id),
        ("state", &secrets.state),
        ("code_challenge", &challenge),
        ("code_challenge_method", "S256"),
        ("redirect_uri", &listener.redirect_uri),
    ];
    if !scope.is_empty() {
        fields.push(("scope", scope));
    }
    if let Some(resource) = &server.resource {
        fields.push(("resource", resource));
    }
    // An endpoint may have a query of its own, but no fragment.
    let endpoint = metadata.authorization_endpoint.split('#').next().unwrap_or_default();
    let separator = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{separator}{}", encoded(fields))
}

/// The one owner of a login's state while the browser is away.
struct PendingLogin {
    oauth: McpOauth,
    server: OauthServer,
    token_endpoint: String,
    client: RegisteredClient,
    secrets: LoginSecrets,
    limit: Duration,
    _permit: OwnedSemaphorePermit,
}

impl PendingLogin {
    /// Serves the callback until something is delivered there or the time is over.
    async fn run(self, listener: Listener) -> Result<(), OauthError> {
        let Listener { listener, redirect_uri, path } = listener;
        let stop = CancellationToken::new();
        let (sender, mut deliveries) = mpsc::channel(1);
        let serve = loomd_oauth::callback::serve(&listener, &stop, move |request| {
            callback::answer(request, path.clone(), sender.clone())
        });
        let login = async {
            let outcome = match timeout(self.limit, deliveries.recv()).await {
                Ok(Some(Delivery { result, page })) => {
                    let outcome = match result {
                        Ok(code) => self.finish(code, &redirect_uri).await,
                        Err(error) => Err(error),
                    };
                    // Before the page is sent, so that a second delivery is refused.
                    drop(deliveries);
                    _ = page.send(outcome_page(&outcome));
                    outcome
                }
                Ok(None) | Err(_) => Err(OauthError::TimedOut),
            };
            stop.cancel();
            outcome
        };
        let ((), outcome) = tokio::join!(serve, login);
        if let Err(OauthError::Callback { detail }) = &outcome {
            tracing::warn!(server = self.server.name, detail, "an OAuth login failed");
        }
        outcome
    }

    /// Exchanges the code and stores the tokens.
    async fn finish(&self, code: Code, redirect_uri: &str) -> Result<(), OauthError> {
        if code.state != self.secrets.state {
            return Err(OauthError::Callback { detail: "the state is not the one of this login".into() });
        }
        let mut grant = vec![
            ("grant_type", "authorization_code"),
            ("code", &code.code),
            ("code_verifier", &self.secrets.verifier),
            ("redirect_uri", redirect_uri),
        ];
        if let Some(resource) = &self.server.resource {
            grant.push(("resource", resource));
        }
        let granted = self.oauth.0.issuers.token(&self.token_endpoint, &self.client, &grant).await;
        let granted = granted.map_err(|error| match error {
            TokenError::Refused(detail) | TokenError::Failed(detail) => OauthError::Callback { detail },
        })?;
        let method = self.client.token_endpoint_auth_method.clone();
        let tokens = Tokens {
            server_name: self.server.name.clone(),
            server_url: self.server.url.clone(),
            client_id: self.client.client_id.clone(),
            client_secret: self.client.client_secret.clone(),
            token_endpoint_auth_method: self.client.client_secret.as_ref().and(method),
            scopes: granted.scopes().unwrap_or_default(),
            expires_at: granted.expires_at(),
            access_token: granted.access_token,
            refresh_token: granted.refresh_token,
        };
        Ok(self.oauth.0.store.save(&self.server.key(), tokens).await?)
    }
}

fn outcome_page(outcome: &Result<(), OauthError>) -> Page {
    match outcome {
        Ok(()) => plain(StatusCode::OK, "Authentication complete. You may close this window."),
        Err(error @ OauthError::Callback { detail }) => {
            plain(StatusCode::BAD_REQUEST, &format!("Authentication failed: {error}: {detail}"))
        }
        Err(error @ OauthError::Provider { .. }) => plain(StatusCode::BAD_REQUEST, &error.to_string()),
        Err(error) => plain(StatusCode::INTERNAL_SERVER_ERROR, &format!("Authentication failed: {error}")),
    }
}
