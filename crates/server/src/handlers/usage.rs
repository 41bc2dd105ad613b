//! `account/usage/read`: from the ledger of the home, whatever the provider.

use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use loomd_agent::parse_id;
use loomd_ledger::{Entry, Group, Ledger, Summary, Usage};
use loomd_protocol::{
    AccountTokenUsageDailyBucket, AccountTokenUsageSummary, GetAccountTokenUsageParams, GetAccountTokenUsageResponse,
    RpcError, ThreadUsage, ThreadUsageBreakdownGroup, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `account/usage/read`
pub(crate) async fn read(cx: &Context, params: GetAccountTokenUsageParams) -> Handled<call::AccountUsageRead> {
    let thread = params.thread_id.map(|id| parse_id(&id)).transpose().map_err(wire_error)?;
    let metering = Arc::clone(cx.app.agent.metering());
    let read = tokio::task::spawn_blocking(move || {
        metering.flush();
        usage(metering.ledger(), thread.map(|id| id.to_string()))
    });
    answer(read.await.map_err(|_| RpcError::internal("the ledger could not be read"))?)
}

fn usage(ledger: &Ledger, thread: Option<String>) -> GetAccountTokenUsageResponse {
    let mut of_thread = Vec::new();
    let all = ledger.entries(Date::MIN..=Date::MAX).inspect(|entry| {
        if thread.as_ref().is_some_and(|id| entry.is_of(id)) {
            of_thread.push(entry.clone());
        }
    });
    let summary = Summary::of(all);
    let today = loomd_ledger::today(Timestamp::now());
    GetAccountTokenUsageResponse {
        summary: AccountTokenUsageSummary {
            lifetime_tokens: Some(count(summary.tokens())),
            peak_daily_tokens: Some(count(summary.peak())),
            longest_running_turn_sec: Some(count(summary.longest_turn_ms / 1000)),
            current_streak_days: Some(count(summary.current_streak(today))),
            longest_streak_days: Some(count(summary.longest_streak())),
        },
        daily_usage_buckets: Some(
            summary
                .days
                .iter()
                .map(|(day, tokens)| AccountTokenUsageDailyBucket {
                    start_date: day.to_string(),
                    tokens: count(*tokens),
                })
                .collect(),
        ),
        thread_usage: thread.map(|thread_id| thread_usage(thread_id, of_thread)),
    }
}

fn thread_usage(thread_id: String, entries: Vec<Entry>) -> ThreadUsage {
    let models = Usage::by(Group::Model, entries);
    let priced = !models.is_empty() && models.values().all(|usage| usage.unpriced == 0);
    let price: u64 = models.values().map(|usage| usage.price).sum::<loomd_ledger::Money>().0 / 1000;
    ThreadUsage {
        thread_id,
        estimated_usage_credits_micros: 0,
        estimated_usage_usd_micros: priced.then(|| count(price)),
        native_usage_usd_micros: None,
        groups: models
            .into_iter()
            .map(|(model, Usage { tokens, .. })| ThreadUsageBreakdownGroup {
                model: Some(model),
                input_tokens: Some(count(tokens.input)),
                cached_input_tokens: Some(count(tokens.cached_input)),
                net_new_input_tokens: Some(count(tokens.input.saturating_sub(tokens.cached_input))),
                output_tokens: Some(count(tokens.output)),
                total_tokens: Some(count(tokens.total())),
                ..ThreadUsageBreakdownGroup::default()
            })
            .collect(),
    }
}

fn count(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
