//! What an organisation requires of its members: fetched when the server starts and again from time to time,
//! for those whose plan has it. Without the answer nothing runs: fail closed.

mod cache;
mod http;
mod sign_in;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use loomd_config::CloudError;
use serde::Deserialize;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::App;
use http::HttpError;
use sign_in::Member;

/// For everything together, so that nobody waits longer for a server to start.
const PATIENCE: Duration = Duration::from_secs(15);
const ATTEMPTS: u32 = 5;
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// How often requirements are looked up again.
const REFRESH_EVERY: Duration = Duration::from_secs(5 * 60);

/// Where requirements come from: a backend, for the member that is signed in.
#[derive(Clone, Debug)]
pub struct Cloud {
    home: PathBuf,
    base_url: String,
}

impl Cloud {
    pub fn new(home: &Path, base_url: &str) -> Self {
        Self { home: home.into(), base_url: base_url.into() }
    }

    /// Whether there is somebody to ask for. Cheap: most people are not members of an organisation.
    pub fn applies(&self) -> bool {
        Member::signed_in(&self.home).is_some()
    }

    /// The text of a `requirements.toml`; `None` where nothing is required. What was fetched lately is used
    /// again.
    pub async fn load(&self) -> Result<Option<String>, CloudError> {
        let Some(member) = Member::signed_in(&self.home) else { return Ok(None) };
        match cache::read(&self.home, &member) {
            Some(contents) => Ok(contents),
            None => self.fetch(&member).await,
        }
    }

    /// Keeps a running server up to date. What cannot be fetched leaves things as they are.
    pub async fn keep_up(self, app: Arc<App>) {
        loop {
            sleep(REFRESH_EVERY).await;
            let Some(member) = Member::signed_in(&self.home) else { continue };
            match self.fetch(&member).await {
                Ok(contents) => app.sources.live.managed.set(Ok(contents)),
                Err(error) => warn!(code = error.code, detail = error.detail, "cannot refresh managed requirements"),
            }
        }
    }

    async fn fetch(&self, member: &Member) -> Result<Option<String>, CloudError> {
        let contents = match timeout(PATIENCE, self.try_often(member)).await {
            Ok(contents) => contents?,
            Err(_) => return Err(error("Timeout", "the backend did not answer in time", None)),
        };
        let is_valid = contents.as_deref().is_none_or(|text| loomd_config::check_requirements(text).is_ok());
        if is_valid && let Err(error) = cache::write(&self.home, member, contents.as_deref()) {
            info!(%error, "cannot keep managed requirements");
        }
        Ok(contents)
    }

    async fn try_often(&self, member: &Member) -> Result<Option<String>, CloudError> {
        let mut pause = FIRST_PAUSE;
        for attempt in 1.. {
            match self.ask(member).await {
                // Asking again would not help.
                Err(error) if error.code == "RequestFailed" && attempt < ATTEMPTS => {
                    sleep(pause).await;
                    pause *= 2;
                }
                answer => return answer,
            }
        }
        Err(error("Internal", "no attempt was made", None))
    }

    async fn ask(&self, member: &Member) -> Result<Option<String>, CloudError> {
        #[derive(Deserialize)]
        struct Answer {
            contents: Option<String>,
        }

        let headers = [
            ("authorization", format!("Bearer {}", member.access_token)),
            ("chatgpt-account-id", member.account.clone()),
        ];
        let (status, body) = http::get(&self.url(), &headers).await.map_err(|failure| match failure {
            HttpError::Url(reason) => error("Internal", &reason, None),
            other => error("RequestFailed", &other.to_string(), None),
        })?;
        match status {
            200..300 => serde_json::from_slice::<Answer>(&body)
                .map(|answer| answer.contents)
                .map_err(|failure| error("Parse", &failure.to_string(), Some(status))),
            401 => Err(error("Auth", "the backend does not accept the sign-in", Some(status))),
            _ => Err(error("RequestFailed", &format!("the backend answered {status}"), Some(status))),
        }
    }

    fn url(&self) -> String {
        let base = self.base_url.trim_end_matches('/');
        let path =
            if base.contains("/backend-api") { "wham/config/requirements" } else { "api/codex/config/requirements" };
        format!("{base}/{path}")
    }
}

fn error(code: &'static str, detail: &str, status: Option<u16>) -> CloudError {
    CloudError { code, detail: detail.to_owned(), status }
}

#[cfg(test)]
mod tests;
