//! The token of the next request, refreshed before it expires. A refresh token can often be spent only once, so a server's
//! refreshes are made one at a time, in this process and among programs of this kind.

use std::sync::Arc;

use loomd_protocol::Secret;
use parking_lot::Mutex;

use crate::authorization_server::{RegisteredClient, TokenError};
use crate::discovery::acceptable;
use crate::tokens::Tokens;
use crate::{McpOauth, OauthError, OauthServer};

/// How many servers have a state here; above it, those without a refresh in progress are dropped.
const MAX_SERVERS: usize = 256;

/// The refreshes of one server.
#[derive(Default)]
pub(crate) struct Refreshes {
    in_progress: tokio::sync::Mutex<()>,
    state: Mutex<RefreshState>,
}

#[derive(Default)]
struct RefreshState {
    /// The last access token that was handed out.
    last: Option<Secret>,
    /// A refresh token that the authorization server no longer accepts, and what it said.
    refused: Option<(Secret, String)>,
}

/// Why tokens are refreshed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The access token is about to expire.
    Stale,
    /// The server has rejected the access token.
    Rejected,
}

impl McpOauth {
    /// Returns the access token for the next request to a server; `None` if there is no login. A token that is about to
    /// expire is refreshed; if that fails it is used for as long as it is valid.
    pub async fn bearer(&self, server: &OauthServer) -> Result<Option<Secret>, OauthError> {
        let Some(tokens) = self.0.store.load(&server.key()).await? else { return Ok(None) };
        let token = if tokens.is_stale() {
            let expired = tokens.is_expired();
            match self.refresh(server, &tokens, Why::Stale).await {
                Ok(refreshed) => refreshed.map(|tokens| tokens.access_token),
                Err(error) if !expired => {
                    tracing::warn!(server = server.name, %error, "using a token that is about to expire");
                    Some(tokens.access_token)
                }
                Err(error) => return Err(error),
            }
        } else {
            Some(tokens.access_token)
        };
        self.refreshes(server).state.lock().last.clone_from(&token);
        Ok(token)
    }

    /// Called after a server has rejected the token that [`bearer`](Self::bearer) returned last. Returns whether there is
    /// another one now.
    pub async fn recover(&self, server: &OauthServer) -> bool {
        let Ok(Some(tokens)) = self.0.store.load(&server.key()).await else { return false };
        let rejected = self.refreshes(server).state.lock().last.clone();
        if rejected.as_ref() != Some(&tokens.access_token) {
            return true;
        }
        match self.refresh(server, &tokens, Why::Rejected).await {
            Ok(refreshed) => refreshed.is_some_and(|refreshed| refreshed.access_token != tokens.access_token),
            Err(error) => {
                tracing::warn!(server = server.name, %error, "a rejected token could not be refreshed");
                false
            }
        }
    }

    /// Whether a stored login is of no use any more: expired, and not to be refreshed.
    pub(crate) fn is_refused(&self, server: &OauthServer, tokens: &Tokens) -> bool {
        let refreshes = self.refreshes(server);
        let state = refreshes.state.lock();
        let refused = state.refused.as_ref().map(|(token, _)| token);
        tokens.is_expired() && refused.is_some() && refused == tokens.refresh_token.as_ref()
    }

    /// Replaces `old` by newer tokens: those that another refresh or login has stored meanwhile, or those of a refresh.
    /// Returns `old` if it cannot be refreshed at all, and `None` after a logout.
    ///
    /// Runs to its end even if the future is dropped: a refresh token that was spent must not be lost with its answer.
    async fn refresh(&self, server: &OauthServer, old: &Tokens, why: Why) -> Result<Option<Tokens>, OauthError> {
        let (oauth, server, old) = (self.clone(), server.clone(), old.access_token.clone());
        let refreshed = tokio::spawn(async move { oauth.refresh_in_turn(&server, &old, why).await }).await;
        refreshed.unwrap_or_else(|error| Err(OauthError::Refresh(error.to_string())))
    }

    async fn refresh_in_turn(
        &self,
        server: &OauthServer,
        old: &Secret,
        why: Why,
    ) -> Result<Option<Tokens>, OauthError> {
        let (key, refreshes) = (server.key(), self.refreshes(server));
        let _turn = refreshes.in_progress.lock().await;
        let _lock = self.0.store.lock_refresh(&key).await;
        let Some(tokens) = self.0.store.load(&key).await? else { return Ok(None) };
        if tokens.access_token != *old || (why == Why::Stale && !tokens.is_stale()) {
            return Ok(Some(tokens));
        }
        let Some(refresh_token) = tokens.refresh_token.clone() else { return Ok(Some(tokens)) };
        if let Some((refused, why)) = &refreshes.state.lock().refused
            && *refused == refresh_token
        {
            return Err(OauthError::Refused(why.clone()));
        }
        let found = self.0.issuers.discover(server).await?;
        let metadata = found.ok_or_else(|| OauthError::Refresh(OauthError::Unsupported.to_string()))?;
        if acceptable(&metadata.token_endpoint, server).is_none() {
            return Err(OauthError::Endpoint { field: "token_endpoint", url: metadata.token_endpoint });
        }
        let client = RegisteredClient {
            client_id: tokens.client_id.clone(),
            client_secret: tokens.client_secret.clone(),
            token_endpoint_auth_method: tokens.token_endpoint_auth_method.clone(),
        };
        let mut grant = vec![("grant_type", "refresh_token"), ("refresh_token", refresh_token.reveal())];
        if let Some(resource) = &server.resource {
            grant.push(("resource", resource));
        }
        match self.0.issuers.token(&metadata.token_endpoint, &client, &grant).await {
            Ok(response) => {
                let tokens = tokens.refreshed(response);
                self.0.store.save_refreshed(&key, Some(refresh_token.clone()), tokens.clone()).await;
                Ok(Some(tokens))
            }
            Err(TokenError::Refused(why)) => {
                refreshes.state.lock().refused = Some((refresh_token, why.clone()));
                Err(OauthError::Refused(why))
            }
            Err(TokenError::Failed(why)) => Err(OauthError::Refresh(why)),
        }
    }

    fn refreshes(&self, server: &OauthServer) -> Arc<Refreshes> {
        let mut all = self.0.refreshes.lock();
        if all.len() >= MAX_SERVERS {
            all.retain(|_, refreshes| Arc::strong_count(refreshes) > 1);
        }
        Arc::clone(all.entry(server.key()).or_default())
    }
}
