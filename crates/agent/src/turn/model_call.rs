//! Calls of the model: the request, retries, and the stream of one answer.

use std::sync::Arc;
use std::time::Duration;

use loomd_ledger::Purpose;
use loomd_model::{ModelError, ModelEvent, Reasoning, Request, retry_delay};
use loomd_protocol::{
    CodexErrorInfo, InputModality, ServerNotification, TurnError, TurnModerationMetadataNotification,
};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::answer::Answer;
use super::metadata;
use super::task::{Failure, TurnTask};
use crate::context::reasoning_summary;

impl TurnTask {
    /// One answer of the model, with retries, and the outputs of its tool calls. Returns whether it called any.
    pub(super) async fn step(&mut self) -> Result<bool, Failure> {
        self.progress.asked = true;
        let retries = self.session.provider().stream_max_retries();
        let mut attempt = 0;
        loop {
            let answered = self.attempt().await;
            let called = self.collect_outputs().await;
            self.count_side_calls().await;
            let error = match answered {
                _ if self.cx.cancel.is_cancelled() => return Err(Failure::Interrupted),
                Ok(()) => return Ok(called),
                // The next model call continues from the outputs of the calls.
                Err(Failure::Model(error)) if called && error.is_incomplete() => return Ok(true),
                Err(Failure::Model(error)) => error,
                Err(failure) => return Err(failure),
            };
            if let Some(limits) = error.rate_limits() {
                self.rate_limits = limits.clone();
                self.publish_rate_limits().await;
            }
            if error.is_invalid_image() && self.conversation.drop_last_images("Invalid image") {
                continue;
            }
            if error.is_context_window_exceeded() {
                self.show_full_window().await;
            }
            if !error.retryable() {
                return Err(error.into());
            }
            if attempt >= retries {
                if !self.session.fall_back_to_http() {
                    return Err(error.into());
                }
                attempt = 0;
                continue;
            }
            attempt += 1;
            self.announce_retry(&error, attempt, retries).await;
            self.pause(error.retry_after().unwrap_or_else(|| retry_delay(attempt))).await?;
        }
    }

    /// Publishes an error with the number of the retry.
    pub(super) async fn announce_retry(&self, error: &ModelError, attempt: u64, retries: u64) {
        let details = error.details(self.session.provider().name());
        let details = details.map(|details| format!("; {details}")).unwrap_or_default();
        let error = TurnError {
            message: format!("Reconnecting... {attempt}/{retries}"),
            codex_error_info: Some(CodexErrorInfo::ResponseStreamDisconnected {
                http_status_code: error.http_status(),
            }),
            additional_details: Some(format!("{}{details}", error.message())),
        };
        self.cx.error(error, true).await;
    }

    pub(super) async fn pause(&self, delay: Duration) -> Result<(), Failure> {
        tokio::select! {
            () = self.cx.cancel.cancelled() => Err(Failure::Interrupted),
            () = tokio::time::sleep(delay) => Ok(()),
        }
    }

    /// One call of the model, in a span of its own.
    async fn attempt(&mut self) -> Result<(), Failure> {
        let span = model_span(&self.cx.settings.model, "answer");
        let answered = self.stream_answer().instrument(span.clone()).await;
        record_outcome(&span, &answered);
        answered
    }

    /// Streams one answer. Tools run while the rest of it is still coming in.
    async fn stream_answer(&mut self) -> Result<(), Failure> {
        let mut request = self.request(self.conversation.input(self.sees_images()));
        let purpose = if self.scope.records { Purpose::Turn } else { Purpose::Review };
        let meter = self.cx.begin_model_call(purpose, &mut request);
        let cancel = self.cx.cancel.clone();
        let mut events = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::Interrupted),
            events = self.session.stream(&request, meter) => events?,
        };
        drop(request);
        let mut answer = Answer::default();
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    self.end_open_items(&mut answer, true).await;
                    return Err(Failure::Interrupted);
                }
                event = events.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::Completed { usage, .. })) => {
                    self.end_open_items(&mut answer, true).await;
                    self.count(usage).await;
                    return Ok(());
                }
                Some(Ok(event)) => self.take(&mut answer, event).await,
                Some(Err(error)) => {
                    self.end_open_items(&mut answer, error.is_incomplete()).await;
                    if error.usage().is_some() {
                        self.count(error.usage().cloned()).await;
                    }
                    return Err(error.into());
                }
                None => return Ok(()),
            }
        }
    }

    async fn take(&mut self, answer: &mut Answer, event: ModelEvent) {
        match event {
            ModelEvent::Headers(headers) => {
                if self.progress.turn_state.is_none() {
                    self.progress.turn_state = headers.turn_state;
                }
                for limits in headers.rate_limits {
                    self.take_rate_limits(limits).await;
                }
                if let Some(model) = headers.model {
                    self.answered_by(model).await;
                }
            }
            ModelEvent::ServerModel(model) => self.answered_by(model).await,
            ModelEvent::RateLimits(limits) => self.take_rate_limits(limits).await,
            ModelEvent::Moderation(metadata) => {
                let (thread_id, turn_id) = (self.cx.thread_id.clone(), self.cx.turn_id.clone());
                let moderation = TurnModerationMetadataNotification { thread_id, turn_id, metadata };
                self.cx.publish(ServerNotification::TurnModerationMetadata(moderation)).await;
            }
            event => self.item_event(answer, event).await,
        }
    }

    pub(crate) fn sees_images(&self) -> bool {
        self.cx.model.input_modalities.contains(&InputModality::Image)
    }

    pub(crate) fn request(&self, input: Vec<loomd_model::InputItem>) -> Request {
        let (cx, config) = (&self.cx, &self.cx.profile.config.config);
        let steps = cx.steps();
        let changed = steps.model.as_ref().map(|model| cx.profile.model(model));
        let info = changed.as_ref().unwrap_or(&cx.model);
        let summary = steps.summary.unwrap_or_else(|| reasoning_summary(&cx.settings, &cx.profile, info));
        let effort = steps.effort.or_else(|| cx.settings.reasoning_effort.clone());
        Request {
            model: steps.model.unwrap_or_else(|| cx.settings.model.clone()),
            instructions: Arc::clone(&self.scope.instructions),
            input,
            tools: self.toolbox.offered(),
            parallel_tool_calls: info.parallel_tool_calls,
            // Newer releases send an effort that was asked for to models that they do not know.
            reasoning: (info.supports_reasoning_summaries
                || (cx.profile.has_newer_tools() && !info.known && effort.is_some()))
            .then(|| Reasoning {
                effort: effort.or_else(|| info.default_effort.clone()),
                summary: (summary != loomd_protocol::ReasoningSummary::None).then_some(summary),
            }),
            verbosity: config.model_verbosity.or(info.default_verbosity).filter(|_| info.supports_verbosity),
            output_schema: self.progress.output_schema.clone(),
            service_tier: steps
                .service_tier
                .unwrap_or_else(|| self.progress.labels.service_tier.clone().or(cx.settings.service_tier.clone())),
            prompt_cache_key: self.scope.session_id.clone(),
            headers: metadata::headers(self),
        }
    }

    pub(super) fn turn_error(&self, error: &ModelError) -> TurnError {
        let mut message = error.message();
        if self.cx.profile.has_newer_tools()
            && error.info() == CodexErrorInfo::RateLimitExceeded
            && let Some(reason) = message.strip_prefix("stream disconnected before completion: ")
        {
            message = format!("rate limit exceeded: {reason}");
        }
        TurnError {
            message,
            codex_error_info: Some(error.info()),
            additional_details: error.details(self.session.provider().name()),
        }
    }
}

/// The span of a model call. The spans around it name the thread and the turn.
pub(super) fn model_span(model: &str, purpose: &'static str) -> Span {
    tracing::debug_span!("model_call", model, purpose, outcome = Empty)
}

pub(super) fn record_outcome<T>(span: &Span, answered: &Result<T, Failure>) {
    let outcome = match answered {
        Ok(_) => "completed",
        Err(Failure::Interrupted) => "interrupted",
        Err(Failure::Model(_) | Failure::Other(_)) => "failed",
    };
    span.record("outcome", outcome);
}
