//! What a refusal of the Responses API means.

use jiff::Zoned;

use super::usage_limit::UsageLimit;
use crate::refusal::{ErrorDetail, Refusal};
use crate::{ModelError, rate_limits};

const INVALID_IMAGE: &str = "The image data you provided does not represent a valid image";

pub(super) fn meaning(refusal: &Refusal<'_>) -> ModelError {
    let error = ErrorDetail::parse(refusal.body);
    match (refusal.status.as_u16(), error.kind.as_deref(), error.code.as_deref()) {
        (400, ..) if refusal.body.contains(INVALID_IMAGE) => ModelError::InvalidImage,
        (400, _, Some("context_length_exceeded")) => ModelError::ContextWindowExceeded,
        (400, ..) => refusal.bad_request(&error),
        (429, Some("usage_limit_reached"), _) => usage_limit(refusal, &error),
        (429, Some("usage_not_included"), _) => ModelError::UsageNotIncluded,
        (429, ..) => refusal.too_many_requests(),
        (500, ..) => ModelError::HighDemand { retry_after: refusal.retry_after() },
        (503, _, Some("server_is_overloaded" | "slow_down")) => ModelError::Overloaded,
        _ => refusal.unexpected(&error),
    }
}

fn usage_limit(refusal: &Refusal<'_>, error: &ErrorDetail) -> ModelError {
    let rate_limits = rate_limits::active(refusal.headers);
    let limit = UsageLimit {
        plan: error.plan_type.clone(),
        resets_at: error.resets_at,
        limit_name: rate_limits.limit_name.as_deref(),
        promo: refusal.header("x-codex-promo-message"),
    };
    ModelError::UsageLimit { message: limit.message(&Zoned::now()), rate_limits: Box::new(rate_limits) }
}
