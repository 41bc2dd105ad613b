//! The managed requirements of an organisation: fetched when the server starts and every few minutes, for accounts
//! whose plan has them. Fails closed: without them no thread is opened.

mod cache;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loomd_accounts::{Accounts, BackendError, Member};
use loomd_config::{CloudError, ManagedRequirements};
use loomd_model::ModelError;
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

/// The deadline of all attempts together; the start of the server waits for them.
const FETCH_TIMEOUT: Duration = Duration::from_secs(15);
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// How often requirements are looked up again.
const REFRESH_EVERY: Duration = Duration::from_secs(5 * 60);

/// The backend that serves the requirements of the signed-in member.
pub(crate) struct Cloud {
    home: PathBuf,
    accounts: Accounts,
}

impl Cloud {
    pub(crate) fn new(home: &Path, accounts: &Accounts) -> Self {
        Self { home: home.into(), accounts: accounts.clone() }
    }

    /// Looks up the requirements before the server serves clients, and refreshes them in the background.
    pub async fn begin(home: &Path, accounts: &Accounts, managed: &Arc<ManagedRequirements>) {
        let cloud = Self::new(home, accounts);
        cloud.look_up(managed).await;
        tokio::spawn(cloud.keep_up(Arc::clone(managed)));
    }

    /// Looks up the requirements of the signed-in account. No request is made for an account without an organisation.
    pub(crate) async fn look_up(&self, managed: &ManagedRequirements) {
        let member = self.accounts.member();
        let found = self.load(member.as_ref()).await;
        // A login meanwhile looks up its own.
        if self.accounts.member() == member {
            managed.set(found);
        }
    }

    /// The text of a `requirements.toml`; `None` where nothing is required. What was fetched lately is used
    /// again.
    async fn load(&self, member: Option<&Member>) -> Result<Option<String>, CloudError> {
        let Some(member) = member else { return Ok(None) };
        match cache::read(&self.home, member) {
            Some(contents) => Ok(contents),
            None => self.fetch(member).await,
        }
    }

    /// Refreshes the requirements for ever. A failed fetch keeps the old ones.
    async fn keep_up(self, managed: Arc<ManagedRequirements>) {
        loop {
            sleep(REFRESH_EVERY).await;
            let Some(member) = self.accounts.member() else { continue };
            match self.fetch(&member).await {
                // Ignored when another account is signed in by now.
                Ok(contents) if self.accounts.member().as_ref() == Some(&member) => managed.set(Ok(contents)),
                Ok(_) => {}
                Err(error) => warn!(code = error.code, detail = error.detail, "cannot refresh managed requirements"),
            }
        }
    }

    async fn fetch(&self, member: &Member) -> Result<Option<String>, CloudError> {
        let contents = match timeout(FETCH_TIMEOUT, self.try_often()).await {
            Ok(contents) => contents?,
            Err(_) => return Err(error("Timeout", "the backend did not answer in time", None)),
        };
        let is_valid = contents.as_deref().is_none_or(|text| loomd_config::check_requirements(text).is_ok());
        if is_valid && let Err(error) = cache::write(&self.home, member, contents.as_deref()) {
            info!(%error, "cannot keep managed requirements");
        }
        Ok(contents)
    }

    async fn try_often(&self) -> Result<Option<String>, CloudError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.request().await {
                // Other errors are permanent.
                Err(error) if error.code == "RequestFailed" && attempt < ATTEMPTS => {
                    sleep(pause).await;
                    pause *= 2;
                }
                answer => return answer,
            }
        }
        Err(error("Internal", "no attempt was made", None))
    }

    async fn request(&self) -> Result<Option<String>, CloudError> {
        #[derive(Deserialize)]
        struct Answer {
            contents: Option<String>,
        }

        let answer =
            self.accounts.fetch_backend("config/requirements", FETCH_TIMEOUT).await.map_err(
                |failure| match &failure {
                    BackendError::Credentials(ModelError::Unauthorized(why)) => error("Auth", why, Some(401)),
                    BackendError::Credentials(_) | BackendError::Http(_) => {
                        error("RequestFailed", &failure.to_string(), None)
                    }
                    BackendError::SignedOut | BackendError::Address(_) => error("Internal", &failure.to_string(), None),
                },
            )?;
        let status = answer.response.status().as_u16();
        match status {
            200..300 => serde_json::from_slice::<Answer>(answer.response.body())
                .map(|answer| answer.contents)
                .map_err(|failure| error("Parse", &failure.to_string(), Some(status))),
            401 => Err(error("Auth", "the backend does not accept the sign-in", Some(status))),
            _ => Err(error("RequestFailed", &format!("the backend answered {status}"), Some(status))),
        }
    }
}

fn error(code: &'static str, detail: &str, status: Option<u16>) -> CloudError {
    CloudError { code, detail: detail.to_owned(), status }
}

#[cfg(test)]
mod tests;
