//! The issuer of tokens, asked over HTTP. Its answers hold secrets: nothing of one that succeeds is shown.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use loomd_model::Http;
use loomd_protocol::{JsonValue, Secret};
use serde::Deserialize;
use serde_json::json;

use crate::renew::RenewError;

pub(crate) const ISSUER: &str = "https://auth.openai.com";
/// How the issuer knows programs of this kind.
pub(crate) const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";

/// For one request, with its answer.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much of an answer that is no success is shown.
const SHOWN: usize = 1000;

pub(crate) struct Issuer {
    http: Arc<Http>,
    url: String,
    /// The whole address of refreshes, when it is another.
    refresh_url: Option<String>,
}

/// What a refresh gives; what is missing stays as it was.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct Refreshed {
    pub id_token: Option<Secret>,
    pub access_token: Option<Secret>,
    pub refresh_token: Option<Secret>,
}

impl Issuer {
    pub fn new(http: Arc<Http>, url: String, refresh_url: Option<String>) -> Self {
        Self { http, url, refresh_url }
    }

    /// Spends a refresh token.
    pub async fn refresh(&self, token: &Secret) -> Result<Refreshed, RenewError> {
        let url = self.refresh_url.clone().unwrap_or_else(|| format!("{}/oauth/token", self.url));
        let body = json!({
            "client_id": CLIENT_ID, "grant_type": "refresh_token", "refresh_token": token.reveal(),
        });
        let answer = self.post_json(&url, &body).await.map_err(RenewError::Transient)?;
        match answer.status() {
            status if status.is_success() => {
                // What it holds instead is not for an error text.
                let undecodable = |_| RenewError::Transient("error decoding response body".into());
                serde_json::from_slice(answer.body()).map_err(undecodable)
            }
            StatusCode::UNAUTHORIZED => Err(RenewError::Permanent(dead(answer.body()))),
            status => {
                let detail = detail(answer.body(), &["/error/message"]).unwrap_or_else(|| "Unknown error".into());
                Err(RenewError::Transient(format!("Failed to refresh token: {status}: {detail}")))
            }
        }
    }

    async fn post_json(&self, url: &str, body: &JsonValue) -> Result<Response<Bytes>, String> {
        self.post(url, "application/json", body.to_string()).await
    }

    async fn post(&self, url: &str, content_type: &'static str, body: String) -> Result<Response<Bytes>, String> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.parse().map_err(|error| format!("bad address {url}: {error}"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("loomd/", env!("CARGO_PKG_VERSION"))));
        // A kept connection that breaks makes its request go out again, and nothing here can be spent twice.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let failed = |error: &dyn Display| format!("error sending request for url ({url}): {error}");
        self.http.fetch(request, PATIENCE).await.map_err(|error| failed(&error))
    }
}

/// Why a refresh token is of no more use.
fn dead(body: &[u8]) -> String {
    let body: JsonValue = serde_json::from_slice(body).unwrap_or_default();
    let code = [&body["error"]["code"], &body["error"], &body["code"]].into_iter().find_map(JsonValue::as_str);
    let why = match code.map(str::to_ascii_lowercase).as_deref() {
        Some("refresh_token_expired") => " because your refresh token has expired",
        Some("refresh_token_reused") => " because your refresh token was already used",
        Some("refresh_token_invalidated") => " because your refresh token was revoked",
        _ => "",
    };
    format!("Your access token could not be refreshed{why}. Please log out and sign in again.")
}

/// What an answer that is no success says: the first of these places that does, else all of it. `None` when it is
/// empty.
fn detail(body: &[u8], places: &[&str]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let json: JsonValue = serde_json::from_str(&text).unwrap_or_default();
    let said = places.iter().find_map(|place| json.pointer(place)?.as_str().filter(|said| !said.trim().is_empty()));
    let said = said.unwrap_or_else(|| text.trim());
    let cut = said.char_indices().nth(SHOWN).map_or(said.len(), |(at, _)| at);
    (!said.is_empty()).then(|| said[..cut].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dead_token_says_why() {
        let check = |body: &str, why: &str| {
            let expected = format!("Your access token could not be refreshed{why}. Please log out and sign in again.");
            assert_eq!(dead(body.as_bytes()), expected, "{body}");
        };
        check(r#"{"error":{"code":"refresh_token_expired"}}"#, " because your refresh token has expired");
        check(r#"{"error":"REFRESH_TOKEN_REUSED"}"#, " because your refresh token was already used");
        check(r#"{"code":"refresh_token_invalidated"}"#, " because your refresh token was revoked");
        check(r#"{"error":{"code":"other"}}"#, "");
        check("", "");
    }

    #[test]
    fn the_detail_is_what_the_body_says() {
        let check = |body: &str, expected: Option<&str>| {
            assert_eq!(detail(body.as_bytes(), &["/error_description", "/error/message"]).as_deref(), expected);
        };
        check(r#"{"error_description":"stale","error":{"message":"m"}}"#, Some("stale"));
        check(r#"{"error_description":" ","error":{"message":"m"}}"#, Some("m"));
        check(" down ", Some("down"));
        check("", None);
        assert_eq!(detail("ä".repeat(5000).as_bytes(), &[]).unwrap().chars().count(), SHOWN);
    }
}
