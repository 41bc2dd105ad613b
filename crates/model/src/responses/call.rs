//! One request over HTTP: its headers, and the tries that it gets before its answer begins.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request as HttpRequest, StatusCode};

use super::Responses;
use super::refusal::Refusal;
use crate::credentials::{Bearer, BearerKind};
use crate::http::{Answer, HttpError};
use crate::retry::{MAX_DELAY, asked_by_header, retry_delay};
use crate::{CallHeaders, ModelError};

/// How much of the body of a refusal is read.
const MAX_REFUSAL: usize = 64 * 1024;
/// And for how long.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// Fast, and most of what there is to win.
const ZSTD_LEVEL: i32 = 3;

/// What is asked of the provider.
pub(super) struct Call<'a> {
    pub route: &'static str,
    pub accept: &'static str,
    pub headers: &'a CallHeaders,
    pub body: Bytes,
}

/// A success, and the address that it came from.
pub(super) struct Called {
    pub answer: Answer,
    pub url: String,
}

impl Responses {
    /// Sends a request until it is answered with success, or there is no use in trying.
    pub(super) async fn call(&self, call: &Call<'_>) -> Result<Called, ModelError> {
        let (mut retries, mut refusals) = (0, 0);
        loop {
            let bearer = self.provider.credentials().bearer().await?;
            let (url, query) = self.provider.url(call.route, bearer.as_ref());
            let request = self.http_request(call, bearer.as_ref(), &format!("{url}{query}"))?;
            let may_retry = retries < self.provider.request_max_retries();
            let asked = match self.http.send(request, self.provider.headers_timeout()).await {
                Ok(answer) if answer.status.is_success() => return Ok(Called { answer, url }),
                Ok(answer) => {
                    if answer.status == StatusCode::UNAUTHORIZED
                        && let Some(bearer) = &bearer
                    {
                        refusals += 1;
                        if self.provider.credentials().recover(bearer, refusals).await? {
                            continue;
                        }
                    }
                    let asked = asked_by_header(&answer.headers, SystemTime::now());
                    // A longer wait is for the caller, who can tell the user about it.
                    let soon = asked.is_none_or(|delay| delay <= MAX_DELAY);
                    if !(may_retry && soon && answer.status.is_server_error()) {
                        return Err(refusal(answer, &url).await);
                    }
                    asked
                }
                // Whoever waited that long should be told before it is tried again.
                Err(error @ HttpError::Timeout(_)) => return Err(ModelError::disconnected(error.to_string())),
                Err(error) if !may_retry => return Err(ModelError::Connect { url, cause: error.to_string() }),
                Err(_) => None,
            };
            retries += 1;
            tokio::time::sleep(asked.unwrap_or_else(|| retry_delay(retries))).await;
        }
    }

    fn http_request(
        &self,
        call: &Call<'_>,
        bearer: Option<&Bearer>,
        url: &str,
    ) -> Result<HttpRequest<Full<Bytes>>, ModelError> {
        let mut request = HttpRequest::new(Full::default());
        *request.method_mut() = Method::POST;
        *request.uri_mut() =
            url.parse().map_err(|error| ModelError::Unsupported(format!("bad `base_url`: {error}")))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static(call.accept));
        insert(headers, USER_AGENT, &self.identity.user_agent);
        self.push_headers(headers, call.headers, bearer);
        let mut body = call.body.clone();
        if self.provider.is_openai()
            && bearer.is_some_and(Bearer::is_chatgpt)
            && let Ok(compressed) = zstd::bulk::compress(&body, ZSTD_LEVEL)
        {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("zstd"));
            body = compressed.into();
        }
        *request.body_mut() = Full::new(body);
        Ok(request)
    }

    /// The headers that a websocket is opened with, too. Those of the configuration have the last word.
    pub(super) fn push_headers(&self, headers: &mut HeaderMap, call: &CallHeaders, bearer: Option<&Bearer>) {
        let name = HeaderName::from_static;
        insert(headers, name("originator"), &self.identity.originator);
        insert(headers, name("session_id"), &call.session_id);
        insert(headers, name("x-client-request-id"), &call.session_id);
        for (name, value) in [
            (name("x-codex-turn-metadata"), &call.turn_metadata),
            (name("x-codex-turn-state"), &call.turn_state),
            (name("x-codex-beta-features"), &call.beta_features),
            (name("x-openai-subagent"), &call.subagent),
        ] {
            if let Some(value) = value {
                insert(headers, name, value);
            }
        }
        if self.provider.is_openai() {
            insert(headers, name("version"), &self.identity.version);
        }
        if let Some(bearer) = bearer {
            insert_secret(headers, AUTHORIZATION, &format!("Bearer {}", bearer.token.reveal()));
            if let BearerKind::Chatgpt { account_id: Some(account) } = &bearer.kind {
                insert_secret(headers, name("chatgpt-account-id"), account);
            }
        }
        for (name, value) in self.provider.headers() {
            headers.insert(name, value.clone());
        }
    }
}

/// What a refusal means, when its body has been read as far as it can be.
pub(super) async fn refusal(answer: Answer, url: &str) -> ModelError {
    let body = tokio::time::timeout(REFUSAL_TIMEOUT, answer.body.read(MAX_REFUSAL)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    Refusal { status: answer.status, headers: &answer.headers, body: &String::from_utf8_lossy(&body), url }.into()
}

/// Leaves out what HTTP cannot carry.
fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_bytes(value.as_bytes())
        && !value.is_empty()
    {
        headers.insert(name, value);
    }
}

fn insert_secret(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    if let Ok(mut value) = HeaderValue::from_bytes(value.as_bytes()) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
}
