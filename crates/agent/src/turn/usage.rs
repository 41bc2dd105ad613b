//! Token counts and rate limits as the wire and the rollout spell them.

use loomd_model::{ModelInfo, TokenUsage};
use loomd_protocol::{CreditsSnapshot, RateLimitSnapshot, RateLimitWindow, ThreadTokenUsage, TokenUsageBreakdown};
use loomd_store::rollout::{TokenUsage as StoredUsage, TokenUsageInfo};

/// The usable part of the context window, in tokens.
pub(crate) fn window(model: &ModelInfo) -> i64 {
    model.context_window.saturating_mul(model.usable_window_percent) / 100
}

/// The usage in a rollout's record, as the wire spells it.
pub(crate) fn wire(usage: &TokenUsageInfo) -> ThreadTokenUsage {
    ThreadTokenUsage {
        total: breakdown(usage.total_token_usage),
        last: breakdown(usage.last_token_usage),
        model_context_window: usage.model_context_window,
    }
}

/// The rate limits before the provider has sent any.
pub(crate) fn no_limits() -> RateLimitSnapshot {
    RateLimitSnapshot {
        limit_id: Some("codex".into()),
        limit_name: None,
        primary: None,
        secondary: None,
        credits: None,
        plan_type: None,
    }
}

/// Rate limits as a rollout spells them; `None` when nothing is known.
pub(super) fn stored_limits(limits: &RateLimitSnapshot) -> Option<serde_json::Value> {
    let window = |window: &RateLimitWindow| {
        serde_json::json!({
            "used_percent": f64::from(window.used_percent),
            "window_minutes": window.window_duration_mins,
            "resets_at": window.resets_at,
        })
    };
    let credits = |credits: &CreditsSnapshot| {
        serde_json::json!({
            "has_credits": credits.has_credits, "unlimited": credits.unlimited, "balance": credits.balance,
        })
    };
    let known = limits.primary.is_some() || limits.secondary.is_some() || limits.credits.is_some();
    known.then(|| {
        serde_json::json!({
            "limit_id": limits.limit_id,
            "limit_name": limits.limit_name,
            "primary": limits.primary.as_ref().map(window),
            "secondary": limits.secondary.as_ref().map(window),
            "credits": limits.credits.as_ref().map(credits),
            "plan_type": limits.plan_type,
        })
    })
}

pub(super) fn as_count(tokens: usize) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

pub(super) fn stored(usage: &TokenUsage) -> StoredUsage {
    StoredUsage {
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        cache_write_input_tokens: usage.cache_write_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.reasoning_output_tokens,
        total_tokens: usage.total_tokens,
    }
}

pub(crate) fn breakdown(usage: StoredUsage) -> TokenUsageBreakdown {
    TokenUsageBreakdown {
        total_tokens: usage.total_tokens,
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        cache_write_input_tokens: usage.cache_write_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.reasoning_output_tokens,
    }
}

pub(super) fn sum(a: StoredUsage, b: StoredUsage) -> StoredUsage {
    StoredUsage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        cached_input_tokens: a.cached_input_tokens.saturating_add(b.cached_input_tokens),
        cache_write_input_tokens: a.cache_write_input_tokens.saturating_add(b.cache_write_input_tokens),
        output_tokens: a.output_tokens.saturating_add(b.output_tokens),
        reasoning_output_tokens: a.reasoning_output_tokens.saturating_add(b.reasoning_output_tokens),
        total_tokens: a.total_tokens.saturating_add(b.total_tokens),
    }
}

#[cfg(test)]
mod tests {
    use loomd_model::Catalogue;

    use super::*;

    #[test]
    fn the_window_is_the_usable_percentage_of_the_catalogue() {
        let mut model = Catalogue::bundled().find("scripted-model");
        (model.context_window, model.usable_window_percent) = (1000, 80);
        assert_eq!(window(&model), 800);
    }
}
