//! What the user's account says about plugins: `<chatgpt_base_url>/plugins/*`. Nothing is asked without a ChatGPT
//! account.

use std::time::{Duration, Instant};

use hyper::Method;
use loomd_accounts::{Accounts, BackendError, BackendResponse};
use loomd_plugins::PluginId;
use loomd_protocol::AuthMode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::Plugins;

const LIST_TIMEOUT: Duration = Duration::from_secs(30);
const MUTATION_TIMEOUT: Duration = Duration::from_secs(30);
const FEATURED_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the featured plugins are kept.
const FEATURED_AGE: Duration = Duration::from_secs(3 * 60 * 60);
/// Featured plugins that are passed on.
const MAX_FEATURED: usize = 1000;
/// Characters of a response that an error quotes.
const MAX_QUOTED: usize = 500;

/// Why the account could not be asked, or what was wrong with its answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RemoteError {
    #[error("chatgpt authentication required {purpose}")]
    SignedOut { purpose: &'static str },
    #[error("chatgpt authentication required {purpose}; api key auth is not supported")]
    ApiKey { purpose: &'static str },
    #[error("{0}")]
    Other(String),
}

/// A plugin of the account.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(super) struct RemotePlugin {
    pub name: String,
    /// The curated one if it is missing.
    #[serde(default)]
    pub marketplace_name: Option<String>,
    pub enabled: bool,
}

#[derive(Deserialize)]
struct Mutated {
    id: String,
    enabled: bool,
}

impl Plugins {
    /// Enables a plugin in the account.
    pub async fn enable_remote(&self, accounts: &Accounts, id: &PluginId) -> Result<(), RemoteError> {
        mutate(accounts, id, "enable", true).await
    }

    /// Removes a plugin from the account.
    pub async fn uninstall_remote(&self, accounts: &Accounts, id: &PluginId) -> Result<(), RemoteError> {
        mutate(accounts, id, "uninstall", false).await
    }

    /// The ids of featured plugins; none when they cannot be fetched.
    pub async fn featured(&self, accounts: &Accounts) -> Vec<String> {
        if let Some((fetched, ids)) = &*self.featured.lock()
            && fetched.elapsed() < FEATURED_AGE
        {
            return ids.clone();
        }
        if !super::is_chatgpt(accounts) {
            return Vec::new();
        }
        let fetched = accounts.request_backend(Method::GET, "plugins/featured?platform=codex", FEATURED_TIMEOUT).await;
        let ids = fetched.map_err(|error| error.to_string()).and_then(|answer| {
            let status = answer.response.status();
            if !status.is_success() {
                return Err(format!("status {status}"));
            }
            serde_json::from_slice::<Vec<String>>(answer.response.body()).map_err(|error| error.to_string())
        });
        match ids {
            Ok(mut ids) => {
                ids.truncate(MAX_FEATURED);
                *self.featured.lock() = Some((Instant::now(), ids.clone()));
                ids
            }
            Err(error) => {
                tracing::debug!(%error, "cannot fetch the featured plugins");
                Vec::new()
            }
        }
    }
}

/// Fetches the plugins of the account.
pub(super) async fn list(accounts: &Accounts) -> Result<Vec<RemotePlugin>, RemoteError> {
    check_account(accounts, "to sync remote plugins")?;
    let sent = accounts.request_backend(Method::GET, "plugins/list", LIST_TIMEOUT).await;
    let BackendResponse { url, response } = sent.map_err(|error| unsent(&error))?;
    let status = response.status();
    if !status.is_success() {
        let body = quoted(response.body());
        return Err(RemoteError::Other(format!(
            "remote plugin sync request to {url} failed with status {status}: {body}"
        )));
    }
    decode(response.body(), &format!("failed to parse remote plugin sync response from {url}"))
}

async fn mutate(accounts: &Accounts, id: &PluginId, action: &str, enabled: bool) -> Result<(), RemoteError> {
    check_account(accounts, "for remote plugin mutation")?;
    let path = format!("plugins/{id}/{action}");
    let sent = accounts.request_backend(Method::POST, &path, MUTATION_TIMEOUT).await;
    let BackendResponse { url, response } = sent.map_err(|error| unsent(&error))?;
    let status = response.status();
    if !status.is_success() {
        let body = quoted(response.body());
        return Err(RemoteError::Other(format!(
            "remote plugin mutation failed with status {status} from {url}: {body}"
        )));
    }
    let answer: Mutated =
        decode(response.body(), &format!("failed to parse remote plugin mutation response from {url}"))?;
    if answer.id != id.to_string() {
        return Err(RemoteError::Other(format!(
            "remote plugin mutation returned unexpected plugin id: expected `{id}`, got `{}`",
            answer.id
        )));
    }
    if answer.enabled != enabled {
        return Err(RemoteError::Other(format!(
            "remote plugin mutation returned unexpected enabled state for `{id}`: expected {enabled}, got {}",
            answer.enabled
        )));
    }
    Ok(())
}

fn check_account(accounts: &Accounts, purpose: &'static str) -> Result<(), RemoteError> {
    match accounts.auth_mode() {
        None => Err(RemoteError::SignedOut { purpose }),
        Some(AuthMode::Apikey) => Err(RemoteError::ApiKey { purpose }),
        Some(_) => Ok(()),
    }
}

fn decode<T: DeserializeOwned>(body: &[u8], failure: &str) -> Result<T, RemoteError> {
    serde_json::from_slice(body).map_err(|error| RemoteError::Other(format!("{failure}: {error}")))
}

fn unsent(error: &BackendError) -> RemoteError {
    RemoteError::Other(format!("failed to send the request: {error}"))
}

fn quoted(body: &[u8]) -> String {
    String::from_utf8_lossy(body).chars().take(MAX_QUOTED).collect()
}
