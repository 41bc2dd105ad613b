//! One HTTP request to a provider, for every wire: its credentials, and its retries before the response begins.

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
use crate::{CallHeaders, Identity, ModelError, Provider, TraceHeaders};

/// How many bytes of an error response's body are read.
const MAX_REFUSAL: usize = 64 * 1024;
/// How long reading that body may take.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(10);
/// How often an unreachable address is retried: a server that restarts may be back within a second.
const UNREACHABLE_RETRIES: u64 = 2;
/// Higher levels cost time and save little.
const ZSTD_LEVEL: i32 = 3;

/// The provider to call, the connections to call it over, and the identity to send.
pub(crate) struct Caller {
    pub provider: Arc<Provider>,
    pub http: Arc<Http>,
    pub identity: Identity,
}

/// One request, independent of credentials.
pub(crate) struct Call {
    pub method: Method,
    pub route: &'static str,
    pub accept: &'static str,
    /// Headers of the wire. [`Caller`] adds those that every request carries.
    pub headers: HeaderMap,
    pub body: Bytes,
    /// Maps an error response of this route.
    pub to_error: fn(&Refusal<'_>) -> ModelError,
}

/// A response with a success status, and the URL that it came from, without its query.
pub(crate) struct CallResponse {
    pub answer: HttpResponse,
    pub url: String,
}

impl Caller {
    /// Sends a request until it succeeds, fails for good, or runs out of retries. A 401 is retried as long as
    /// [`Credentials::recover`](crate::Credentials::recover) returns true.
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
                    // A longer wait is left to the caller, which can show it to the user.
                    let soon = retry_after.is_none_or(|delay| delay <= MAX_DELAY);
                    if !(may_retry && soon && answer.status.is_server_error()) {
                        return Err(refusal(answer, &url, call.to_error).await);
                    }
                    retry_after
                }
                // A timeout is not retried here: after such a wait the caller has to report it first.
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
            url.parse().map_err(|error| ModelError::Unsupported(format!("invalid value for `base_url`: {error}")))?;
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

    /// Inserts the bearer token, then the provider's configured headers, which override it.
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

/// Reads the body of an error response, up to the limits, and maps it.
async fn refusal(answer: HttpResponse, url: &str, to_error: fn(&Refusal<'_>) -> ModelError) -> ModelError {
    let body = tokio::time::timeout(REFUSAL_TIMEOUT, answer.body.read(MAX_REFUSAL)).await;
    let body = body.ok().and_then(Result::ok).unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    to_error(&Refusal { status: answer.status, headers: &answer.headers, body: &body, url })
}

/// The headers of a call's place in a trace.
pub(crate) fn trace_headers(call: &CallHeaders) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if let Some(TraceHeaders { traceparent, tracestate }) = &call.trace {
        insert(&mut headers, HeaderName::from_static("traceparent"), traceparent);
        insert(&mut headers, HeaderName::from_static("tracestate"), tracestate.as_deref().unwrap_or_default());
    }
    headers
}

/// Inserts a header unless its value is empty or not valid in HTTP.
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
