//! The tokens of one server, and the two forms in which they are stored. Both are shared with other programs that use the
//! same home or keyring.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loomd_protocol::{JsonValue, Secret};
use serde::{Deserialize, Deserializer, Serialize};

/// Tokens are refreshed when they are valid for less than this.
const REFRESH_BEFORE: Duration = Duration::from_secs(30);

/// An entry of the credentials file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub server_name: String,
    pub server_url: String,
    pub client_id: String,
    /// Of a client that the authorization server registered as confidential. Other programs do not know this field and
    /// the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<Secret>,
    /// How the secret is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_endpoint_auth_method: Option<String>,
    pub access_token: Secret,
    /// Unix milliseconds.
    #[serde(default)]
    pub expires_at: Option<u64>,
    #[serde(default)]
    pub refresh_token: Option<Secret>,
    #[serde(default)]
    pub scopes: Vec<String>,
}

/// An entry of the keyring.
#[derive(Serialize, Deserialize)]
pub(crate) struct KeyringEntry {
    server_name: String,
    url: String,
    client_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client_secret: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token_endpoint_auth_method: Option<String>,
    token_response: TokenResponse,
    #[serde(default)]
    expires_at: Option<u64>,
}

/// The response of a token endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct TokenResponse {
    pub access_token: Secret,
    #[serde(default = "bearer")]
    pub token_type: String,
    #[serde(default, deserialize_with = "seconds", skip_serializing_if = "Option::is_none")]
    pub expires_in: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh_token: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
}

fn bearer() -> String {
    "bearer".into()
}

/// Reads a number of seconds, which some servers send as a string or with a fraction. Anything else counts as absent.
fn seconds<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    let value = JsonValue::deserialize(deserializer)?;
    let number = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok());
    Ok(number.filter(|seconds| *seconds >= 0.0).map(|seconds| seconds as u64))
}

impl TokenResponse {
    /// The scopes that were granted; `None` if the response does not say.
    pub fn scopes(&self) -> Option<Vec<String>> {
        self.scope.as_ref().map(|scope| scope.split_whitespace().map(str::to_owned).collect())
    }

    /// When the access token expires, in Unix milliseconds.
    pub fn expires_at(&self) -> Option<u64> {
        self.expires_in.map(|seconds| now().saturating_add(seconds.saturating_mul(1000)))
    }
}

impl Tokens {
    /// Whether the access token is about to expire.
    pub fn is_stale(&self) -> bool {
        self.expires_at.is_some_and(|expires| expires < now().saturating_add(REFRESH_BEFORE.as_millis() as u64))
    }

    pub fn is_expired(&self) -> bool {
        self.expires_at.is_some_and(|expires| expires <= now())
    }

    /// Returns the tokens after a refresh. What the response leaves out keeps its value.
    pub fn refreshed(self, response: TokenResponse) -> Self {
        Self {
            scopes: response.scopes().unwrap_or(self.scopes),
            expires_at: response.expires_at(),
            access_token: response.access_token,
            refresh_token: response.refresh_token.or(self.refresh_token),
            ..self
        }
    }
}

impl From<Tokens> for KeyringEntry {
    fn from(tokens: Tokens) -> Self {
        let left = tokens.expires_at.map(|expires| expires.saturating_sub(now()) / 1000);
        Self {
            server_name: tokens.server_name,
            url: tokens.server_url,
            client_id: tokens.client_id,
            client_secret: tokens.client_secret,
            token_endpoint_auth_method: tokens.token_endpoint_auth_method,
            token_response: TokenResponse {
                access_token: tokens.access_token,
                token_type: bearer(),
                expires_in: left,
                refresh_token: tokens.refresh_token,
                scope: (!tokens.scopes.is_empty()).then(|| tokens.scopes.join(" ")),
            },
            expires_at: tokens.expires_at,
        }
    }
}

impl From<KeyringEntry> for Tokens {
    fn from(entry: KeyringEntry) -> Self {
        Self {
            server_name: entry.server_name,
            server_url: entry.url,
            client_id: entry.client_id,
            client_secret: entry.client_secret,
            token_endpoint_auth_method: entry.token_endpoint_auth_method,
            // `expires_in` counts from a time that is not stored.
            expires_at: entry.expires_at,
            scopes: entry.token_response.scopes().unwrap_or_default(),
            access_token: entry.token_response.access_token,
            refresh_token: entry.token_response.refresh_token,
        }
    }
}

/// Unix milliseconds.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As another program writes them.
    fn entry() -> JsonValue {
        json!({
            "server_name": "oau", "server_url": "http://127.0.0.1:1/mcp", "client_id": "client-1",
            "access_token": "token-1", "expires_at": 1794728879489u64, "refresh_token": "refresh-1", "scopes": ["a"],
        })
    }

    #[test]
    fn an_entry_of_another_program_is_read_and_written_as_it_is() {
        let tokens: Tokens = serde_json::from_value(entry()).unwrap();
        assert_eq!(serde_json::to_string(&tokens).unwrap(), entry().to_string());
        let mut bare = entry();
        for name in ["expires_at", "refresh_token"] {
            bare[name] = JsonValue::Null;
        }
        let tokens: Tokens = serde_json::from_value(bare.clone()).unwrap();
        assert_eq!(serde_json::to_string(&tokens).unwrap(), bare.to_string());
    }

    #[test]
    fn a_keyring_entry_of_another_program_holds_the_same_tokens() {
        let text = r#"{"server_name":"oau","url":"http://127.0.0.1:1/mcp","client_id":"client-1","token_response":{"access_token":"token-1","token_type":"bearer","expires_in":3600,"refresh_token":"refresh-1","scope":"a"},"expires_at":1794728879489}"#;
        let read: KeyringEntry = serde_json::from_str(text).unwrap();
        let tokens = Tokens::from(read);
        assert_eq!(tokens, serde_json::from_value(entry()).unwrap());
        let written = serde_json::to_string(&KeyringEntry::from(tokens.clone())).unwrap();
        assert_eq!(Tokens::from(serde_json::from_str::<KeyringEntry>(&written).unwrap()), tokens);
    }

    #[test]
    fn odd_lifetimes_are_understood_or_count_as_absent() {
        for (value, expected) in [
            (json!(3600), Some(3600)),
            (json!("3600"), Some(3600)),
            (json!(59.9), Some(59)),
            (json!(-1), None),
            (json!([]), None),
            (json!(null), None),
        ] {
            let response: TokenResponse =
                serde_json::from_value(json!({ "access_token": "a", "expires_in": value })).unwrap();
            assert_eq!(response.expires_in, expected, "{value}");
        }
        let response: TokenResponse = serde_json::from_str(r#"{"access_token":"a","expires_in":1e300}"#).unwrap();
        assert_eq!(response.expires_at(), Some(u64::MAX), "no overflow");
    }

    #[test]
    fn tokens_are_stale_half_a_minute_before_they_expire() {
        let mut tokens: Tokens = serde_json::from_value(entry()).unwrap();
        for (expires, stale, expired) in [
            (Some(now() + 31_000), false, false),
            (Some(now() + 29_000), true, false),
            (Some(now() - 1), true, true),
            (None, false, false),
        ] {
            tokens.expires_at = expires;
            assert_eq!((tokens.is_stale(), tokens.is_expired()), (stale, expired), "{expires:?}");
        }
    }

    #[test]
    fn a_refresh_keeps_what_the_response_leaves_out() {
        let tokens: Tokens = serde_json::from_value(entry()).unwrap();
        let response = serde_json::from_str(r#"{"access_token":"token-2","token_type":"Bearer"}"#).unwrap();
        let refreshed = tokens.clone().refreshed(response);
        assert_eq!(refreshed, Tokens { access_token: "token-2".to_owned().into(), expires_at: None, ..tokens });
    }

    #[test]
    fn debug_shows_no_token() {
        let tokens: Tokens = serde_json::from_value(entry()).unwrap();
        let shown = format!("{tokens:?}");
        assert!(!shown.contains("token-1") && !shown.contains("refresh-1"), "{shown}");
    }
}
