//! HTTP requests to the token issuer. Successful responses contain secrets, so nothing of them is shown in errors.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderValue, USER_AGENT};
use hyper::{Method, Request, Response, StatusCode};
use loomd_model::Http;
use loomd_oauth::encoded;
use loomd_protocol::{JsonValue, Secret};
use serde::Deserialize;
use serde_json::json;

use crate::AccountError;
use crate::renew::RenewError;

pub(crate) const ISSUER: &str = "https://auth.openai.com";
/// The OAuth client id that the issuer knows programs of this kind by.
pub(crate) const CLIENT_ID: &str = "app_EMoamEEZ73f0CkXaXp7hrann";

/// The limit for one request and its response.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an error response is shown.
const MAX_SHOWN: usize = 1000;

/// The error for an undecodable success, which may contain secrets.
const UNDECODABLE: &str = "error decoding response body";

pub(crate) struct Issuer {
    http: Arc<Http>,
    url: String,
    /// The URL of refreshes, if it is not below `url`.
    refresh_url: Option<String>,
}

/// The response to a refresh. A missing token keeps its old value.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct RefreshResponse {
    pub id_token: Option<Secret>,
    pub access_token: Option<Secret>,
    pub refresh_token: Option<Secret>,
}

/// The tokens for an authorization code.
#[derive(Debug, Deserialize)]
pub(crate) struct IssuedTokens {
    pub id_token: Secret,
    pub access_token: Secret,
    pub refresh_token: Secret,
}

/// The code that the user enters on another device, and the id of the request.
#[derive(Debug)]
pub(crate) struct DeviceCode {
    pub device_auth_id: String,
    pub user_code: String,
    /// The polling interval that the issuer asks for.
    pub interval: Option<Duration>,
}

/// The result of a device code that the user has entered.
#[derive(Debug, Deserialize)]
pub(crate) struct DeviceGrant {
    pub authorization_code: String,
    pub code_verifier: String,
}

pub(crate) enum DevicePoll {
    Pending,
    SlowDown,
    Granted(DeviceGrant),
}

impl Issuer {
    pub fn new(http: Arc<Http>, url: String, refresh_url: Option<String>) -> Self {
        Self { http, url, refresh_url }
    }

    /// Spends a refresh token.
    pub async fn refresh(&self, token: &Secret) -> Result<RefreshResponse, RenewError> {
        let url = self.refresh_url.clone().unwrap_or_else(|| format!("{}/oauth/token", self.url));
        let body = json!({
            "client_id": CLIENT_ID, "grant_type": "refresh_token", "refresh_token": token.reveal(),
        });
        let answer = self.post_json(&url, &body).await.map_err(RenewError::Transient)?;
        match answer.status() {
            status if status.is_success() => {
                serde_json::from_slice(answer.body()).map_err(|_| RenewError::Transient(UNDECODABLE.into()))
            }
            StatusCode::UNAUTHORIZED => Err(RenewError::Permanent(refresh_error(answer.body()))),
            status => {
                let detail = detail(answer.body(), &["/error/message"]).unwrap_or_else(|| "Unknown error".into());
                Err(RenewError::Transient(format!("Failed to refresh token: {status}: {detail}")))
            }
        }
    }

    /// Exchanges an authorization code for tokens. `redirect_uri` is where the code was delivered.
    pub async fn exchange(&self, code: &str, redirect_uri: &str, verifier: &str) -> Result<IssuedTokens, String> {
        let form = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("client_id", CLIENT_ID),
            ("code_verifier", verifier),
        ];
        let answer = self.post_form(&form).await?;
        if answer.status().is_success() {
            return serde_json::from_slice(answer.body()).map_err(|_| UNDECODABLE.into());
        }
        let places = ["/error_description", "/error/message", "/error", "/error/code"];
        let detail = detail(answer.body(), &places).unwrap_or_else(|| "unknown error".into());
        Err(format!("token endpoint returned status {}: {detail}", answer.status()))
    }

    /// Requests an API key for the signed-in user; `None` if the account has none.
    pub async fn api_key(&self, id_token: &Secret) -> Option<Secret> {
        #[derive(Deserialize)]
        struct Answer {
            access_token: Secret,
        }

        let form = [
            ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
            ("client_id", CLIENT_ID),
            ("requested_token", "openai-api-key"),
            ("subject_token", id_token.reveal()),
            ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ];
        let answer = self.post_form(&form).await.ok().filter(|answer| answer.status().is_success())?;
        serde_json::from_slice(answer.body()).ok().map(|Answer { access_token }| access_token)
    }

    /// Where the user enters a device code.
    pub fn verification_url(&self) -> String {
        format!("{}/codex/device", self.url)
    }

    /// The redirect URI of device codes, which have no callback.
    pub fn device_callback(&self) -> String {
        format!("{}/deviceauth/callback", self.url)
    }

    pub async fn device_code(&self) -> Result<DeviceCode, AccountError> {
        #[derive(Deserialize)]
        struct Answer {
            device_auth_id: String,
            #[serde(alias = "usercode")]
            user_code: String,
            interval: Option<JsonValue>,
        }

        let url = format!("{}/api/accounts/deviceauth/usercode", self.url);
        let answer =
            self.post_json(&url, &json!({ "client_id": CLIENT_ID })).await.map_err(AccountError::DeviceCode)?;
        match answer.status() {
            status if status.is_success() => {}
            StatusCode::NOT_FOUND => return Err(AccountError::NoDeviceCodes),
            status => {
                return Err(AccountError::DeviceCode(format!("device code request failed with status {status}")));
            }
        }
        let Answer { device_auth_id, user_code, interval } = serde_json::from_slice(answer.body())
            .map_err(|error: serde_json::Error| AccountError::DeviceCode(error.to_string()))?;
        // A number, mostly sent as a string.
        let seconds = interval.and_then(|value| value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()));
        Ok(DeviceCode { device_auth_id, user_code, interval: seconds.map(Duration::from_secs) })
    }

    /// Polls whether the user has entered the code.
    pub async fn poll(&self, code: &DeviceCode) -> Result<DevicePoll, String> {
        let url = format!("{}/api/accounts/deviceauth/token", self.url);
        let body = json!({ "device_auth_id": code.device_auth_id, "user_code": code.user_code });
        let answer = self.post_json(&url, &body).await?;
        match answer.status() {
            status if status.is_success() => {
                serde_json::from_slice(answer.body()).map(DevicePoll::Granted).map_err(|_| UNDECODABLE.into())
            }
            StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => Ok(DevicePoll::Pending),
            StatusCode::TOO_MANY_REQUESTS => Ok(DevicePoll::SlowDown),
            status => Err(format!("device auth failed with status {status}")),
        }
    }

    async fn post_form(&self, fields: &[(&str, &str)]) -> Result<Response<Bytes>, String> {
        let body = encoded(fields.iter().copied());
        self.post(&format!("{}/oauth/token", self.url), "application/x-www-form-urlencoded", body).await
    }

    async fn post_json(&self, url: &str, body: &JsonValue) -> Result<Response<Bytes>, String> {
        self.post(url, "application/json", body.to_string()).await
    }

    async fn post(&self, url: &str, content_type: &'static str, body: String) -> Result<Response<Bytes>, String> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.parse().map_err(|error| format!("invalid URL {url}: {error}"))?;
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("loomd/", env!("CARGO_PKG_VERSION"))));
        // Codes and refresh tokens can be spent only once, so their requests do not share connections.
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        let failed = |error: &dyn Display| format!("error sending request for url ({url}): {error}");
        self.http.fetch(request, TIMEOUT).await.map_err(|error| failed(&error))
    }
}

/// The message for a refresh token that the issuer no longer accepts.
fn refresh_error(body: &[u8]) -> String {
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

/// Extracts the message of an error response: the first of `places` that has text, else the whole body. `None` if it is
/// empty.
fn detail(body: &[u8], places: &[&str]) -> Option<String> {
    let text = String::from_utf8_lossy(body);
    let json: JsonValue = serde_json::from_str(&text).unwrap_or_default();
    let message =
        places.iter().find_map(|place| json.pointer(place)?.as_str().filter(|message| !message.trim().is_empty()));
    let message = message.unwrap_or_else(|| text.trim());
    let cut = message.char_indices().nth(MAX_SHOWN).map_or(message.len(), |(at, _)| at);
    (!message.is_empty()).then(|| message[..cut].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_refresh_token_reports_the_reason() {
        let check = |body: &str, why: &str| {
            let expected = format!("Your access token could not be refreshed{why}. Please log out and sign in again.");
            assert_eq!(refresh_error(body.as_bytes()), expected, "{body}");
        };
        check(r#"{"error":{"code":"refresh_token_expired"}}"#, " because your refresh token has expired");
        check(r#"{"error":"REFRESH_TOKEN_REUSED"}"#, " because your refresh token was already used");
        check(r#"{"code":"refresh_token_invalidated"}"#, " because your refresh token was revoked");
        check(r#"{"error":{"code":"other"}}"#, "");
        check("", "");
    }

    #[test]
    fn error_details_are_read_from_the_body() {
        let check = |body: &str, expected: Option<&str>| {
            assert_eq!(detail(body.as_bytes(), &["/error_description", "/error/message"]).as_deref(), expected);
        };
        check(r#"{"error_description":"stale","error":{"message":"m"}}"#, Some("stale"));
        check(r#"{"error_description":" ","error":{"message":"m"}}"#, Some("m"));
        check(" down ", Some("down"));
        check("", None);
        assert_eq!(detail("ä".repeat(5000).as_bytes(), &[]).unwrap().chars().count(), MAX_SHOWN);
    }
}
