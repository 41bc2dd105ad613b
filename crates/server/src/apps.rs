//! The signed-in account, as apps and their MCP server see it.

use std::sync::Arc;
use std::time::Duration;

use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue};
use loomd_accounts::Accounts;
use loomd_apps::{Account, AppLists, AppsAccount, Backend, BackendResponse, BoxFuture};
use loomd_mcp::{Credentials, CredentialsError, HttpServer};
use loomd_model::{Bearer, Credentials as _};
use loomd_protocol::{AppInfo, McpAuthStatus, PlanType};
use parking_lot::Mutex;

/// How long one page of the directory may take.
const PAGE: Duration = Duration::from_secs(60);

/// The account.
pub(crate) struct AppsOfAccount {
    accounts: Accounts,
    /// The token of the last request to the MCP server, and how often it was refused.
    last: Mutex<Option<(Bearer, u32)>>,
    pub lists: AppLists,
}

impl AppsOfAccount {
    pub fn new(accounts: Accounts) -> Self {
        Self { accounts, last: Mutex::default(), lists: AppLists::default() }
    }
}

impl AppsAccount for AppsOfAccount {
    fn account(&self) -> Option<Account> {
        let account = self.accounts.chatgpt_account()?;
        Some(Account {
            account_id: account.account_id,
            chatgpt_user_id: account.user_id,
            is_workspace_account: is_workspace(&account.plan),
        })
    }

    fn known_directory(&self) -> Option<Arc<[AppInfo]>> {
        self.lists.known_directory(&self.account()?)
    }

    fn directory(&self) -> BoxFuture<'_, Option<Arc<[AppInfo]>>> {
        Box::pin(async {
            let loaded = self.lists.directory(&self.account()?, self).await;
            loaded.inspect_err(|error| tracing::warn!(%error, "the directory of apps could not be loaded")).ok()
        })
    }
}

/// Whether a plan is that of an organisation.
fn is_workspace(plan: &PlanType) -> bool {
    use PlanType::*;
    !matches!(plan, Free | Go | Plus | Pro | Unknown)
}

impl Backend for AppsOfAccount {
    fn get<'a>(&'a self, path: &'a str) -> BoxFuture<'a, Result<BackendResponse, String>> {
        Box::pin(async move {
            let fetched = self
                .accounts
                .fetch_backend_list(path.trim_start_matches('/'), PAGE)
                .await
                .map_err(|error| error.to_string())?;
            let (head, body) = fetched.response.into_parts();
            Ok(BackendResponse {
                status: head.status.as_u16(),
                status_text: head.status.to_string(),
                body: body.into(),
            })
        })
    }
}

impl Credentials for AppsOfAccount {
    fn authorize<'a>(
        &'a self,
        _: &'a str,
        _: &'a HttpServer,
    ) -> BoxFuture<'a, Result<Vec<(HeaderName, HeaderValue)>, CredentialsError>> {
        Box::pin(async move {
            let bearer = self.accounts.bearer().await.map_err(|error| CredentialsError::Failed(error.to_string()))?;
            let bearer = bearer.ok_or(CredentialsError::NotLoggedIn)?;
            let secret = |value: &str| {
                let mut value = HeaderValue::from_str(value).map_err(|_| {
                    CredentialsError::Failed("the credentials contain characters that a header cannot".into())
                })?;
                value.set_sensitive(true);
                Ok(value)
            };
            // The id of the account is a header of the server's configuration.
            let headers = vec![(AUTHORIZATION, secret(&format!("Bearer {}", bearer.token.reveal()))?)];
            let mut last = self.last.lock();
            if last.as_ref().is_none_or(|(known, _)| *known != bearer) {
                *last = Some((bearer, 0));
            }
            Ok(headers)
        })
    }

    fn recover<'a>(&'a self, _: &'a str, _: &'a HttpServer) -> BoxFuture<'a, bool> {
        Box::pin(async move {
            let refused = {
                let mut last = self.last.lock();
                let Some((bearer, refusals)) = last.as_mut() else { return false };
                *refusals += 1;
                (bearer.clone(), *refusals)
            };
            self.accounts.recover(&refused.0, refused.1).await.unwrap_or(false)
        })
    }

    fn status<'a>(&'a self, _: &'a str, _: &'a HttpServer) -> BoxFuture<'a, McpAuthStatus> {
        let signed_in = self.accounts.chatgpt_account().is_some();
        Box::pin(std::future::ready(if signed_in { McpAuthStatus::BearerToken } else { McpAuthStatus::NotLoggedIn }))
    }
}
