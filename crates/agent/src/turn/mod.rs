//! A turn: from the user's input to the model's last word. It runs in a task of its own, holds what the
//! thread remembers while it runs, and gives it back at the end. The thread's task shows that it begins and
//! that it is over; everything in between is shown here.

mod answer;
mod compaction;
mod cx;
mod hooks;
mod hosted;
mod inbox;
mod metadata;
mod replay;
mod reroute;
mod review;
pub(crate) mod shell_command;
pub(crate) mod usage;
mod visible;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use loomd_model::{ModelError, ModelEvent, Reasoning, Request, Session, retry_delay};
use loomd_protocol::{
    CodexErrorInfo, ConfigWarningNotification, InputModality, JsonValue, ModelRerouteReason, ModelReroutedNotification,
    RateLimitSnapshot, RawResponseItemCompletedNotification, ResponseItem, ReviewTarget, ServerNotification,
    ThreadItem, TurnError, UserInput,
};
use loomd_store::Durability;
use loomd_store::rollout::{
    AbortReason, BaseInstructions, Event, Record, SessionMeta, TaskComplete, TaskStarted, TurnAborted,
};
use uuid::Uuid;

pub(crate) use cx::TurnCx;
pub(crate) use inbox::{Inbox, Input};
pub(crate) use visible::text as visible_text;

use crate::context::{Situation, name_of};
use crate::conversation::{Conversation, message};
use crate::input;
use crate::notify::{self, TurnComplete};
use crate::prompts;
use crate::replay::Asked;
use crate::services::Services;
use crate::tools::{Calls, Toolbox};
use crate::view::{Persistence, View};
use answer::Answer;

/// How long a tool or a command that is told to stop may take to do so.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// What a turn is for.
pub(crate) enum Work {
    Answer { input: Vec<UserInput>, output_schema: Option<JsonValue> },
    Compact,
    Review { target: ReviewTarget, hint: String, prompt: String },
    ShellCommand { command: String },
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    Completed { last_message: Option<String> },
    Failed(TurnError),
    Interrupted,
}

/// Why a step of a turn did not work out.
pub(crate) enum Failure {
    Interrupted,
    Model(ModelError),
    Other(TurnError),
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Model(error)
    }
}

/// How the model is spoken to in this turn.
pub(crate) struct Scope {
    /// Names the conversation to the provider.
    pub session_id: String,
    /// What sort of helper this is, for the provider.
    pub subagent: Option<String>,
    pub instructions: Arc<str>,
    /// The model's messages are shown as items.
    pub shows_messages: bool,
    /// The conversation is the thread's and is written down.
    pub records: bool,
}

/// A turn that is about to run, or runs.
pub(crate) struct TurnTask {
    pub cx: Arc<TurnCx>,
    pub services: Arc<Services>,
    pub view: Arc<View>,
    pub conversation: Conversation,
    pub session: Session,
    pub inbox: Arc<Inbox>,
    pub toolbox: Arc<Toolbox>,
    pub scope: Scope,
    /// The thread's record of itself, when nothing of it is written yet.
    pub meta: Option<Box<SessionMeta>>,
    /// Open child agents.
    pub subagents: Vec<(String, String)>,
    pub rate_limits: RateLimitSnapshot,
    /// Something else takes the place of this turn.
    pub replaced: Arc<AtomicBool>,
    pub progress: Progress,
}

/// How far a turn has come.
#[derive(Default)]
pub(crate) struct Progress {
    pub calls: Calls,
    output_schema: Option<JsonValue>,
    last_message: Option<String>,
    /// Given by the provider, and given back to it until the turn ends.
    turn_state: Option<String>,
    rerouted: bool,
    /// What the provider is told about the repository.
    workspaces: Option<metadata::Workspaces>,
    /// The model has been asked for something.
    asked: bool,
    /// How often hooks kept the turn from ending.
    continued: u32,
}

/// What is left when a turn is over.
pub(crate) struct Ended {
    pub outcome: Outcome,
    /// `None` when it cannot be trusted any more; the rollout can.
    pub conversation: Option<Conversation>,
    pub session: Session,
    pub rate_limits: RateLimitSnapshot,
}

impl TurnTask {
    /// Does the work and writes down how it ended.
    pub async fn run(mut self, work: Work) -> Ended {
        self.begin().await;
        let answers = matches!(work, Work::Answer { .. });
        let done = match work {
            Work::Answer { input, output_schema } => {
                self.progress.output_schema = output_schema;
                self.answer(input).await
            }
            Work::Compact => self.compact().await,
            Work::Review { target, hint, prompt } => self.review(target, hint, prompt).await,
            Work::ShellCommand { command } => self.shell_command(command).await,
        };
        // What came too late to be answered is still part of the conversation.
        let mut late = self.inbox.close();
        self.settle().await;
        late.extend(self.inbox.take());
        for inputs in late {
            // Of what hooks could not be asked about any more, nothing is kept.
            _ = self.take_mail(inputs).await;
        }
        self.count_side_calls().await;
        let mut outcome = match done {
            Ok(()) => Outcome::Completed { last_message: self.progress.last_message.clone() },
            Err(Failure::Interrupted) => Outcome::Interrupted,
            Err(Failure::Model(error)) => Outcome::Failed(self.turn_error(&error)),
            Err(Failure::Other(error)) => Outcome::Failed(error),
        };
        self.finish(&outcome).await;
        if let Some(error) = self.cx.broken() {
            outcome = Outcome::Failed(error);
        }
        if let Outcome::Completed { last_message } = &outcome
            && answers
            && self.progress.asked
        {
            self.notify(last_message.as_deref());
        }
        let mut conversation = Some(self.conversation).filter(|_| self.cx.broken().is_none());
        if let Some(conversation) = &mut conversation {
            conversation.end = self.cx.written().await;
        }
        self.cx.close().await;
        Ended { outcome, conversation, session: self.session, rate_limits: self.rate_limits }
    }

    /// Waits for commands of the user that run beside the turn: they belong to it. Not for long when it is
    /// stopped, because they are, too.
    async fn settle(&self) {
        let stopped = async {
            self.cx.cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            biased;
            () = self.inbox.settled() => {}
            () = stopped => {}
        }
    }

    async fn begin(&mut self) {
        let mut records = Vec::new();
        let git = crate::git::facts(&self.cx.settings.cwd).await;
        self.progress.workspaces = metadata::workspaces(&self.cx.settings.cwd, git.as_ref());
        if let Some(mut meta) = self.meta.take() {
            meta.git = git;
            meta.base_instructions = Some(BaseInstructions { text: self.scope.instructions.to_string() });
            records.push(Record::SessionMeta(meta));
        }
        records.push(Record::EventMsg(Event::TaskStarted(TaskStarted {
            turn_id: self.cx.turn_id.clone(),
            model_context_window: Some(usage::window(&self.cx.model)),
            collaboration_mode_kind: name_of(self.cx.settings.mode).unwrap_or_default(),
        })));
        self.cx.note(&records).await;
    }

    async fn finish(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Completed { last_message } => {
                let (turn_id, last_agent_message) = (self.cx.turn_id.clone(), last_message.clone());
                let over = Event::TaskComplete(TaskComplete { turn_id, last_agent_message });
                self.cx.note(&[Record::EventMsg(over)]).await;
            }
            Outcome::Failed(error) => self.cx.record_failure(error).await,
            Outcome::Interrupted => {
                let replaced = self.replaced.load(Ordering::Relaxed);
                if !replaced {
                    self.remember(&message("user", prompts::TURN_ABORTED.into())).await;
                }
                let reason = if replaced { AbortReason::Replaced } else { AbortReason::Interrupted };
                let over = Event::TurnAborted(TurnAborted { turn_id: Some(self.cx.turn_id.clone()), reason });
                self.cx.note(&[Record::EventMsg(over)]).await;
            }
        }
        self.cx.flush(Durability::Synced).await;
        if self.cx.broken().is_none() {
            self.view.mark_stored();
        }
    }

    /// Tells the user's own program that the turn is done.
    fn notify(&self, last_message: Option<&str>) {
        let cx = &self.cx;
        if let Some(program) = &cx.profile.config.config.notify
            && self.services.replayed.is_none()
        {
            notify::tell(
                program,
                &TurnComplete {
                    thread_id: &cx.thread_id,
                    turn_id: &cx.turn_id,
                    cwd: &cx.settings.cwd,
                    client: &cx.profile.client,
                    input_messages: self.conversation.user_texts(),
                    last_assistant_message: last_message,
                },
            );
        }
    }

    /// Answers the user.
    async fn answer(&mut self, input: Vec<UserInput>) -> Result<(), Failure> {
        if let Err(failure) = self.compact_if_full().await {
            // It cannot be answered, but it was said.
            self.submit(input).await?;
            return Err(failure);
        }
        self.record_context().await;
        if !self.begin_session().await? {
            return Ok(());
        }
        // Whether there is anything to answer. When hooks refuse what was said, there is not.
        let mut open = self.submit(input).await?;
        self.replay_gap().await?;
        loop {
            for inputs in self.inbox.take() {
                open |= self.take_mail(inputs).await?;
            }
            if !open {
                self.settled().await?;
                if self.inbox.close_if_empty() {
                    return Ok(());
                }
                continue;
            }
            // Nothing is done that could not be written down.
            if let Some(error) = self.cx.broken() {
                return Err(Failure::Other(error));
            }
            self.replay_told(Asked::Answer);
            open = self.step().await?;
            self.replay_gap().await?;
            if !open {
                self.settled().await?;
                open = self.inbox.is_empty() && self.must_go_on().await?;
                if !open && self.inbox.close_if_empty() {
                    return Ok(());
                }
            }
            if self.is_full() {
                self.compact_midway().await?;
            }
        }
    }

    /// Waits until nothing is to come that somebody promised.
    async fn settled(&self) -> Result<(), Failure> {
        tokio::select! {
            () = self.inbox.settled() => Ok(()),
            () = self.cx.cancel.cancelled() => Err(Failure::Interrupted),
        }
    }

    /// False when there is nothing in it to answer.
    async fn take_mail(&mut self, inputs: Input) -> Result<bool, Failure> {
        match inputs {
            Input::User(input) => self.submit(input).await,
            Input::Injected(item) => {
                self.remember(&item).await;
                Ok(true)
            }
        }
    }

    /// Writes down what the user said and shows it.
    async fn take_input(&mut self, input: Vec<UserInput>) {
        let id = Uuid::new_v4().to_string();
        let item = input::user_message(&input, &self.cx.settings.cwd, &self.services.images, &self.cx.cancel).await;
        let stored = input::stored(&input, id.clone());
        self.conversation.push(&item);
        if self.scope.records {
            self.show_raw(&item).await;
            self.cx.record(&[Record::ResponseItem(item), Record::EventMsg(stored.into())]).await;
        } else {
            // A review's prompt is shown in the thread and is no part of its conversation.
            self.cx.record(&[Record::EventMsg(stored.into())]).await;
        }
        if !self.cx.is_broken() {
            self.view.mark_stored();
        }
        let item = ThreadItem::UserMessage { id, content: input };
        self.cx.started(item.clone()).await;
        self.cx.show_completed(item).await;
    }

    /// Tells the model where it is and what it may do: all of it, or what changed.
    async fn record_context(&mut self) {
        let now = self.services.now();
        let (items, context) = {
            let situation = self.situation();
            let items = match &self.conversation.baseline {
                Some(before) => situation.changes(before, &now),
                None => situation.whole(&now).await,
            };
            (items, situation.record(&now))
        };
        for item in &items {
            self.remember(item).await;
        }
        if self.scope.records {
            self.cx.note(&[Record::TurnContext(Box::new(context.clone()))]).await;
        }
        self.conversation.baseline = Some(context);
    }

    fn situation(&self) -> Situation<'_> {
        Situation {
            settings: &self.cx.settings,
            profile: &self.cx.profile,
            model: &self.cx.model,
            turn_id: &self.cx.turn_id,
            shell: self.services.shell_name(),
            home: &self.services.home,
            subagents: self.subagents.clone(),
        }
    }

    /// Adds an item to the conversation.
    pub(super) async fn remember(&mut self, item: &ResponseItem) {
        self.conversation.push(item);
        if self.scope.records {
            self.cx.note(&[Record::ResponseItem(item.clone())]).await;
            self.show_raw(item).await;
        }
    }

    /// Shows an item of the conversation to clients that asked for it.
    pub(super) async fn show_raw(&self, item: &ResponseItem) {
        if self.cx.profile.raw_events {
            self.cx
                .publish(ServerNotification::RawResponseItemCompleted(RawResponseItemCompletedNotification {
                    thread_id: self.cx.thread_id.clone(),
                    turn_id: self.cx.turn_id.clone(),
                    item: item.clone(),
                }))
                .await;
        }
    }

    /// One answer of the model, with retries, and the tools that it calls. True when it called any.
    async fn step(&mut self) -> Result<bool, Failure> {
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
                // The model goes on from what its calls found.
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

    /// Says what went wrong and how often it is tried again.
    async fn announce_retry(&self, error: &ModelError, attempt: u64, retries: u64) {
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

    /// One call of the model. Tools run while the rest of the answer is still coming in.
    async fn attempt(&mut self) -> Result<(), Failure> {
        let request = self.request(self.conversation.input(self.sees_images()));
        let cancel = self.cx.cancel.clone();
        let mut events = tokio::select! {
            biased;
            () = cancel.cancelled() => return Err(Failure::Interrupted),
            events = self.session.stream(&request) => events?,
        };
        drop(request);
        let mut answer = Answer::default();
        loop {
            let event = tokio::select! {
                biased;
                () = cancel.cancelled() => {
                    self.break_off(&mut answer, true).await;
                    return Err(Failure::Interrupted);
                }
                event = events.next() => event,
            };
            match event {
                Some(Ok(ModelEvent::Completed { usage, .. })) => {
                    self.break_off(&mut answer, true).await;
                    self.count(usage).await;
                    return Ok(());
                }
                Some(Ok(event)) => self.take(&mut answer, event).await,
                Some(Err(error)) => {
                    self.break_off(&mut answer, error.is_incomplete()).await;
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
            event => self.item_event(answer, event).await,
        }
    }

    /// The provider let another model answer than the one that was asked.
    async fn answered_by(&mut self, model: String) {
        let asked = &self.cx.settings.model;
        if self.progress.rerouted || reroute::is_same_model(asked, &model) {
            return;
        }
        self.progress.rerouted = true;
        let warning = prompts::rerouted(asked, &model);
        // The only reason that the protocol knows is one that the account's provider has. Of others nothing is claimed.
        let notification = if self.session.provider().uses_account() {
            ServerNotification::ModelRerouted(ModelReroutedNotification {
                thread_id: self.cx.thread_id.clone(),
                turn_id: self.cx.turn_id.clone(),
                from_model: asked.clone(),
                to_model: model,
                reason: ModelRerouteReason::HighRiskCyberActivity,
            })
        } else {
            let summary = format!("The model {model} answers in place of {asked}.");
            ServerNotification::ConfigWarning(ConfigWarningNotification {
                summary,
                details: None,
                path: None,
                range: None,
            })
        };
        self.cx.publish(notification).await;
        self.remember(&message("user", warning)).await;
    }

    fn sees_images(&self) -> bool {
        self.cx.model.input_modalities.contains(&InputModality::Image)
    }

    pub(super) fn request(&self, input: Vec<loomd_model::InputItem>) -> Request {
        let (cx, config) = (&self.cx, &self.cx.profile.config.config);
        let situation = self.situation();
        let summary = situation.summary();
        Request {
            model: cx.settings.model.clone(),
            instructions: Arc::clone(&self.scope.instructions),
            input,
            tools: self.toolbox.offered(),
            parallel_tool_calls: cx.model.parallel_tool_calls,
            reasoning: cx.model.supports_reasoning_summaries.then(|| Reasoning {
                effort: cx.settings.reasoning_effort.clone().or_else(|| cx.model.default_effort.clone()),
                summary: (summary != loomd_protocol::ReasoningSummary::None).then_some(summary),
            }),
            verbosity: config.model_verbosity.or(cx.model.default_verbosity).filter(|_| cx.model.supports_verbosity),
            output_schema: self.progress.output_schema.clone(),
            service_tier: cx.settings.service_tier.clone(),
            prompt_cache_key: self.scope.session_id.clone(),
            headers: metadata::headers(self),
        }
    }

    fn turn_error(&self, error: &ModelError) -> TurnError {
        TurnError {
            message: error.message(),
            codex_error_info: Some(error.info()),
            additional_details: error.details(self.session.provider().name()),
        }
    }
}

impl TurnTask {
    /// The thread has been written to, if anything is written of it at all.
    pub(super) fn keeps(&self) -> bool {
        self.view.persistence() != Persistence::Ephemeral
    }
}
