//! What an answer that is no success means: status, headers and body become a [`ModelError`].

use std::time::SystemTime;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hyper::{HeaderMap, StatusCode};
use jiff::Zoned;
use loomd_protocol::{JsonValue, PlanType};

use super::usage_limit::UsageLimit;
use crate::{ModelError, rate_limits, retry};

/// How much of a body that is no JSON is shown.
const SHOWN_BODY: usize = 1000;

const INVALID_IMAGE: &str = "The image data you provided does not represent a valid image";

#[derive(Debug)]
pub(super) struct Refusal<'a> {
    pub status: StatusCode,
    pub headers: &'a HeaderMap,
    pub body: &'a str,
    /// Without its query, which may hold a key.
    pub url: &'a str,
}

/// What the body says, as far as it says it in the usual way.
#[derive(Default)]
struct ErrorDetail {
    kind: Option<String>,
    code: Option<String>,
    message: Option<String>,
    plan_type: Option<PlanType>,
    resets_at: Option<i64>,
}

impl ErrorDetail {
    fn parse(body: &str) -> Self {
        let body: JsonValue = serde_json::from_str(body).unwrap_or_default();
        let error = &body["error"];
        let text = |value: &JsonValue| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
        Self {
            kind: text(&error["type"]),
            code: text(&error["code"]),
            message: text(&error["message"]).or_else(|| text(error)),
            plan_type: text(&error["plan_type"]).map(Into::into),
            resets_at: error["resets_at"].as_f64().map(|seconds| seconds as i64),
        }
    }
}

impl From<Refusal<'_>> for ModelError {
    fn from(refusal: Refusal<'_>) -> Self {
        let error = ErrorDetail::parse(refusal.body);
        match (refusal.status.as_u16(), error.kind.as_deref(), error.code.as_deref()) {
            (400, ..) if refusal.body.contains(INVALID_IMAGE) => Self::InvalidImage,
            (400, _, Some("context_length_exceeded")) => Self::ContextWindowExceeded,
            (400, ..) => refusal.bad_request(&error),
            (429, Some("usage_limit_reached"), _) => refusal.usage_limit(&error),
            (429, Some("usage_not_included"), _) => Self::UsageNotIncluded,
            (429, ..) => Self::TooManyRequests { request_id: refusal.request_id(), retry_after: refusal.retry_after() },
            (500, ..) => Self::HighDemand { retry_after: refusal.retry_after() },
            (503, _, Some("server_is_overloaded" | "slow_down")) => Self::Overloaded,
            (status, ..) => {
                Self::Status { status, message: refusal.message(&error), retry_after: refusal.retry_after() }
            }
        }
    }
}

impl Refusal<'_> {
    fn bad_request(&self, error: &ErrorDetail) -> ModelError {
        let body = self.body.trim().to_owned();
        let message = error.message.clone().unwrap_or_else(|| body.clone());
        ModelError::BadRequest { message, body }
    }

    fn usage_limit(&self, error: &ErrorDetail) -> ModelError {
        let rate_limits = rate_limits::active(self.headers);
        let limit = UsageLimit {
            plan: error.plan_type.clone(),
            resets_at: error.resets_at,
            limit_name: rate_limits.limit_name.as_deref(),
            promo: self.header("x-codex-promo-message"),
        };
        ModelError::UsageLimit { message: limit.message(&Zoned::now()), rate_limits: Box::new(rate_limits) }
    }

    fn message(&self, error: &ErrorDetail) -> String {
        let mut message = match self.status {
            StatusCode::FORBIDDEN if self.body.contains("Cloudflare") && self.body.contains("blocked") => format!(
                "Access blocked by Cloudflare. This usually happens when connecting from a restricted region (status {})",
                self.status
            ),
            status => format!("unexpected status {status}: {}", self.detail(error)),
        };
        let ray = self.header("cf-ray").map(str::to_owned);
        let auth_error = self.header("x-openai-authorization-error").map(str::to_owned);
        for (what, value) in [
            ("url", Some(self.url.to_owned())),
            ("cf-ray", ray),
            ("request id", self.id_header()),
            ("auth error", auth_error),
            ("auth error code", self.auth_error_code()),
        ] {
            if let Some(value) = value {
                message += &format!(", {what}: {value}");
            }
        }
        message
    }

    fn detail(&self, error: &ErrorDetail) -> String {
        if let Some(message) = &error.message {
            return message.clone();
        }
        match self.body.trim() {
            "" => "Unknown error".into(),
            short if short.len() <= SHOWN_BODY => short.into(),
            long => format!("{}...", &long[..long.floor_char_boundary(SHOWN_BODY)]),
        }
    }

    fn id_header(&self) -> Option<String> {
        self.header("x-request-id").or(self.header("x-oai-request-id")).map(Into::into)
    }

    fn request_id(&self) -> Option<String> {
        self.id_header().or_else(|| self.header("cf-ray").map(Into::into))
    }

    fn auth_error_code(&self) -> Option<String> {
        let json = STANDARD.decode(self.header("x-error-json")?).ok()?;
        let body: JsonValue = serde_json::from_slice(&json).ok()?;
        body["error"]["code"].as_str().map(Into::into)
    }

    /// Only where trying again makes sense.
    fn retry_after(&self) -> Option<std::time::Duration> {
        let sensible = self.status == StatusCode::TOO_MANY_REQUESTS || self.status.is_server_error();
        sensible.then(|| retry::asked_by_header(self.headers, SystemTime::now()))?
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok().map(str::trim).filter(|text| !text.is_empty())
    }
}
