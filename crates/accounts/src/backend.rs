//! Requests to the ChatGPT backend on behalf of the account. A 401 is recovered from as in a model call.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, AUTHORIZATION, HeaderName, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use loomd_model::{Bearer, BearerKind, Credentials as _, HttpError, ModelError};

use crate::Accounts;

/// Hosts whose backend is below `/backend-api`.
const CHATGPT_HOSTS: [&str; 2] = ["https://chatgpt.com", "https://chat.openai.com"];

/// The largest response, and the largest list.
const MAX_BODY: usize = 1 << 20;
const MAX_LIST: usize = 16 << 20;

#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    #[error("not signed in")]
    SignedOut,
    /// The credentials could not be obtained or renewed.
    #[error("{0}")]
    Credentials(#[from] ModelError),
    #[error("invalid URL {0}")]
    Address(String),
    #[error("{0}")]
    Http(#[from] HttpError),
}

/// A response of any status, and its URL.
pub struct BackendResponse {
    pub url: String,
    pub response: Response<Bytes>,
}

impl Accounts {
    /// Gets a route of the backend, such as `usage`. `limit` applies to each attempt. The response may have an error
    /// status.
    pub async fn fetch_backend(&self, route: &str, limit: Duration) -> Result<BackendResponse, BackendError> {
        self.exchange(Method::GET, backend_url(&self.0.options.backend, route), limit, MAX_BODY).await
    }

    /// Sends a request without a body to a path below the backend's URL as it is configured, such as `plugins/list`.
    pub async fn request_backend(
        &self,
        method: Method,
        path: &str,
        limit: Duration,
    ) -> Result<BackendResponse, BackendError> {
        let url = format!("{}/{path}", self.0.options.backend.trim_end_matches('/'));
        self.exchange(method, url, limit, MAX_BODY).await
    }

    /// Gets a path below the base URL of the backend whose response may be large, such as `connectors/x?y=z`.
    pub async fn fetch_backend_list(&self, path: &str, limit: Duration) -> Result<BackendResponse, BackendError> {
        let url = format!("{}/{path}", backend_base(&self.0.options.backend));
        self.exchange(Method::GET, url, limit, MAX_LIST).await
    }

    /// Whether the backend is the official one, not one that the user has configured.
    pub fn is_official_backend(&self) -> bool {
        let backend = &self.0.options.backend;
        let is_host =
            |host: &str| backend.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
        CHATGPT_HOSTS.iter().any(|host| is_host(host))
    }

    async fn exchange(
        &self,
        method: Method,
        url: String,
        limit: Duration,
        max_body: usize,
    ) -> Result<BackendResponse, BackendError> {
        let mut refusals = 0;
        loop {
            let bearer = self.bearer().await?.ok_or(BackendError::SignedOut)?;
            let request = request(&method, &url, &bearer).ok_or_else(|| BackendError::Address(url.clone()))?;
            let fetch = self.fetch(request, limit, max_body);
            let response = tokio::time::timeout(limit, fetch).await.unwrap_or(Err(HttpError::Timeout(limit)))?;
            if response.status() == StatusCode::UNAUTHORIZED {
                refusals += 1;
                if self.recover(&bearer, refusals).await? {
                    continue;
                }
            }
            return Ok(BackendResponse { url, response });
        }
    }

    async fn fetch(
        &self,
        request: Request<Full<Bytes>>,
        limit: Duration,
        max_body: usize,
    ) -> Result<Response<Bytes>, HttpError> {
        let answer = self.0.http.send(request, limit).await?;
        let mut response = Response::new(Bytes::new());
        (*response.status_mut(), *response.headers_mut()) = (answer.status, answer.headers);
        let body = answer.body.read(max_body + 1).await?;
        if body.len() > max_body {
            return Err(HttpError::Broken(format!("the response is larger than {max_body} bytes")));
        }
        *response.body_mut() = body.into();
        Ok(response)
    }
}

fn request(method: &Method, url: &str, bearer: &Bearer) -> Option<Request<Full<Bytes>>> {
    let secret = |value: &str| {
        let mut value = HeaderValue::from_str(value).ok()?;
        value.set_sensitive(true);
        Some(value)
    };
    let mut request = Request::new(Full::default());
    *request.method_mut() = method.clone();
    *request.uri_mut() = url.parse().ok()?;
    let headers = request.headers_mut();
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(USER_AGENT, HeaderValue::from_static(concat!("loomd/", env!("CARGO_PKG_VERSION"))));
    headers.insert(AUTHORIZATION, secret(&format!("Bearer {}", bearer.token.reveal()))?);
    if let BearerKind::Chatgpt { account_id: Some(account) } = &bearer.kind {
        headers.insert(HeaderName::from_static("chatgpt-account-id"), secret(account)?);
    }
    Some(request)
}

fn backend_base(base: &str) -> String {
    let mut base = base.trim_end_matches('/').to_owned();
    if !base.contains("/backend-api") && CHATGPT_HOSTS.iter().any(|host| base.starts_with(host)) {
        base.push_str("/backend-api");
    }
    base
}

fn backend_url(base: &str, route: &str) -> String {
    let base = backend_base(base);
    let prefix = if base.contains("/backend-api") { "wham" } else { "api/codex" };
    format!("{base}/{prefix}/{route}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_backend_url_depends_on_the_host() {
        for (base, expected) in [
            ("https://chatgpt.com/backend-api/", "https://chatgpt.com/backend-api/wham/usage"),
            ("https://chat.openai.com", "https://chat.openai.com/backend-api/wham/usage"),
            ("http://127.0.0.1:1/backend-api/", "http://127.0.0.1:1/backend-api/wham/usage"),
            ("http://127.0.0.1:1//", "http://127.0.0.1:1/api/codex/usage"),
        ] {
            assert_eq!(backend_url(base, "usage"), expected);
        }
    }
}
