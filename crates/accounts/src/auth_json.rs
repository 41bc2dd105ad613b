//! `auth.json`: the stored credentials, in the format that other programs of this protocol read and write.

use std::fmt;

use jiff::Timestamp;
use loomd_protocol::{AuthMode, JsonValue, Secret};
use serde::{Deserialize, Serialize};
use serde_json::Map;

/// The content of the file. Unknown fields are preserved when it is written again.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct AuthJson {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_mode: Option<AuthMode>,
    #[serde(rename = "OPENAI_API_KEY", default)]
    pub api_key: Option<Secret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refresh: Option<String>,
    #[serde(flatten)]
    pub other: UnknownFields,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Tokens {
    pub id_token: Secret,
    pub access_token: Secret,
    pub refresh_token: Secret,
    #[serde(default)]
    pub account_id: Option<String>,
    #[serde(flatten)]
    pub other: UnknownFields,
}

/// Fields that are preserved unread. `Debug` hides them, because they may be secret.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct UnknownFields(Map<String, JsonValue>);

impl fmt::Debug for UnknownFields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnknownFields(..)")
    }
}

impl AuthJson {
    pub fn of_key(key: Secret) -> Self {
        Self { auth_mode: Some(AuthMode::Apikey), api_key: Some(key), ..Self::default() }
    }

    /// The sign-in mode. Files of older programs do not name it.
    pub fn mode(&self) -> AuthMode {
        let guessed = if self.api_key.is_some() { AuthMode::Apikey } else { AuthMode::Chatgpt };
        self.auth_mode.unwrap_or(guessed)
    }

    pub fn refreshed_now(mut self) -> Self {
        self.last_refresh = Some(Timestamp::now().to_string());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) {
        let file: AuthJson = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&file).unwrap(), text);
    }

    #[test]
    fn unknown_fields_survive_rewriting() {
        check(r#"{"auth_mode":"apikey","OPENAI_API_KEY":"sk"}"#);
        check(concat!(
            r#"{"auth_mode":"chatgpt","OPENAI_API_KEY":null,"#,
            r#""tokens":{"id_token":"i","access_token":"a","refresh_token":"r","account_id":null,"more":1},"#,
            r#""last_refresh":"2026-11-15T06:44:25.501314355Z","newer":{"x":[]}}"#
        ));
    }

    #[test]
    fn a_missing_mode_is_inferred() {
        for (text, mode) in [
            (r#"{"OPENAI_API_KEY":"sk"}"#, AuthMode::Apikey),
            (r#"{"auth_mode":"chatgpt","OPENAI_API_KEY":"sk"}"#, AuthMode::Chatgpt),
            ("{}", AuthMode::Chatgpt),
        ] {
            assert_eq!(serde_json::from_str::<AuthJson>(text).unwrap().mode(), mode, "{text}");
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let file: AuthJson = serde_json::from_str(r#"{"OPENAI_API_KEY":"sk-1","newer":"sk-1"}"#).unwrap();
        assert!(!format!("{file:?}").contains("sk-1"));
    }
}
