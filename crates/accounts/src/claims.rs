//! The claims of a token. Signatures are not verified: tokens come from the issuer over TLS, or from a trusted client.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use loomd_protocol::{JsonValue, PlanType};
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The claims that are used here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct Claims {
    email: Option<String>,
    #[serde(rename = "https://api.openai.com/profile", default)]
    profile: Profile,
    #[serde(rename = "https://api.openai.com/auth", default)]
    pub auth: AuthClaims,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
struct Profile {
    email: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
pub(crate) struct AuthClaims {
    pub chatgpt_plan_type: Option<String>,
    chatgpt_user_id: Option<String>,
    user_id: Option<String>,
    pub chatgpt_account_id: Option<String>,
    // Of any type: they are only passed to the success page of a login.
    pub organization_id: Option<JsonValue>,
    pub project_id: Option<JsonValue>,
    pub is_org_owner: Option<JsonValue>,
    pub completed_platform_onboarding: Option<JsonValue>,
}

#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("invalid ID token format")]
    Format,
    #[error("{0}")]
    Base64(#[from] base64::DecodeError),
    #[error("{0}")]
    Json(#[from] serde_json::Error),
}

impl Claims {
    pub fn of(token: &str) -> Result<Self, TokenError> {
        payload(token)
    }

    /// These claims; where one is absent, that of `other`.
    pub fn or(self, other: Self) -> Self {
        let (auth, others) = (self.auth, other.auth);
        Self {
            email: self.email.or(other.email),
            profile: Profile { email: self.profile.email.or(other.profile.email) },
            auth: AuthClaims {
                chatgpt_plan_type: auth.chatgpt_plan_type.or(others.chatgpt_plan_type),
                chatgpt_user_id: auth.chatgpt_user_id.or(others.chatgpt_user_id),
                user_id: auth.user_id.or(others.user_id),
                chatgpt_account_id: auth.chatgpt_account_id.or(others.chatgpt_account_id),
                organization_id: auth.organization_id.or(others.organization_id),
                project_id: auth.project_id.or(others.project_id),
                is_org_owner: auth.is_org_owner.or(others.is_org_owner),
                completed_platform_onboarding: auth
                    .completed_platform_onboarding
                    .or(others.completed_platform_onboarding),
            },
        }
    }

    pub fn email(&self) -> Option<&str> {
        self.email.as_deref().or(self.profile.email.as_deref())
    }

    pub fn plan(&self) -> PlanType {
        let claimed = self.auth.chatgpt_plan_type.clone().map(PlanType::from);
        match claimed {
            Some(PlanType::Other(name)) if name == "hc" => PlanType::Enterprise,
            None | Some(PlanType::Other(_)) => PlanType::Unknown,
            Some(plan) => plan,
        }
    }

    pub fn user_id(&self) -> Option<&str> {
        self.auth.chatgpt_user_id.as_deref().or(self.auth.user_id.as_deref())
    }
}

/// Parses a plan that a client names, in any case.
pub(crate) fn plan_from_name(name: &str) -> PlanType {
    match PlanType::from(name.to_ascii_lowercase()) {
        PlanType::Other(name) if name == "hc" => PlanType::Enterprise,
        PlanType::Other(name) if name == "education" => PlanType::Edu,
        PlanType::Other(_) => PlanType::Unknown,
        plan => plan,
    }
}

/// The expiry of a token in seconds since the epoch; `None` if it has none.
pub(crate) fn expiry(token: &str) -> Option<f64> {
    payload::<JsonValue>(token).ok()?["exp"].as_f64()
}

fn payload<T: DeserializeOwned>(token: &str) -> Result<T, TokenError> {
    let parts: Vec<&str> = token.splitn(4, '.').collect();
    let [header, payload, signature] = parts[..] else { return Err(TokenError::Format) };
    if [header, payload, signature].contains(&"") {
        return Err(TokenError::Format);
    }
    Ok(serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload)?)?)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::tests::jwt;

    #[test]
    fn email_and_plan_are_read_from_every_known_claim() {
        let check = |claims: JsonValue, email: Option<&str>, plan: PlanType| {
            let found = Claims::of(&jwt(&claims)).unwrap();
            assert_eq!((found.email(), found.plan()), (email, plan), "{claims}");
        };
        let plan = |name: &str| json!({ "https://api.openai.com/auth": { "chatgpt_plan_type": name } });
        check(json!({ "email": "a@b" }), Some("a@b"), PlanType::Unknown);
        check(json!({ "https://api.openai.com/profile": { "email": "p@b" } }), Some("p@b"), PlanType::Unknown);
        check(plan("team"), None, PlanType::Team);
        check(plan("hc"), None, PlanType::Enterprise);
        check(plan("PRO"), None, PlanType::Unknown);
        check(plan("education"), None, PlanType::Unknown);
    }

    #[test]
    fn plan_names_are_case_insensitive() {
        for (name, plan) in [
            ("Plus", PlanType::Plus),
            ("education", PlanType::Edu),
            ("HC", PlanType::Enterprise),
            ("platinum", PlanType::Unknown),
        ] {
            assert_eq!(plan_from_name(name), plan, "{name}");
        }
    }

    #[test]
    fn malformed_tokens_are_reported_by_their_problem() {
        for token in ["", "opaque", "a.b", "a..c", ".b.c", "a.b.", "a.b.c.d"] {
            assert_eq!(Claims::of(token).unwrap_err().to_string(), "invalid ID token format", "{token}");
        }
        assert!(matches!(Claims::of("a.!.c"), Err(TokenError::Base64(_))));
        assert!(matches!(Claims::of("a.bm8.c"), Err(TokenError::Json(_))));
    }

    #[test]
    fn the_expiry_of_a_token_is_read() {
        assert_eq!(expiry(&jwt(&json!({ "exp": 12 }))), Some(12.0));
        assert_eq!(expiry(&jwt(&json!({}))), None);
        assert_eq!(expiry("opaque"), None);
    }

    proptest! {
        #[test]
        fn malformed_tokens_do_not_panic(token in "[a-zA-Z0-9_.-]{0,40}") {
            _ = Claims::of(&token);
        }
    }
}
