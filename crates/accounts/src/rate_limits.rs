//! `account/rateLimits/read`: the usage of the plan's limits, from the backend.

use std::time::Duration;

use hyper::header::CONTENT_TYPE;
use loomd_protocol::{CreditsSnapshot, GetAccountRateLimitsResponse, PlanType, RateLimitSnapshot, RateLimitWindow};
use serde::Deserialize;

use crate::backend::{BackendError, BackendResponse};
use crate::claims::plan_from_name;
use crate::identity::Identity;
use crate::{AccountError, Accounts};

/// The client shows a wait meanwhile.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How much of an unexpected response is shown.
const MAX_SHOWN: usize = 1000;

/// The limit that every account has.
const CODEX: &str = "codex";

#[derive(Deserialize)]
struct Usage {
    plan_type: String,
    rate_limit: Option<Limit>,
    credits: Option<Credits>,
    additional_rate_limits: Option<Vec<Additional>>,
}

#[derive(Deserialize)]
struct Limit {
    primary_window: Option<Window>,
    secondary_window: Option<Window>,
}

#[derive(Deserialize)]
struct Window {
    used_percent: f64,
    #[serde(default)]
    limit_window_seconds: i64,
    reset_at: Option<i64>,
}

#[derive(Deserialize)]
struct Credits {
    has_credits: bool,
    unlimited: bool,
    balance: Option<String>,
}

#[derive(Deserialize)]
struct Additional {
    limit_name: Option<String>,
    metered_feature: String,
    rate_limit: Option<Limit>,
}

impl Accounts {
    pub async fn rate_limits(&self) -> Result<GetAccountRateLimitsResponse, AccountError> {
        match &self.current().identity {
            None => return Err(AccountError::NoLimits),
            Some(Identity::Key(_)) => return Err(AccountError::NoLimitsOfKeys),
            Some(identity) => _ = identity.bearer().map_err(|error| AccountError::Backend(error.to_string()))?,
        }
        match self.fetch_backend("usage", TIMEOUT).await {
            Ok(answer) => decode(&answer).map_err(AccountError::RateLimits),
            Err(BackendError::SignedOut) => Err(AccountError::NoLimits),
            Err(error) => Err(AccountError::RateLimits(error.to_string())),
        }
    }
}

fn decode(BackendResponse { url, response }: &BackendResponse) -> Result<GetAccountRateLimitsResponse, String> {
    let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let body = String::from_utf8_lossy(response.body());
    let shown: String = body.chars().take(MAX_SHOWN).collect();
    let received = format!("content-type={content_type}; body={shown}");
    if !response.status().is_success() {
        return Err(format!("GET {url} failed: {}; {received}", response.status()));
    }
    let usage: Usage =
        serde_json::from_str(&body).map_err(|error| format!("Decode error for {url}: {error}; {received}"))?;
    Ok(usage.into_response())
}

impl Usage {
    fn into_response(self) -> GetAccountRateLimitsResponse {
        let plan = plan_from_name(&self.plan_type);
        let credits = self.credits.map(|Credits { has_credits, unlimited, balance }| CreditsSnapshot {
            has_credits,
            unlimited,
            balance,
        });
        let codex = RateLimitSnapshot { credits, ..snapshot(CODEX.into(), None, self.rate_limit, &plan) };
        let additional = self.additional_rate_limits.into_iter().flatten().map(|additional| {
            let Additional { limit_name, metered_feature, rate_limit } = additional;
            (metered_feature.clone(), snapshot(metered_feature, limit_name, rate_limit, &plan))
        });
        let by_id = additional.chain([(CODEX.to_owned(), codex.clone())]).collect();
        GetAccountRateLimitsResponse { rate_limits: codex, rate_limits_by_limit_id: Some(by_id) }
    }
}

fn snapshot(id: String, name: Option<String>, limit: Option<Limit>, plan: &PlanType) -> RateLimitSnapshot {
    let (primary, secondary) = limit.map(|limit| (limit.primary_window, limit.secondary_window)).unwrap_or_default();
    RateLimitSnapshot {
        limit_id: Some(id),
        limit_name: name,
        primary: primary.map(Window::into_wire),
        secondary: secondary.map(Window::into_wire),
        credits: None,
        plan_type: Some(plan.clone()),
    }
}

impl Window {
    fn into_wire(self) -> RateLimitWindow {
        let minutes = (self.limit_window_seconds > 0).then(|| (self.limit_window_seconds - 1) / 60 + 1);
        RateLimitWindow {
            used_percent: self.used_percent.round() as i32,
            window_duration_mins: minutes,
            resets_at: self.reset_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hyper::Response;
    use serde_json::json;

    use super::*;

    fn read(status: u16, body: &str) -> Result<GetAccountRateLimitsResponse, String> {
        let response = Response::builder().status(status).header(CONTENT_TYPE, "text/x");
        let response = response.body(Bytes::from(body.to_owned())).unwrap();
        decode(&BackendResponse { url: "http://x/usage".into(), response })
    }

    #[test]
    fn every_limit_is_listed_by_id() {
        let window = json!({ "used_percent": 41.5, "limit_window_seconds": 61, "reset_at": 7 });
        let usage = json!({
            "plan_type": "education",
            "rate_limit": { "primary_window": window, "secondary_window": { "used_percent": 0 } },
            "credits": { "has_credits": true, "unlimited": false, "balance": "9.99" },
            "additional_rate_limits": [{ "limit_name": "Other", "metered_feature": "other", "rate_limit": null }],
        });
        let shown = |used_percent, window_duration_mins, resets_at| {
            Some(RateLimitWindow { used_percent, window_duration_mins, resets_at })
        };
        let codex = RateLimitSnapshot {
            limit_id: Some("codex".into()),
            limit_name: None,
            primary: shown(42, Some(2), Some(7)),
            secondary: shown(0, None, None),
            credits: Some(CreditsSnapshot { has_credits: true, unlimited: false, balance: Some("9.99".into()) }),
            plan_type: Some(PlanType::Edu),
        };
        let other = RateLimitSnapshot {
            limit_id: Some("other".into()),
            limit_name: Some("Other".into()),
            primary: None,
            secondary: None,
            credits: None,
            plan_type: Some(PlanType::Edu),
        };
        let by_id = [("codex".to_owned(), codex.clone()), ("other".to_owned(), other)].into();
        let expected = GetAccountRateLimitsResponse { rate_limits: codex, rate_limits_by_limit_id: Some(by_id) };
        assert_eq!(read(200, &usage.to_string()), Ok(expected));
    }

    #[test]
    fn unexpected_responses_are_quoted() {
        assert_eq!(
            read(500, "oops").unwrap_err(),
            "GET http://x/usage failed: 500 Internal Server Error; content-type=text/x; body=oops"
        );
        assert_eq!(
            read(200, "{}").unwrap_err(),
            "Decode error for http://x/usage: missing field `plan_type` at line 1 column 2; content-type=text/x; body={}"
        );
    }
}
