//! What a running turn and its tools share: who they work for, telling it, and writing it down first.

use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_model::{ModelInfo, TokenUsage};
use loomd_protocol::{
    CodexErrorInfo, ErrorNotification, ItemCompletedNotification, ItemStartedNotification, JsonValue, RpcError,
    ServerNotification, ServerRequest, ServerRequestResolvedNotification, ThreadItem, TurnError,
};
use loomd_store::rollout::{Error, Event, Record, TaskComplete};
use loomd_store::{Durability, Position, ThreadId};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::event_sink::PendingRequest;
use crate::grants::Grants;
use crate::hub::Hub;
use crate::recorder::Recorder;
use crate::settings::{Profile, Settings};
use crate::view::{Status, View};

/// How long a tool or a command may take to stop when its turn is interrupted.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The surroundings of one turn.
pub(crate) struct TurnCx {
    pub thread: ThreadId,
    pub thread_id: String,
    pub turn_id: String,
    /// As they were when the turn began.
    pub settings: Settings,
    pub profile: Arc<Profile>,
    pub model: ModelInfo,
    pub hub: Arc<Hub>,
    pub view: Arc<View>,
    /// The turn is to end, now.
    pub cancel: CancellationToken,
    /// The turn has ended.
    pub over: CancellationToken,
    log: Arc<Log>,
    /// What was granted for the rest of the turn.
    grants: Arc<Mutex<Grants>>,
    /// The tokens of model calls beside the conversation that are not in the thread's sum yet.
    side_usage: Arc<Mutex<Option<TokenUsage>>>,
}

/// Where a turn's records go.
struct Log {
    recorder: tokio::sync::Mutex<Recorder>,
    /// Why records could not be written; the turn fails then.
    broken: Mutex<Option<String>>,
}

impl TurnCx {
    #[expect(clippy::too_many_arguments, reason = "each is another piece of a turn's surroundings")]
    pub fn new(
        thread: ThreadId,
        turn_id: String,
        settings: Settings,
        profile: Arc<Profile>,
        model: ModelInfo,
        hub: Arc<Hub>,
        view: Arc<View>,
        cancel: CancellationToken,
        recorder: Recorder,
    ) -> Self {
        Self {
            thread,
            thread_id: thread.to_string(),
            turn_id,
            settings,
            profile,
            model,
            hub,
            view,
            cancel,
            over: CancellationToken::new(),
            log: Arc::new(Log { recorder: tokio::sync::Mutex::new(recorder), broken: Mutex::default() }),
            grants: Arc::default(),
            side_usage: Arc::default(),
        }
    }

    /// Takes the count of a model call that is not part of the conversation.
    pub fn add_side_usage(&self, usage: &TokenUsage) {
        let mut sum = self.side_usage.lock();
        *sum = Some(match sum.take() {
            None => usage.clone(),
            Some(before) => TokenUsage {
                total_tokens: before.total_tokens.saturating_add(usage.total_tokens),
                input_tokens: before.input_tokens.saturating_add(usage.input_tokens),
                cached_input_tokens: before.cached_input_tokens.saturating_add(usage.cached_input_tokens),
                output_tokens: before.output_tokens.saturating_add(usage.output_tokens),
                reasoning_output_tokens: before.reasoning_output_tokens.saturating_add(usage.reasoning_output_tokens),
            },
        });
    }

    /// The sum of those since the last time.
    pub fn take_side_usage(&self) -> Option<TokenUsage> {
        self.side_usage.lock().take()
    }

    /// Permissions beyond the policy, until the turn ends.
    pub fn grants(&self) -> Grants {
        self.grants.lock().clone()
    }

    pub fn grant(&self, more: &Grants) {
        self.grants.lock().extend(more);
    }

    /// The same turn with other settings, for a part of it that has its own.
    pub fn with(&self, settings: Settings) -> Self {
        Self {
            thread: self.thread,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            model: self.profile.model(&settings.model),
            settings,
            profile: Arc::clone(&self.profile),
            hub: Arc::clone(&self.hub),
            view: Arc::clone(&self.view),
            cancel: self.cancel.clone(),
            over: self.over.clone(),
            log: Arc::clone(&self.log),
            grants: Arc::clone(&self.grants),
            side_usage: Arc::clone(&self.side_usage),
        }
    }

    /// The end of the thread's records, as far as they were written here.
    pub async fn written(&self) -> Position {
        self.log.recorder.lock().await.end
    }

    pub async fn publish(&self, notification: ServerNotification) {
        self.hub.publish(notification).await;
    }

    /// Asks those who listen and waits for the answer; `None` when the turn is stopped before there is one.
    pub async fn request(&self, request: ServerRequest) -> Option<Result<JsonValue, String>> {
        self.request_unless(request, pending()).await
    }

    /// The same, and takes the question back when there is no more point in an answer.
    pub async fn request_unless(
        &self,
        request: ServerRequest,
        pointless: impl Future<Output = ()>,
    ) -> Option<Result<JsonValue, String>> {
        let approval = !matches!(request, ServerRequest::ToolUserInput(_));
        let waiting = |status: &mut Status, more: bool| {
            let open = if approval { &mut status.approvals } else { &mut status.questions };
            *open = if more { *open + 1 } else { open.saturating_sub(1) };
        };
        self.view.change(&self.hub, |status| waiting(status, true)).await;
        let PendingRequest { id, mut answer, open } = self.hub.request(&self.thread_id, request).await;
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered.ok().map(said),
            () = self.cancel.cancelled() => None,
            () = pointless => None,
        };
        drop(open);
        self.publish(ServerNotification::ServerRequestResolved(ServerRequestResolvedNotification {
            thread_id: self.thread_id.clone(),
            request_id: id,
        }))
        .await;
        self.view.change(&self.hub, |status| waiting(status, false)).await;
        answered
    }

    /// Has a client do something; `None` when the turn is stopped before it is done. NoSubscribers is told that
    /// anything is waited for.
    pub async fn call_client(&self, request: ServerRequest) -> Option<Result<JsonValue, String>> {
        let PendingRequest { mut answer, open, .. } = self.hub.request(&self.thread_id, request).await;
        let answered = tokio::select! {
            biased;
            answered = &mut answer => answered.ok().map(said),
            () = self.cancel.cancelled() => None,
        };
        drop(open);
        answered
    }

    /// Publishes that an item has begun; nothing when the turn can write no more.
    pub async fn started(&self, item: ThreadItem) {
        if self.is_broken() {
            return;
        }
        self.publish(ServerNotification::ItemStarted(ItemStartedNotification {
            item,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            started_at_ms: Timestamp::now().as_millisecond(),
        }))
        .await;
    }

    /// Records that an item is done, then publishes it. What could not be written is not shown.
    pub async fn completed(&self, item: ThreadItem, event: Option<Event>) {
        if let Some(event) = event {
            self.record(&[Record::EventMsg(event)]).await;
        } else {
            self.flush(Durability::Flushed).await;
        }
        self.show_completed(item).await;
    }

    /// Publishes that an item is done, once it has been written: nothing when the turn can write no more.
    pub async fn show_completed(&self, item: ThreadItem) {
        if self.is_broken() {
            return;
        }
        self.publish(ServerNotification::ItemCompleted(ItemCompletedNotification {
            item,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            completed_at_ms: Timestamp::now().as_millisecond(),
        }))
        .await;
    }

    /// Writes records down.
    pub async fn record(&self, records: &[Record]) {
        self.note(records).await;
        self.flush(Durability::Flushed).await;
    }

    /// Writes records of something that outlives turns. False when they are not written: the turn is over, or
    /// cannot write.
    pub async fn record_while_open(&self, records: &[Record]) -> bool {
        let mut recorder = self.log.recorder.lock().await;
        if recorder.is_closed() || self.is_broken() {
            return false;
        }
        let written = async {
            for record in records {
                recorder.note(record)?;
            }
            recorder.flush(Durability::Flushed).await
        };
        match written.await {
            Ok(()) => true,
            Err(error) => {
                self.broke(error.to_string());
                false
            }
        }
    }

    /// Takes records that are written with the next ones.
    pub async fn note(&self, records: &[Record]) {
        let mut recorder = self.log.recorder.lock().await;
        for record in records {
            if let Err(error) = recorder.note(record) {
                self.broke(error.to_string());
            }
        }
    }

    /// Waits until everything noted is written.
    pub async fn flush(&self, durability: Durability) {
        if let Err(error) = self.log.recorder.lock().await.flush(durability).await {
            self.broke(error.to_string());
        }
    }

    /// Writes down that the turn failed, and that it is over; unless nothing says that it began.
    pub async fn record_failure(&self, error: &TurnError) {
        if self.log.recorder.lock().await.is_untouched() {
            return;
        }
        let error =
            Error { message: error.message.clone(), codex_error_info: error.codex_error_info.clone().map(Into::into) };
        let over = TaskComplete { turn_id: self.turn_id.clone(), last_agent_message: None };
        self.note(&[Record::EventMsg(Event::Error(error)), Record::EventMsg(Event::TaskComplete(over))]).await;
        self.flush(Durability::Synced).await;
    }

    /// Nothing more is written in this turn's name.
    pub async fn close(&self) {
        self.over.cancel();
        self.log.recorder.lock().await.close();
    }

    fn broke(&self, why: String) {
        tracing::error!(thread = %self.thread_id, why, "a record could not be written");
        self.log.broken.lock().get_or_insert(why);
    }

    /// Whether a record could not be written.
    pub fn is_broken(&self) -> bool {
        self.log.broken.lock().is_some()
    }

    /// What became of writing, if it failed.
    pub fn broken(&self) -> Option<TurnError> {
        let why = self.log.broken.lock().clone()?;
        Some(TurnError {
            message: format!("the thread could not be saved: {why}"),
            codex_error_info: Some(CodexErrorInfo::Other),
            additional_details: None,
        })
    }

    /// Shows an error of this turn.
    pub async fn error(&self, error: TurnError, will_retry: bool) {
        self.publish(ServerNotification::Error(ErrorNotification {
            error,
            will_retry,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
        }))
        .await;
    }
}

/// What a client answered. Of an error only its words matter here.
fn said(answer: Result<JsonValue, RpcError>) -> Result<JsonValue, String> {
    answer.map_err(|error| error.message)
}
