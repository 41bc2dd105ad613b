//! Who is signed in, as far as it matters here: a member of an organisation whose plan has managed
//! requirements.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::Deserialize;
use serde::de::DeserializeOwned;

/// The plans of organisations that manage their members.
const MANAGED_PLANS: [&str; 3] = ["business", "enterprise_cbp_usage_based", "enterprise"];

/// Not printable: it holds a token.
pub(super) struct Member {
    pub access_token: String,
    pub account: String,
    pub user: Option<String>,
}

#[derive(Deserialize)]
struct AuthFile {
    #[serde(rename = "OPENAI_API_KEY")]
    api_key: Option<String>,
    auth_mode: Option<String>,
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: String,
    access_token: String,
    account_id: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    #[serde(rename = "https://api.openai.com/auth")]
    auth: AuthClaims,
}

#[derive(Deserialize)]
struct AuthClaims {
    chatgpt_plan_type: Option<String>,
    chatgpt_user_id: Option<String>,
    chatgpt_account_id: Option<String>,
}

impl Member {
    /// `None` for everybody whose requirements nobody manages.
    pub fn signed_in(home: &Path) -> Option<Self> {
        let file: AuthFile = serde_json::from_slice(&fs::read(home.join("auth.json")).ok()?).ok()?;
        let by_chatgpt = match file.auth_mode.as_deref() {
            Some(mode) => mode.starts_with("chatgpt"),
            None => file.api_key.is_none(),
        };
        let tokens = file.tokens.filter(|_| by_chatgpt)?;
        let claims: Claims = claims(&tokens.id_token)?;
        let plan = claims.auth.chatgpt_plan_type?;
        MANAGED_PLANS.contains(&plan.as_str()).then_some(())?;
        Some(Self {
            access_token: tokens.access_token,
            account: tokens.account_id.or(claims.auth.chatgpt_account_id)?,
            user: claims.auth.chatgpt_user_id,
        })
    }
}

/// What a token says about itself. Whoever issued it has checked it.
fn claims<T: DeserializeOwned>(token: &str) -> Option<T> {
    let payload = token.split('.').nth(1)?;
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?).ok()
}
