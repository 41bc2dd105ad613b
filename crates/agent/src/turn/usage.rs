//! Counting tokens, and telling how many have been used.

use loomd_model::{ModelInfo, TokenUsage};
use loomd_protocol::{
    AccountRateLimitsUpdatedNotification, CreditsSnapshot, RateLimitSnapshot, RateLimitWindow, ServerNotification,
    ThreadTokenUsage, ThreadTokenUsageUpdatedNotification, TokenUsageBreakdown,
};
use loomd_store::rollout::{Event, Record, TokenCount, TokenUsage as StoredUsage, TokenUsageInfo};

use super::TurnTask;
use crate::truncate::tokens;

/// The part of a window that may be full before the conversation is summarised, in percent.
const COMPACT_AT: i64 = 90;

/// The window as clients are told it.
pub(crate) fn window(model: &ModelInfo) -> i64 {
    model.context_window.saturating_mul(model.usable_window_percent) / 100
}

/// What a rollout knows of usage, as clients are told it.
pub(crate) fn wire(usage: &TokenUsageInfo) -> ThreadTokenUsage {
    ThreadTokenUsage {
        total: breakdown(usage.total_token_usage),
        last: breakdown(usage.last_token_usage),
        model_context_window: usage.model_context_window,
    }
}

impl TurnTask {
    /// Takes the count of one call and tells the sum.
    pub(super) async fn count(&mut self, usage: Option<TokenUsage>) {
        if let Some(last) = usage {
            let last = stored(&last);
            let mut info = self.conversation.usage.unwrap_or_default();
            info.total_token_usage = sum(info.total_token_usage, last);
            info.last_token_usage = last;
            info.model_context_window = Some(window(&self.cx.model));
            self.conversation.usage = Some(info);
        }
        self.publish_usage().await;
        self.publish_rate_limits().await;
    }

    /// Adds what calls beside the conversation took, such as those of the reviewer, to the thread's sum.
    pub(super) async fn count_side_calls(&mut self) {
        let Some(used) = self.cx.take_side_usage() else { return };
        let mut info = self.conversation.usage.unwrap_or_default();
        info.total_token_usage = sum(info.total_token_usage, stored(&used));
        info.model_context_window = Some(window(&self.cx.model));
        self.conversation.usage = Some(info);
        self.publish_usage().await;
    }

    /// After a summary: what is left is only known by its length.
    pub(super) async fn estimate(&mut self) {
        let bytes = self.conversation.bytes() + self.scope.instructions.len();
        let mut info = self.conversation.usage.unwrap_or_default();
        info.last_token_usage = StoredUsage { total_tokens: as_count(tokens(bytes)), ..StoredUsage::default() };
        info.model_context_window = Some(window(&self.cx.model));
        self.conversation.usage = Some(info);
        self.publish_usage().await;
    }

    /// The provider says that the window is full, whatever was counted.
    pub(super) async fn show_full_window(&mut self) {
        let mut info = self.conversation.usage.unwrap_or_default();
        let window = window(&self.cx.model);
        let full = StoredUsage { total_tokens: window, ..StoredUsage::default() };
        let difference = window.saturating_sub(info.total_token_usage.total_tokens).max(0);
        info.last_token_usage = StoredUsage { total_tokens: difference, ..StoredUsage::default() };
        info.total_token_usage = full;
        info.model_context_window = Some(window);
        self.conversation.usage = Some(info);
        self.publish_usage().await;
    }

    /// Whether the conversation has to be summarised before it goes on.
    pub(super) fn is_full(&self) -> bool {
        let Some(usage) = self.conversation.usage else { return false };
        let ceiling = self.cx.model.context_window.saturating_mul(COMPACT_AT) / 100;
        let limit = self.cx.model.auto_compact_token_limit.map_or(ceiling, |limit| limit.min(ceiling));
        let since = as_count(tokens(self.conversation.bytes_since_model()));
        usage.last_token_usage.total_tokens.saturating_add(since) >= limit
    }

    async fn publish_usage(&mut self) {
        let Some(info) = self.conversation.usage else { return };
        if self.keeps() {
            let count = TokenCount { info: Some(info), rate_limits: stored_limits(&self.rate_limits) };
            self.cx.note(&[Record::EventMsg(Event::TokenCount(count))]).await;
        }
        self.cx
            .publish(ServerNotification::ThreadTokenUsageUpdated(ThreadTokenUsageUpdatedNotification {
                thread_id: self.cx.thread_id.clone(),
                turn_id: self.cx.turn_id.clone(),
                token_usage: wire(&info),
            }))
            .await;
    }

    pub(super) async fn publish_rate_limits(&self) {
        let rate_limits = self.rate_limits.clone();
        let updated = AccountRateLimitsUpdatedNotification { rate_limits };
        self.cx.publish(ServerNotification::AccountRateLimitsUpdated(updated)).await;
    }

    /// What a new snapshot does not say of the account is still so. One that says something is told at once.
    pub(super) async fn take_rate_limits(&mut self, mut limits: RateLimitSnapshot) {
        let says_something = limits.primary.is_some() || limits.secondary.is_some() || limits.credits.is_some();
        limits.credits = limits.credits.or_else(|| self.rate_limits.credits.take());
        limits.plan_type = limits.plan_type.or_else(|| self.rate_limits.plan_type.take());
        self.rate_limits = limits;
        if says_something {
            self.publish_rate_limits().await;
        }
    }
}

/// What is known before a provider has said anything.
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
fn stored_limits(limits: &RateLimitSnapshot) -> Option<serde_json::Value> {
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

fn as_count(tokens: usize) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

fn stored(usage: &TokenUsage) -> StoredUsage {
    StoredUsage {
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.reasoning_output_tokens,
        total_tokens: usage.total_tokens,
    }
}

fn breakdown(usage: StoredUsage) -> TokenUsageBreakdown {
    TokenUsageBreakdown {
        total_tokens: usage.total_tokens,
        input_tokens: usage.input_tokens,
        cached_input_tokens: usage.cached_input_tokens,
        output_tokens: usage.output_tokens,
        reasoning_output_tokens: usage.reasoning_output_tokens,
    }
}

fn sum(a: StoredUsage, b: StoredUsage) -> StoredUsage {
    StoredUsage {
        input_tokens: a.input_tokens.saturating_add(b.input_tokens),
        cached_input_tokens: a.cached_input_tokens.saturating_add(b.cached_input_tokens),
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
    fn the_window_is_the_part_that_the_catalogue_calls_usable() {
        let mut model = Catalogue::bundled().find("scripted-model");
        (model.context_window, model.usable_window_percent) = (1000, 80);
        assert_eq!(window(&model), 800);
    }
}
