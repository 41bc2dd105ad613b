//! Maps error responses of the Responses API to [`ModelError`].

use jiff::Zoned;

use super::usage_limit::UsageLimit;
use crate::error::NamedFailure;
use crate::refusal::{ErrorDetail, Refusal, is_bad_image, is_too_long};
use crate::{ModelError, rate_limits};

pub(super) fn to_error(refusal: &Refusal<'_>) -> ModelError {
    let error = ErrorDetail::parse_any(refusal.body);
    let provider_message = || refusal.provider_message(&error);
    match (refusal.status.as_u16(), error.kind.as_deref(), error.code.as_deref()) {
        (400 | 413 | 422 | 500, ..) if is_too_long(refusal.body) => {
            ModelError::ContextWindowExceeded { provider_message: provider_message() }
        }
        (400 | 422, ..) if is_bad_image(refusal.body) => ModelError::InvalidImage,
        (400 | 404, _, Some("model_not_found")) => named(NamedFailure::ModelNotFound, error),
        (400, _, Some("cyber_policy")) => named(NamedFailure::CyberPolicy, error),
        (400 | 413 | 422, ..) => refusal.bad_request(&error),
        (429, Some("usage_limit_reached"), _) => usage_limit(refusal, &error),
        (429, Some("usage_not_included"), _) => ModelError::UsageNotIncluded,
        (402, ..) | (429, _, Some("insufficient_quota")) => {
            ModelError::QuotaExceeded { provider_message: provider_message() }
        }
        (429, ..) => refusal.too_many_requests(&error),
        (500, ..) => refusal.high_demand(&error),
        (503, _, Some("server_is_overloaded" | "slow_down")) => {
            ModelError::Overloaded { provider_message: provider_message() }
        }
        _ => refusal.unexpected(&error),
    }
}

fn named(failure: NamedFailure, error: ErrorDetail) -> ModelError {
    ModelError::Named { failure, message: failure.message(error.message), retry_after: None }
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
