//! HTTP requests to authorization servers. Responses of token endpoints contain secrets, so nothing of a successful one is
//! shown in an error.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, USER_AGENT,
};
use hyper::{Method, Request, Response, StatusCode, Uri};
use loomd_model::Http;
use loomd_oauth::encoded;
use loomd_protocol::{JsonValue, Secret};
use serde::Deserialize;
use serde_json::json;

use crate::OauthError;
use crate::discovery::origin;
use crate::tokens::TokenResponse;

/// The limit for one request for metadata.
pub(crate) const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(5);
/// The limit for one other request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How many redirects of a request for metadata are followed.
const MAX_REDIRECTS: usize = 3;
/// How much of an error response is shown.
const MAX_SHOWN: usize = 500;

const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const AGENT: &str = concat!("loomd/", env!("CARGO_PKG_VERSION"));

/// Requests to the authorization servers of all MCP servers.
pub(crate) struct AuthorizationServer {
    http: Arc<Http>,
}

/// A client, as the authorization server registered it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RegisteredClient {
    pub client_id: String,
    #[serde(default)]
    pub client_secret: Option<Secret>,
    #[serde(default)]
    pub token_endpoint_auth_method: Option<String>,
}

/// Why a token endpoint gave no token.
#[derive(Debug)]
pub(crate) enum TokenError {
    /// The server refused what it was given; trying again is of no use.
    Refused(String),
    Failed(String),
}

impl AuthorizationServer {
    pub fn new(http: Arc<Http>) -> Self {
        Self { http }
    }

    /// Gets a document. Redirects are followed; `headers` are sent only to the first origin.
    pub async fn get(&self, url: &str, headers: &HeaderMap) -> Result<Response<Bytes>, String> {
        let mut url: Uri = url.parse().map_err(|error| format!("invalid URL {url}: {error}"))?;
        let first = origin(&url);
        let mut followed = 0;
        loop {
            let mut request = Request::new(Full::new(Bytes::new()));
            if origin(&url) == first {
                *request.headers_mut() = headers.clone();
            }
            *request.uri_mut() = url.clone();
            request.headers_mut().insert(PROTOCOL_VERSION, HeaderValue::from_static("2024-11-05"));
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
            let response = self.send(request, DISCOVERY_TIMEOUT).await?;
            match redirect(&url, &response) {
                Some(next) if followed < MAX_REDIRECTS => (url, followed) = (next, followed + 1),
                _ => return Ok(response),
            }
        }
    }

    /// Registers this program at the authorization server.
    pub async fn register(&self, endpoint: &str, redirect_uri: &str) -> Result<RegisteredClient, OauthError> {
        let body = json!({
            "client_name": "loomd",
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "token_endpoint_auth_method": "none",
            "response_types": ["code"],
        });
        let sent = self.post(endpoint, "application/json", body.to_string(), None).await;
        let response = sent.map_err(OauthError::Registration)?;
        if !response.status().is_success() {
            let refused = format!("HTTP {}{}", response.status(), detail(response.body()));
            return Err(OauthError::Registration(refused));
        }
        let client: RegisteredClient = serde_json::from_slice(response.body())
            .map_err(|_| OauthError::Registration("the response has no client id".into()))?;
        Ok(client)
    }

    /// Requests tokens with the fields of a grant.
    pub async fn token(
        &self,
        endpoint: &str,
        client: &RegisteredClient,
        grant: &[(&str, &str)],
    ) -> Result<TokenResponse, TokenError> {
        let mut fields = grant.to_vec();
        let mut authorization = None;
        match &client.client_secret {
            None => fields.push(("client_id", &client.client_id)),
            Some(secret) if client.token_endpoint_auth_method.as_deref() == Some("client_secret_post") => {
                fields.extend([("client_id", client.client_id.as_str()), ("client_secret", secret.reveal())]);
            }
            Some(secret) => {
                // Both are form-encoded first: RFC 6749, section 2.3.1.
                let encoded = |text: &str| encoded([("", text)])[1..].to_owned();
                let pair = format!("{}:{}", encoded(&client.client_id), encoded(secret.reveal()));
                authorization = Some(format!("Basic {}", STANDARD.encode(pair)));
            }
        }
        let form = encoded(fields);
        let sent = self.post(endpoint, "application/x-www-form-urlencoded", form, authorization.as_deref()).await;
        let response = sent.map_err(TokenError::Failed)?;
        let status = response.status();
        if status.is_success() {
            let undecodable = |_| TokenError::Failed("the response of the token endpoint is not understood".into());
            let granted: TokenResponse = serde_json::from_slice(response.body()).map_err(undecodable)?;
            if !granted.token_type.eq_ignore_ascii_case("bearer") {
                return Err(TokenError::Failed(format!("unsupported token type `{}`", shown(&granted.token_type))));
            }
            return Ok(granted);
        }
        let problem = format!("the token endpoint answered HTTP {status}{}", detail(response.body()));
        match status {
            StatusCode::BAD_REQUEST | StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                Err(TokenError::Refused(problem))
            }
            _ => Err(TokenError::Failed(problem)),
        }
    }

    async fn post(
        &self,
        url: &str,
        content_type: &'static str,
        body: String,
        authorization: Option<&str>,
    ) -> Result<Response<Bytes>, String> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.parse().map_err(|error| format!("invalid URL {url}: {error}"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(mut value) = authorization.and_then(|value| HeaderValue::from_str(value).ok()) {
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        self.send(request, TIMEOUT).await
    }

    async fn send(&self, mut request: Request<Full<Bytes>>, limit: Duration) -> Result<Response<Bytes>, String> {
        let url = request.uri().to_string();
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        // Codes and refresh tokens can be spent only once, so requests do not share connections.
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        self.http.fetch(request, limit).await.map_err(|error| format!("error sending request for url ({url}): {error}"))
    }
}

/// The place that a response redirects to, if it is a URL or an absolute path.
fn redirect(from: &Uri, response: &Response<Bytes>) -> Option<Uri> {
    if !response.status().is_redirection() {
        return None;
    }
    let to = response.headers().get(LOCATION)?.to_str().ok()?;
    let next: Uri = if to.starts_with('/') && !to.starts_with("//") {
        format!("{}{to}", origin(from)?).parse().ok()?
    } else {
        to.parse().ok()?
    };
    let downgrade = from.scheme_str() == Some("https") && next.scheme_str() != Some("https");
    (next.host().is_some() && !downgrade).then_some(next)
}

/// What an error response says, to be put behind its status.
fn detail(body: &[u8]) -> String {
    let json: JsonValue = serde_json::from_slice(body).unwrap_or_default();
    let text = |name: &str| json.get(name).and_then(JsonValue::as_str).filter(|text| !text.trim().is_empty());
    match (text("error"), text("error_description")) {
        (Some(error), Some(description)) => format!(": {}: {}", shown(error), shown(description)),
        (Some(error), None) => format!(": {}", shown(error)),
        _ => {
            let body = String::from_utf8_lossy(body);
            let body = shown(body.trim());
            if body.is_empty() { String::new() } else { format!(": {body}") }
        }
    }
}

/// The start of a text of another server, on one line.
fn shown(text: &str) -> String {
    let clean = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    clean.take(MAX_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_responses_are_shown_on_one_bounded_line() {
        assert_eq!(detail(br#"{"error":"invalid_grant","error_description":"too\nold"}"#), ": invalid_grant: too old");
        assert_eq!(detail(br#"{"error":"invalid_grant"}"#), ": invalid_grant");
        assert_eq!(detail(b" down \r\n"), ": down");
        assert_eq!(detail(b""), "");
        assert_eq!(detail("ä".repeat(5000).as_bytes()).chars().count(), MAX_SHOWN + 2);
    }

    #[test]
    fn redirects_lead_to_urls_and_absolute_paths_but_not_away_from_https() {
        let check = |from: &str, to: &str, expected: Option<&str>| {
            let mut response = Response::new(Bytes::new());
            *response.status_mut() = StatusCode::FOUND;
            response.headers_mut().insert(LOCATION, HeaderValue::from_str(to).unwrap());
            let found = redirect(&from.parse().unwrap(), &response).map(|url| url.to_string());
            assert_eq!(found.as_deref(), expected, "{to}");
        };
        check("https://a.example/x", "/y", Some("https://a.example/y"));
        check("https://a.example/x", "https://b.example/y", Some("https://b.example/y"));
        check("https://a.example/x", "http://b.example/y", None);
        check("https://a.example/x", "//b.example/y", None);
        check("https://a.example/x", "y", None);
        check("http://a.example/x", "http://b.example/y", Some("http://b.example/y"));
    }
}
