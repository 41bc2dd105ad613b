//! One request over HTTP: its credentials, and the tries that it gets before its answer begins. The same for
//! every wire.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT};
use hyper::{HeaderMap, Method, Request as HttpRequest, StatusCode};

use crate::credentials::{Bearer, BearerKind};
use crate::http::{Http, HttpError, HttpResponse};
use crate::refusal::Refusal;
use crate::retry::{MAX_DELAY, retry_after_header, retry_delay};
use crate::{Identity, ModelError, Provider};

/// How much of the body of a refusal is read.
const MAX_REFUSAL: usize = 64 * 1024;
/// And for how long.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an address where nobody listens is tried again: a server that restarts may be back within a second.
const UNREACHABLE_RETRIES: u64 = 2;
/// Fast, and most of what there is to win.
const ZSTD_LEVEL: i32 = 3;

/// Who calls whom.
pub(crate) struct Caller {
    pub provider: Arc<Provider>,
    pub http: Arc<Http>,
    pub identity: Identity,
}

/// What is retry_after of the provider.
pub(crate) struct Call {
    pub method: Method,
    pub route: &'static str,
    pub accept: &'static str,
    /// Those of the wire; what every request has comes on top.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// What an answer that is no success means.
    pub to_error: fn(&Refusal<'_>) -> ModelError,
}

/// A success, and the address that it came from.
pub(crate) struct CallResponse {
    pub answer: HttpResponse,
    pub url: String,
}

impl Caller {
    /// Sends a request until it is answered with success, or there is no use in trying.
    pub async fn call(&self, call: &Call) -> Result<CallResponse, ModelError> {
        let (mut retries, mut refusals) = (0, 0);
        loop {
            let bearer = self.provider.credentials().bearer().await?;
            let (url, query) = self.provider.url(call.route, bearer.as_ref());
            let request = self.http_request(call, bearer.as_ref(), &format!("{url}{query}"))?;
            let may_retry = retries < self.provider.request_max_retries();
            let retry_after = match self.http.send(request, self.provider.stream_idle_timeout()).await {
                Ok(answer) if answer.status.is_success() => return Ok(CallResponse { answer, url }),
                Ok(answer) => {
                    if answer.status == StatusCode::UNAUTHORIZED
                        && let Some(bearer) = &bearer
                    {
                        refusals += 1;
                        if self.provider.credentials().recover(bearer, refusals).await? {
                            continue;
                        }
                    }
                    let retry_after = retry_after_header(&answer.headers, SystemTime::now());
                    // A longer wait is for the caller, who can tell the user about it.
                    let soon = retry_after.is_none_or(|delay| delay <= MAX_DELAY);
                    if !(may_retry && soon && answer.status.is_server_error()) {
                        return Err(refusal(answer, &url, call.to_error).await);
                    }
                    retry_after
                }
                // Whoever waited that long should be told before it is tried again.
                Err(error @ HttpError::Timeout(_)) => {
                    return Err(ModelError::disconnected(format!("idle timeout: {error}, url: {url}")));
                }
                Err(error @ HttpError::Unreachable(_)) if retries >= UNREACHABLE_RETRIES => {
                    return Err(ModelError::unanswered(url, error));
                }
                Err(error) if !may_retry => return Err(ModelError::unanswered(url, error)),
                Err(_) => None,
            };
            retries += 1;
            tokio::time::sleep(retry_after.unwrap_or_else(|| retry_delay(retries))).await;
        }
    }

    fn http_request(
        &self,
        call: &Call,
        bearer: Option<&Bearer>,
        url: &str,
    ) -> Result<HttpRequest<Full<Bytes>>, ModelError> {
        let mut request = HttpRequest::new(Full::default());
        *request.method_mut() = call.method.clone();
        *request.uri_mut() =
            url.parse().map_err(|error| ModelError::Unsupported(format!("bad `base_url`: {error}")))?;
        let headers = request.headers_mut();
        if !call.body.is_empty() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        headers.insert(ACCEPT, HeaderValue::from_static(call.accept));
        insert(headers, USER_AGENT, &self.identity.user_agent);
        headers.extend(call.headers.clone());
        self.push_credentials(headers, bearer);
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

    /// The bearer, and the headers of the configuration, which have the last word.
    pub fn push_credentials(&self, headers: &mut HeaderMap, bearer: Option<&Bearer>) {
        if let Some(bearer) = bearer {
            insert_secret(headers, AUTHORIZATION, &format!("Bearer {}", bearer.token.reveal()));
            if let BearerKind::Chatgpt { account_id: Some(account) } = &bearer.kind {
                insert_secret(headers, HeaderName::from_static("chatgpt-account-id"), account);
            }
        }
        for (name, value) in self.provider.headers() {
            headers.insert(name, value.clone());
        }
    }
}

/// What a refusal means, when its body has been read as far as it can be.
async fn refusal(answer: HttpResponse, url: &str, to_error: fn(&Refusal<'_>) -> ModelError) -> ModelError {
    let body = tokio::time::timeout(REFUSAL_TIMEOUT, answer.body.read(MAX_REFUSAL)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    to_error(&Refusal { status: answer.status, headers: &answer.headers, body: &body, url })
}

/// Leaves out what HTTP cannot carry.
pub(crate) fn insert(headers: &mut HeaderMap, name: HeaderName, value: &str) {
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
