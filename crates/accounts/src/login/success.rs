//! The query of the success page, which describes the account. Omits the id token, because URLs end up in histories and
//! extensions.

use loomd_oauth::encoded;
use loomd_protocol::JsonValue;

use crate::auth_json::AuthJson;
use crate::claims::Claims;
use crate::issuer::ISSUER;

/// Returns the query of the success page.
pub(super) fn query(file: &AuthJson, issuer: &str) -> String {
    let claims = |token: Option<&str>| token.and_then(|token| Claims::of(token).ok()).unwrap_or_default().auth;
    let tokens = file.tokens.as_ref();
    let id = claims(tokens.map(|tokens| tokens.id_token.reveal()));
    let access = claims(tokens.map(|tokens| tokens.access_token.reveal()));
    let is_true = |claim: &Option<JsonValue>| *claim == Some(JsonValue::Bool(true));
    let needs_setup = is_true(&id.is_org_owner) && !is_true(&id.completed_platform_onboarding);
    let platform_url = if issuer == ISSUER { "https://platform.openai.com" } else { "https://platform.api.openai.org" };
    encoded([
        ("needs_setup", if needs_setup { "true" } else { "false" }),
        ("org_id", text(&id.organization_id)),
        ("project_id", text(&id.project_id)),
        ("plan_type", access.chatgpt_plan_type.as_deref().unwrap_or_default()),
        ("platform_url", platform_url),
    ])
}

fn text(claim: &Option<JsonValue>) -> &str {
    claim.as_ref().and_then(JsonValue::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::auth_json::Tokens;
    use crate::tests::jwt;

    fn query_of(id: JsonValue, access: &str, issuer: &str) -> String {
        let id_token = jwt(&json!({ "https://api.openai.com/auth": id })).into();
        let tokens = Tokens {
            id_token,
            access_token: access.to_owned().into(),
            refresh_token: String::new().into(),
            account_id: None,
            other: Default::default(),
        };
        query(&AuthJson { tokens: Some(tokens), ..AuthJson::default() }, issuer)
    }

    #[test]
    fn an_owner_who_has_not_been_onboarded_needs_setup() {
        for (owner, onboarded, needs_setup) in
            [(json!(true), json!(null), true), (json!(true), json!(true), false), (json!(null), json!(null), false)]
        {
            let id = json!({ "is_org_owner": owner, "completed_platform_onboarding": onboarded });
            let query = query_of(id, "opaque", ISSUER);
            assert!(query.starts_with(&format!("needs_setup={needs_setup}&org_id=&")), "{query}");
        }
    }

    #[test]
    fn the_plan_is_read_from_the_access_token() {
        let id = json!({ "organization_id": "org 1", "project_id": "p", "chatgpt_plan_type": "free" });
        let access = jwt(&json!({ "https://api.openai.com/auth": { "chatgpt_plan_type": "pro" } }));
        assert_eq!(
            query_of(id, &access, ISSUER),
            "needs_setup=false&org_id=org%201&project_id=p&plan_type=pro\
             &platform_url=https%3A%2F%2Fplatform.openai.com"
        );
        let elsewhere = query_of(json!({}), "opaque", "https://issuer.example");
        assert!(elsewhere.ends_with("platform_url=https%3A%2F%2Fplatform.api.openai.org"), "{elsewhere}");
    }
}
