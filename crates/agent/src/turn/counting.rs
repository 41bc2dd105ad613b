//! Counting the tokens of a turn, and publishing the counts.

use loomd_model::TokenUsage;
use loomd_protocol::{
    AccountRateLimitsUpdatedNotification, RateLimitSnapshot, ServerNotification, ThreadTokenUsageUpdatedNotification,
};
use loomd_store::rollout::{Event, Record, TokenCount, TokenUsage as StoredUsage};

use super::task::TurnTask;
use super::usage::{as_count, stored, stored_limits, sum, window, wire};
use crate::truncate::tokens;

/// The percentage of the context window at which a conversation is compacted.
const COMPACT_AT: i64 = 90;

impl TurnTask {
    /// Adds the usage of one model call to the thread's total and publishes it.
    pub(super) async fn count(&mut self, usage: Option<TokenUsage>) {
        if let Some(last) = usage {
            self.goals.count(&last);
            let last = stored(&last);
            let mut info = self.conversation.usage.unwrap_or_default();
            info.total_token_usage = sum(info.total_token_usage, last);
            info.last_token_usage = last;
            info.model_context_window = Some(window(&self.cx.model));
            self.conversation.usage = Some(info);
            self.add_to_turn(last);
        }
        self.publish_usage().await;
        self.publish_rate_limits().await;
    }

    fn add_to_turn(&self, used: StoredUsage) {
        let mut usage = self.cx.usage.lock();
        *usage = Some(sum(usage.unwrap_or_default(), used));
    }

    /// Adds the usage of model calls outside of the conversation, such as approval reviews, to the thread's total.
    pub(super) async fn count_side_calls(&mut self) {
        let Some(used) = self.cx.take_side_usage() else { return };
        let used = stored(&used);
        self.add_to_turn(used);
        let mut info = self.conversation.usage.unwrap_or_default();
        info.total_token_usage = sum(info.total_token_usage, used);
        info.model_context_window = Some(window(&self.cx.model));
        self.conversation.usage = Some(info);
        self.publish_usage().await;
    }

    /// Estimates the usage after a compaction from the length of the conversation.
    pub(super) async fn estimate(&mut self) {
        let bytes = self.conversation.bytes() + self.scope.instructions.len();
        let mut info = self.conversation.usage.unwrap_or_default();
        info.last_token_usage = StoredUsage { total_tokens: as_count(tokens(bytes)), ..StoredUsage::default() };
        info.model_context_window = Some(window(&self.cx.model));
        self.conversation.usage = Some(info);
        self.publish_usage().await;
    }

    /// Sets the usage to a full window: the provider refused the request as too long.
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

    /// Whether the conversation has to be compacted before the next model call.
    pub(super) fn is_full(&self) -> bool {
        let Some(usage) = self.conversation.usage else { return false };
        let ceiling = self.cx.model.context_window.saturating_mul(COMPACT_AT) / 100;
        let limit = self.cx.model.auto_compact_token_limit.map_or(ceiling, |limit| limit.min(ceiling));
        let since = as_count(tokens(self.conversation.bytes_since_model()));
        usage.last_token_usage.total_tokens.saturating_add(since) >= limit
    }

    async fn publish_usage(&mut self) {
        let Some(info) = self.conversation.usage else { return };
        if self.is_persisted() {
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

    /// Merges a new snapshot of rate limits: credits and plan stay as they were when it has none. A snapshot with limits is
    /// published at once.
    pub(super) async fn take_rate_limits(&mut self, mut limits: RateLimitSnapshot) {
        let has_limits = limits.primary.is_some() || limits.secondary.is_some() || limits.credits.is_some();
        limits.credits = limits.credits.or_else(|| self.rate_limits.credits.take());
        limits.plan_type = limits.plan_type.or_else(|| self.rate_limits.plan_type.take());
        self.rate_limits = limits;
        if has_limits {
            self.publish_rate_limits().await;
        }
    }
}
