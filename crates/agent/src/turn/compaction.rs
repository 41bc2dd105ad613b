//! Compaction: replaces a long conversation by the newest user messages and a summary of the rest.

use loomd_ledger::Purpose;
use loomd_model::{InputItem, ModelError, ModelEvent, Tools, retry_delay};
use loomd_protocol::{
    CodexErrorInfo, ContextCompactedNotification, ResponseItem, ServerNotification, ThreadItem, TurnError,
};
use loomd_store::rollout::{Compacted, ContextCompacted, Event, Record, TruncationPolicy};
use std::sync::Arc;
use tracing::Instrument;
use uuid::Uuid;

use super::model_call::{model_span, record_outcome};
use super::task::{Failure, TurnTask};
use crate::context;
use crate::markers;
use crate::message::{message, text_of};
use crate::prompts;
use crate::replay::CallPurpose;
use crate::truncate::{BYTES_PER_TOKEN, truncate};

/// The most tokens of user messages that are kept beside a summary.
const KEPT_TOKENS: usize = 20_000;

/// When a conversation is compacted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CompactionTime {
    /// Before the first model call of a turn, or as a turn of its own.
    Between,
    /// Between two model calls of a turn.
    Midway,
}

impl TurnTask {
    /// A turn that only compacts.
    pub(super) async fn compact(&mut self) -> Result<(), Failure> {
        self.summarise(CompactionTime::Between).await
    }

    pub(super) async fn compact_if_full(&mut self) -> Result<(), Failure> {
        if self.is_full() { self.summarise(CompactionTime::Between).await } else { Ok(()) }
    }

    pub(super) async fn compact_midway(&mut self) -> Result<(), Failure> {
        self.summarise(CompactionTime::Midway).await
    }

    async fn summarise(&mut self, when: CompactionTime) -> Result<(), Failure> {
        self.within_budgets().await?;
        let id = Uuid::new_v4().to_string();
        let item = ThreadItem::ContextCompaction { id: id.clone() };
        self.cx.started(item.clone()).await;
        self.replay_model_call(CallPurpose::Summary);
        let replaced = match self.session.provider().supports_compaction() {
            true => self.remote_history().await,
            false => self.local_history().await,
        };
        let (message, mut history) = match replaced {
            Ok(replaced) => replaced,
            Err(failure) => {
                self.cx.show_completed(item).await;
                return Err(failure);
            }
        };
        let context = match when {
            CompactionTime::Between => None,
            CompactionTime::Midway => Some(self.insert_context(&mut history).await),
        };
        self.conversation.replace(&history);
        if self.scope.records {
            let compacted = Compacted { message, replacement_history: Some(history) };
            self.cx.note(&[Record::Compacted(compacted)]).await;
        }
        if let Some(context) = context {
            if self.scope.records {
                self.cx.note(&[Record::TurnContext(Box::new(context.clone()))]).await;
            }
            self.conversation.baseline = Some(context);
        }
        self.estimate().await;
        let event = Event::ContextCompacted(ContextCompacted { item_id: Some(id) });
        self.cx.completed(item, Some(event)).await;
        self.cx
            .publish(ServerNotification::ThreadCompacted(ContextCompactedNotification {
                thread_id: self.cx.thread_id.clone(),
                turn_id: self.cx.turn_id.clone(),
            }))
            .await;
        Ok(())
    }

    /// Inserts the context before the last user message, so that the summary stays the last item.
    async fn insert_context(&mut self, history: &mut Vec<ResponseItem>) -> loomd_store::rollout::TurnContext {
        let cx = self.prompt_context();
        let (items, context) = (context::initial(&cx).await, cx.record());
        let at = history.iter().rposition(is_user_message).unwrap_or(history.len().saturating_sub(1));
        history.splice(at..at, items);
        context
    }

    /// The new history with a summary by the thread's own model.
    async fn local_history(&mut self) -> Result<(String, Vec<ResponseItem>), Failure> {
        let summary = self.summary().await?;
        let mut history = kept(&self.conversation.user_texts());
        history.push(message("user", prompts::summary_message(&summary)));
        Ok((summary, history))
    }

    async fn summary(&mut self) -> Result<String, Failure> {
        let configured = self.cx.profile.config.compact_prompt.clone();
        let prompt = message("user", configured.unwrap_or_else(|| prompts::COMPACTION_PROMPT.into()));
        let retries = self.session.provider().stream_max_retries();
        // Items that do not fit into the window are left out of the request, not of the conversation.
        let mut asked = self.conversation.clone();
        let mut attempt = 0;
        loop {
            let mut input = asked.input(self.sees_images());
            input.extend(InputItem::new(&prompt));
            let span = model_span(&self.cx.settings.model, "summary");
            let answered = self.stream_text(input).instrument(span.clone()).await;
            record_outcome(&span, &answered);
            let error = match answered {
                Ok(text) => return Ok(text),
                Err(Failure::Model(error)) => error,
                Err(failure) => return Err(failure),
            };
            if error.is_context_window_exceeded() && asked.drop_oldest() && !asked.is_empty() {
                continue;
            }
            if !error.retryable() || attempt >= retries {
                return Err(error.into());
            }
            attempt += 1;
            self.announce_retry(&error, attempt, retries).await;
            self.pause(error.retry_after().unwrap_or_else(|| retry_delay(attempt))).await?;
        }
    }

    async fn stream_text(&mut self, input: Vec<InputItem>) -> Result<String, Failure> {
        let mut request = self.request(input);
        request.tools = Arc::new(Tools::default());
        request.parallel_tool_calls = false;
        request.output_schema = None;
        let meter = self.cx.begin_model_call(Purpose::Compaction, &mut request);
        let cancel = self.cx.cancel.clone();
        let work = async {
            let mut events = self.session.stream(&request, meter).await?;
            let mut text = String::new();
            let mut counted = None;
            while let Some(event) = events.next().await {
                match event? {
                    ModelEvent::ItemDone { item, .. } => {
                        if matches!(&item, ResponseItem::Message { role, .. } if role == "assistant") {
                            text = text_of(&item);
                        }
                    }
                    ModelEvent::Completed { usage, .. } => {
                        counted = usage;
                        break;
                    }
                    _ => {}
                }
            }
            Ok::<_, ModelError>((text, counted))
        };
        let (text, usage) = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::Interrupted),
            answered = work => answered?,
        };
        self.count(usage).await;
        Ok(text)
    }

    /// The new history from the provider's compaction endpoint, whose summary is opaque.
    async fn remote_history(&mut self) -> Result<(String, Vec<ResponseItem>), Failure> {
        let mut request = self.request(self.conversation.input(self.sees_images()));
        request.output_schema = None;
        let meter = self.cx.begin_model_call(Purpose::Compaction, &mut request);
        let cancel = self.cx.cancel.clone();
        let items = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::Interrupted),
            items = self.session.compact(&request, meter) => {
                items.map_err(|error| remote_failure(error, self.session.provider().name()))?
            }
        };
        let stays = |item: &ResponseItem| match item {
            ResponseItem::Message { role, .. } if role == "assistant" => true,
            ResponseItem::Compaction { .. } => true,
            item => is_user_message(item),
        };
        Ok((String::new(), items.into_iter().filter(stays).collect()))
    }
}

fn remote_failure(error: ModelError, provider: &str) -> Failure {
    Failure::Other(TurnError {
        message: format!("Error running remote compact task: {}", error.message()),
        codex_error_info: Some(match error.info() {
            CodexErrorInfo::Other => CodexErrorInfo::Other,
            info => info,
        }),
        additional_details: error.details(provider),
    })
}

fn is_user_message(item: &ResponseItem) -> bool {
    matches!(item, ResponseItem::Message { role, content, .. } if role == "user" && !markers::is_context(content))
}

/// The newest user messages that fit into [`KEPT_TOKENS`], oldest first. The first one loses its middle when it fits
/// only in part.
fn kept(texts: &[String]) -> Vec<ResponseItem> {
    let mut room = KEPT_TOKENS * BYTES_PER_TOKEN;
    let mut kept = Vec::new();
    for text in texts.iter().rev() {
        if room == 0 {
            break;
        }
        if text.len() <= room {
            room -= text.len();
            kept.push(message("user", text.clone()));
        } else {
            let cut = truncate(text, TruncationPolicy::Tokens((room / BYTES_PER_TOKEN) as u64));
            kept.push(message("user", cut.text));
            room = 0;
        }
    }
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compaction_keeps_the_newest_user_messages_whole() {
        let long = "x".repeat(KEPT_TOKENS * BYTES_PER_TOKEN - 10);
        let texts = ["dropped".to_owned(), "y".repeat(400), long.clone(), "last".into()];
        let kept: Vec<String> = kept(&texts).iter().map(text_of).collect();
        assert_eq!(kept.len(), 3);
        assert_eq!(kept[0], "y…99 tokens truncated…y".replace("y…", "yy…").replace("…y", "…yy"));
        assert_eq!(&kept[1..], &[long, "last".to_owned()]);
    }
}
