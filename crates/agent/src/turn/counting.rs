//! Counting the tokens of a turn, and publishing the counts.

use loomd_model::TokenUsage;
use loomd_protocol::{
    AccountRateLimitsUpdatedNotification, RateLimitSnapshot, ServerNotification, ThreadTokenUsageUpdatedNotification,
};
use loomd_store::rollout::{Event, Record, TokenCount, TokenUsage as StoredUsage};

use super::task::TurnTask;
use super::usage::{as_count, stored, stored_limits, sum, window, wire};
use crate::truncate::tokens;

/// The part of a window that may be full before the conversation is summarised, in percent.
const COMPACT_AT: i64 = 90;

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
