//! What a running turn and its tools share: its settings, its subscribers and its rollout. Records are written before
//! the events about them are published.

use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use loomd_ledger::Purpose;
use loomd_model::{CallMeter, ModelInfo, Request, TokenUsage};
use loomd_protocol::{
    CodexErrorInfo, DynamicToolCallParams, DynamicToolCallResponse, ErrorNotification, ItemCompletedNotification,
    ItemStartedNotification, OnDisconnect, ReasoningEffort, ReasoningSummary, ServerNotification, ServiceTier,
    ThreadItem, TurnError,
};
use loomd_store::rollout::{
    CompletedItem, Error, Event, ItemCompleted, Record, TaskComplete, TokenUsage as StoredUsage, TurnTimes,
};
use loomd_store::{Durability, Error as StoreError, Failure, Position, ThreadId};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::approval::{ApprovalParams, ApprovalRequest};
use crate::approval_audit::approval_audit;
use crate::denials::Denials;
use crate::disconnect_policy::DisconnectPolicy;
use crate::event_log::EventLog;
use crate::grants::Grants;
use crate::let_go::LetGo;
use crate::metering::Spending;
use crate::realtime_link::RealtimeLink;
use crate::recorder::Recorder;
use crate::settings::{Profile, Settings};
use crate::trace::TurnTrace;
use crate::turn_notes::{Notes, TurnNote};
use crate::turns;
use crate::view::{Status, View};

/// How long a tool or a command may take to stop when its turn is interrupted.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// The context of one turn.
pub(crate) struct TurnCx {
    pub thread: ThreadId,
    pub thread_id: String,
    pub turn_id: String,
    /// When the turn started.
    pub started: TurnStart,
    /// The settings at the start of the turn.
    pub settings: Settings,
    pub profile: Arc<Profile>,
    pub model: ModelInfo,
    pub events: Arc<EventLog>,
    pub view: Arc<View>,
    /// The realtime session of the thread.
    pub realtime: Arc<RealtimeLink>,
    /// What the reviewer has denied in the thread.
    pub denials: Arc<Denials>,
    /// What the turn spends, and the budgets that limit it.
    pub spending: Arc<Spending>,
    /// The turn's spans and log events.
    pub trace: Arc<TurnTrace>,
    /// Where the progress of the turn is noted for another process; `None` where it is not.
    pub notes: Option<Notes>,
    /// What the turn does while no client watches it.
    pub disconnect: Arc<DisconnectPolicy>,
    /// How the thread is given up for another process.
    pub let_go: Arc<LetGo>,
    /// Cancelled to interrupt the turn.
    pub cancel: CancellationToken,
    /// Cancelled when the turn has ended.
    pub over: CancellationToken,
    log: Arc<Log>,
    /// Permissions granted until the turn ends.
    grants: Arc<Mutex<Grants>>,
    /// The usage of model calls outside of the conversation that is not in the thread's total yet.
    side_usage: Arc<Mutex<Option<TokenUsage>>>,
    /// The usage of all model calls of the turn; `None` while no provider has reported any.
    pub usage: Arc<Mutex<Option<StoredUsage>>>,
    /// The last message of the agent.
    last_message: Arc<Mutex<Option<ThreadItem>>>,
    /// Settings for the model calls that are still to come.
    steps: Arc<Mutex<StepSettings>>,
}

/// Changes of a running turn's settings, for its later model calls.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct StepSettings {
    pub model: Option<String>,
    pub effort: Option<ReasoningEffort>,
    pub summary: Option<ReasoningSummary>,
    pub service_tier: Option<Option<ServiceTier>>,
}

/// When a turn started, on both clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TurnStart {
    pub at: Timestamp,
    clock: Instant,
}

impl TurnStart {
    pub fn now() -> Self {
        Self { at: Timestamp::now(), clock: Instant::now() }
    }

    /// The start of a turn that another process began.
    pub fn at(at: Timestamp) -> Self {
        let elapsed = Timestamp::now().duration_since(at).unsigned_abs();
        Self { at, clock: Instant::now().checked_sub(elapsed).unwrap_or_else(Instant::now) }
    }

    /// The times of a turn that ends now.
    pub fn times(&self) -> TurnTimes {
        let elapsed = i64::try_from(self.clock.elapsed().as_millis()).unwrap_or(i64::MAX);
        TurnTimes {
            started_at: Some(self.at.as_second()),
            completed_at: Some(Timestamp::now().as_second()),
            duration_ms: Some(elapsed),
        }
    }
}

/// The rollout, as the turn writes to it.
struct Log {
    recorder: tokio::sync::Mutex<Recorder>,
    /// The first write error, with which the turn fails.
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
        events: Arc<EventLog>,
        view: Arc<View>,
        cancel: CancellationToken,
        recorder: Recorder,
        realtime: Arc<RealtimeLink>,
        denials: Arc<Denials>,
        spending: Arc<Spending>,
        trace: Arc<TurnTrace>,
        notes: Option<Notes>,
        disconnect: Arc<DisconnectPolicy>,
    ) -> Self {
        Self {
            thread,
            thread_id: thread.to_string(),
            turn_id,
            started: TurnStart::now(),
            settings,
            profile,
            model,
            events,
            view,
            realtime,
            denials,
            spending,
            trace,
            notes,
            disconnect,
            let_go: Arc::default(),
            cancel,
            over: CancellationToken::new(),
            log: Arc::new(Log { recorder: tokio::sync::Mutex::new(recorder), broken: Mutex::default() }),
            grants: Arc::default(),
            side_usage: Arc::default(),
            last_message: Arc::default(),
            steps: Arc::default(),
            usage: Arc::default(),
        }
    }

    /// Begins a model call of the turn: the meter notes what it uses. Adds headers to the request.
    pub fn begin_model_call(&self, purpose: Purpose, request: &mut Request) -> CallMeter {
        self.trace.model_call(&self.spending, purpose, request)
    }

    /// The last message of the agent in this turn.
    pub fn last_message(&self) -> Option<ThreadItem> {
        self.last_message.lock().clone()
    }

    /// Changes settings for the later model calls of the turn.
    pub fn change_steps(&self, change: StepSettings) {
        let mut steps = self.steps.lock();
        let before = std::mem::take(&mut *steps);
        *steps = StepSettings {
            model: change.model.or(before.model),
            effort: change.effort.or(before.effort),
            summary: change.summary.or(before.summary),
            service_tier: change.service_tier.or(before.service_tier),
        };
    }

    /// The settings of the next model call that differ from those at the start of the turn.
    pub fn steps(&self) -> StepSettings {
        self.steps.lock().clone()
    }

    /// Adds the usage of a model call outside of the conversation.
    pub fn add_side_usage(&self, usage: &TokenUsage) {
        let mut sum = self.side_usage.lock();
        *sum = Some(match sum.take() {
            None => usage.clone(),
            Some(before) => TokenUsage {
                total_tokens: before.total_tokens.saturating_add(usage.total_tokens),
                input_tokens: before.input_tokens.saturating_add(usage.input_tokens),
                cached_input_tokens: before.cached_input_tokens.saturating_add(usage.cached_input_tokens),
                cache_write_input_tokens: before
                    .cache_write_input_tokens
                    .saturating_add(usage.cache_write_input_tokens),
                output_tokens: before.output_tokens.saturating_add(usage.output_tokens),
                reasoning_output_tokens: before.reasoning_output_tokens.saturating_add(usage.reasoning_output_tokens),
            },
        });
    }

    /// Takes the usage that was added since the last time.
    pub fn take_side_usage(&self) -> Option<TokenUsage> {
        self.side_usage.lock().take()
    }

    /// The permissions beyond the policy that were granted for this turn.
    pub fn grants(&self) -> Grants {
        self.grants.lock().clone()
    }

    pub fn grant(&self, more: &Grants) {
        self.grants.lock().extend(more);
    }

    /// The same turn with other settings, as a review has them.
    pub fn with(&self, settings: Settings) -> Self {
        Self {
            thread: self.thread,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            started: self.started,
            model: self.profile.model(&settings.model),
            settings,
            profile: Arc::clone(&self.profile),
            events: Arc::clone(&self.events),
            view: Arc::clone(&self.view),
            realtime: Arc::clone(&self.realtime),
            denials: Arc::clone(&self.denials),
            spending: Arc::clone(&self.spending),
            trace: Arc::clone(&self.trace),
            notes: self.notes.clone(),
            disconnect: Arc::clone(&self.disconnect),
            let_go: Arc::clone(&self.let_go),
            cancel: self.cancel.clone(),
            over: self.over.clone(),
            log: Arc::clone(&self.log),
            grants: Arc::clone(&self.grants),
            side_usage: Arc::clone(&self.side_usage),
            last_message: Arc::clone(&self.last_message),
            steps: Arc::clone(&self.steps),
            usage: Arc::clone(&self.usage),
        }
    }

    /// The end of the rollout after the last write of this turn.
    pub async fn written(&self) -> Position {
        self.log.recorder.lock().await.end
    }

    pub async fn publish(&self, notification: ServerNotification) {
        self.events.publish(notification).await;
    }

    /// Requests an approval and waits for the decision; `None` when the turn is stopped before there is one.
    pub async fn request<P: ApprovalParams>(&self, params: P) -> Option<P::Decision> {
        self.request_unless(params, pending()).await
    }

    /// Like [`Self::request`], and withdraws the request when `pointless` resolves.
    pub async fn request_unless<P: ApprovalParams>(
        &self,
        params: P,
        pointless: impl Future<Output = ()>,
    ) -> Option<P::Decision> {
        if !self.until_watched().await {
            return None;
        }
        // What is asked about is stored first: a process that takes the turn up asks the same again.
        self.flush(Durability::Flushed).await;
        let request = params.into_request();
        if let Some(decision) = self.events.recalled_decision(&request) {
            return P::decision(decision);
        }
        let user_input = matches!(request, ApprovalRequest::UserInput(_));
        let waiting = |status: &mut Status, more: bool| {
            let open = if user_input { &mut status.questions } else { &mut status.approvals };
            *open = if more { *open + 1 } else { open.saturating_sub(1) };
        };
        let traced = self.trace.approval(&request);
        self.view.change(&self.events, |status| waiting(status, true)).await;
        let mut open = self.events.request(request).await;
        let decided = tokio::select! {
            biased;
            decided = open.decision() => decided,
            () = self.cancel.cancelled() => None,
            () = pointless => None,
            () = self.let_go.while_waiting() => None,
        };
        let resolution = open.settle(decided).await;
        traced.end(resolution.decision.as_ref());
        if let Some(record) = resolution.ended.as_ref().and_then(approval_audit) {
            self.record_while_open(&[Record::Approval(record)]).await;
        }
        open.resolve().await;
        self.view.change(&self.events, |status| waiting(status, false)).await;
        resolution.decision.and_then(P::decision)
    }

    /// Waits for a subscriber if the turn is to pause without one. Returns false when the turn is interrupted.
    pub async fn until_watched(&self) -> bool {
        while self.disconnect.get() == OnDisconnect::Pause && !self.events.has_subscribers() {
            tokio::select! {
                () = self.events.subscribed() => {}
                () = self.cancel.cancelled() => return false,
            }
        }
        true
    }

    /// Waits for as long as the thread is being given up. Returns false when the turn is interrupted.
    pub async fn may_step(&self) -> bool {
        tokio::select! {
            biased;
            () = self.let_go.before_step() => true,
            () = self.cancel.cancelled() => false,
        }
    }

    /// Notes that the effects of a call begin: whatever becomes of this process, the call is not carried out again. The
    /// error is the output of a call that must not run, because that could not be noted.
    pub async fn begin_effects(&self, call_id: &str) -> Result<(), String> {
        let Some(notes) = &self.notes else { return Ok(()) };
        // The call itself comes first.
        self.flush(Durability::Flushed).await;
        let item = self.events.open_items(&self.turn_id).into_iter().find(|item| item.id() == call_id);
        let note = TurnNote::CallStarted { call_id: call_id.into(), item: item.map(Box::new) };
        if let Err(error) = notes.add(&note).await {
            self.broke(&error);
        }
        self.broken().map_or(Ok(()), |error| Err(error.message))
    }

    /// Calls a tool of the client; `None` when the turn is stopped before it returns. Neither the thread's status nor
    /// an event shows that the call is open.
    pub async fn call_client(&self, params: DynamicToolCallParams) -> Option<DynamicToolCallResponse> {
        let mut open = self.events.request(params.into_request()).await;
        let decided = tokio::select! {
            biased;
            decided = open.decision() => decided,
            () = self.cancel.cancelled() => None,
        };
        decided.and_then(|decided| DynamicToolCallParams::decision(decided.decision))
    }

    /// Publishes that an item has started, unless the turn cannot write any more.
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

    /// Records that an item completed, then publishes it. An item that cannot be recorded is not published.
    pub async fn completed(&self, item: ThreadItem, event: Option<Event>) {
        if let Some(event) = event {
            self.record(&[Record::EventMsg(event)]).await;
        } else {
            self.flush(Durability::Flushed).await;
        }
        self.show_completed(item).await;
    }

    /// Records and publishes an item that is complete as soon as it starts.
    pub async fn complete_at_once(&self, item: CompletedItem) {
        let event =
            ItemCompleted { thread_id: self.thread_id.clone(), turn_id: self.turn_id.clone(), item: item.clone() };
        self.record(&[Record::EventMsg(Event::ItemCompleted(event))]).await;
        let item = turns::completed_item(item);
        self.started(item.clone()).await;
        self.show_completed(item).await;
    }

    /// Publishes that an item completed, after its record was written. Publishes nothing when a write of the turn
    /// failed.
    pub async fn show_completed(&self, item: ThreadItem) {
        if self.is_broken() {
            return;
        }
        if let ThreadItem::AgentMessage { text, .. } = &item {
            self.realtime.agent_message(&self.turn_id, text);
            *self.last_message.lock() = Some(item.clone());
        }
        self.publish(ServerNotification::ItemCompleted(ItemCompletedNotification {
            item,
            thread_id: self.thread_id.clone(),
            turn_id: self.turn_id.clone(),
            completed_at_ms: Timestamp::now().as_millisecond(),
            started_at_ms: None,
        }))
        .await;
    }

    /// Writes records to the rollout.
    pub async fn record(&self, records: &[Record]) {
        self.note(records).await;
        self.flush(Durability::Flushed).await;
    }

    /// Writes records about something that outlives turns. Returns false, without writing, when the turn has ended or
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
                self.broke(&error);
                false
            }
        }
    }

    /// Buffers records until the next flush.
    pub async fn note(&self, records: &[Record]) {
        let mut recorder = self.log.recorder.lock().await;
        for record in records {
            if let Err(error) = recorder.note(record) {
                self.broke(&error);
            }
        }
    }

    /// Writes the buffered records.
    pub async fn flush(&self, durability: Durability) {
        if let Err(error) = self.log.recorder.lock().await.flush(durability).await {
            self.broke(&error);
        }
    }

    /// Records that the turn failed and ended, unless no record of its start was written.
    pub async fn record_failure(&self, error: &TurnError) {
        if self.log.recorder.lock().await.is_untouched() {
            return;
        }
        let error =
            Error { message: error.message.clone(), codex_error_info: error.codex_error_info.clone().map(Into::into) };
        let over =
            TaskComplete { turn_id: self.turn_id.clone(), last_agent_message: None, times: self.started.times() };
        self.note(&[Record::EventMsg(Event::Error(error)), Record::EventMsg(Event::TaskComplete(over))]).await;
        self.flush(Durability::Synced).await;
    }

    /// Ends the turn: later writes are refused.
    pub async fn close(&self) {
        self.over.cancel();
        self.log.recorder.lock().await.close();
    }

    fn broke(&self, error: &StoreError) {
        tracing::error!(thread = %self.thread_id, %error, "a record could not be written");
        self.log.broken.lock().get_or_insert_with(|| error.to_string());
        let is_lost =
            matches!(error, StoreError::StaleLease { .. } | StoreError::Storage { failure: Failure::Unreachable, .. });
        if is_lost && self.let_go.is_shared() {
            // Another process goes on with the turn: nothing more is shown.
            self.events.silence();
            self.let_go.abandon();
        }
    }

    /// Whether a record could not be written.
    pub fn is_broken(&self) -> bool {
        self.log.broken.lock().is_some()
    }

    /// The error of the turn when a record could not be written.
    pub fn broken(&self) -> Option<TurnError> {
        let why = self.log.broken.lock().clone()?;
        Some(TurnError {
            message: format!("the thread could not be saved: {why}"),
            codex_error_info: Some(CodexErrorInfo::Other),
            additional_details: None,
        })
    }

    /// Publishes an error of this turn.
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
