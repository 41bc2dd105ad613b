//! How a thread starts, steers and ends turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use jiff::civil::Date;
use loomd_model::ModelInfo;
use loomd_protocol::{
    Budget, CodexErrorInfo, ErrorNotification, JsonValue, Level, ModeKind, NonSteerableTurnKind, ResponseItem,
    ServerNotification, SubAgentActivityKind, ThreadItem, ThreadReadStateChangedNotification, Turn as WireTurn,
    TurnCompletedNotification, TurnError, TurnItemsView, TurnStartParams, TurnStartedNotification, TurnStatus,
    UserInput,
};
use loomd_store::rollout::{AgentStatus, CompletedItem};
use loomd_store::{Position, RequestKey};
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use tracing::field::Empty;
use uuid::Uuid;

use super::answered::Trace;
use super::memory::Memory;
use super::op::Reply;
use super::running_turn::{QueuedTurn, RunningTurn, TurnKind};
use super::state::Thread;
use crate::agent_tree::Notice;
use crate::confinement::CommandPolicy;
use crate::context;
use crate::given_up::given_up;
use crate::goals::TurnResult;
use crate::guard::ActionCx;
use crate::inbox::{Inbox, Input, UserMessageInput};
use crate::message::{agent_message, message};
use crate::metering::{Spending, SpendingOf};
use crate::prompts;
use crate::recorder::Recorder;
use crate::refusal::Refusal;
use crate::tools::{Role, ToolCx, Toolbox};
use crate::trace::{TraceOf, TurnTrace};
use crate::turn::{
    AnswerWork, INTERRUPTED, ModelScope, Outcome, Progress, RecoveredTurn, TurnEnd, TurnInput, TurnTask, Work,
    shell_command, usage,
};
use crate::turn_cx::{TurnCx, TurnStart};
use crate::turn_origin::TurnOrigin;
use crate::view::Persistence;

/// The most turns that wait for a running one; more are refused.
const MAX_QUEUED: usize = 64;

impl Thread {
    /// Starts a turn, or adds the input to the running one.
    pub(crate) async fn start_turn(
        &mut self,
        mut params: TurnStartParams,
        chosen: Option<Box<CommandPolicy>>,
        level: Level,
        key: Option<RequestKey>,
        origin: TurnOrigin,
        reply: Reply<WireTurn>,
    ) {
        if params.input.is_empty() && params.tool_output.is_none() && level < Level::V0_166 {
            return reply(Err(Refusal::invalid("input must not be empty")));
        }
        if level >= Level::V0_166
            && let Some(refusal) = self.running.as_ref().and_then(not_startable)
        {
            return reply(Err(refusal));
        }
        let mut answer = AnswerWork { origin, ..AnswerWork::of(&mut params) };
        answer.context = self.sent_context.update(params.additional_context.take().unwrap_or_default());
        let before = self.settings.clone();
        let disallowed = self.disallowed(&params);
        if disallowed.is_none() {
            self.settings.change(&params, chosen.map(|chosen| *chosen));
        }
        if self.running.is_some() {
            self.settings_changed(&before).await;
            return self.steer_or_queue(answer, key, reply).await;
        }
        let turn_id = new_turn_id();
        let trace = trace_of(&answer, &turn_id);
        let mut work = Work::Answer(Box::new(answer));
        let shown = shown_turn(turn_id.clone(), &work);
        let prepared = match self.note_answer(key.as_ref(), &shown, trace).await {
            Ok(()) => self.prepare_noted(&turn_id, &mut work).await,
            Err(refusal) => Err(refusal),
        };
        let prepared = match prepared {
            Ok(prepared) => prepared,
            Err(refusal) => {
                self.settings = before;
                self.forget_answer(key.as_ref(), &refusal).await;
                return reply(Err(refusal));
            }
        };
        // Before the answer: a client that gets it knows the settings of its turn.
        let prepared = self.settings_changed_under(&before, prepared).await;
        reply(Ok(shown));
        self.launch(prepared, turn_id.clone(), work).await;
        self.publish_disallowed(turn_id, disallowed).await;
    }

    /// Starts a turn with the thread's settings, or adds the input to the running one.
    pub(crate) async fn submit(&mut self, input: Vec<UserInput>, reply: Reply<WireTurn>) {
        if self.running.is_some() {
            return self.steer_or_queue(AnswerWork::user(input), None, reply).await;
        }
        let work = Work::Answer(Box::new(AnswerWork::user(input)));
        if let Err((refusal, reply)) = self.begin_turn(new_turn_id(), work, Some(reply)).await {
            refuse(reply, refusal);
        }
    }

    /// Adds input to the running turn. If that takes no more, the input becomes the next turn; so does input with an
    /// output schema or a budget, which are those of a whole turn.
    async fn steer_or_queue(&mut self, mut answer: AnswerWork, key: Option<RequestKey>, reply: Reply<WireTurn>) {
        if let Some(running) = &self.running
            && running.kind == TurnKind::Regular
            && !running.is_stopping()
            && answer.output_schema.is_none()
            && answer.budget.is_none()
            && let TurnInput::User(input) = &mut answer.input
            && !input.content.is_empty()
        {
            let shown = in_progress(running.turn_id.clone());
            if let Err(refusal) = self.note_answer(key.as_ref(), &shown, Trace::Message).await {
                return reply(Err(refusal));
            }
            for item in std::mem::take(&mut answer.context) {
                if let Err(Input::Injected(item)) = running.inbox.put(Input::Injected(Box::new(item))) {
                    answer.context.push(*item);
                }
            }
            if let Some(reserved) = running.inbox.hold() {
                if let Err(refusal) = self.note_input(input).await {
                    self.forget_answer(key.as_ref(), &refusal).await;
                    return reply(Err(refusal));
                }
                reserved.put(Input::User(std::mem::take(input)));
                return reply(Ok(shown));
            }
        }
        if self.queued.len() >= MAX_QUEUED {
            let refusal = Refusal::invalid("too many turns wait for the running one");
            self.forget_answer(key.as_ref(), &refusal).await;
            return reply(Err(refusal));
        }
        let turn_id = new_turn_id();
        let shown = in_progress(turn_id.clone());
        let trace = trace_of(&answer, &turn_id);
        if let Err(refusal) = self.note_answer(key.as_ref(), &shown, trace).await {
            return reply(Err(refusal));
        }
        let mut queued = QueuedTurn { turn_id, work: Work::Answer(Box::new(answer)), replaces: false };
        if let Err(refusal) = self.note_queued(&mut queued).await {
            self.forget_answer(key.as_ref(), &refusal).await;
            return reply(Err(refusal));
        }
        reply(Ok(shown));
        self.queued.push_back(queued);
    }

    /// The error when the administrator's requirements forbid the settings of a turn.
    pub(super) fn disallowed(&self, params: &TurnStartParams) -> Option<String> {
        let requirements = &self.profile.config.requirements;
        let policy = params.approval_policy.as_ref().map(|policy| requirements.check_approval_policy(policy));
        let sandbox = params.sandbox_policy.as_ref().map(|policy| requirements.check_sandbox_policy(policy));
        [policy, sandbox].into_iter().flatten().find_map(Result::err).map(|error| error.to_string())
    }

    /// Publishes that the new settings were refused. The turn runs with the old ones.
    async fn publish_disallowed(&self, turn_id: String, disallowed: Option<String>) {
        if let Some(message) = disallowed {
            let error =
                TurnError { message, codex_error_info: Some(CodexErrorInfo::BadRequest), additional_details: None };
            let thread_id = self.id.to_string();
            let error = ErrorNotification { error, will_retry: false, thread_id, turn_id };
            self.events.publish(ServerNotification::Error(error)).await;
        }
    }

    /// Adds input to the running turn, once for each key.
    pub(crate) async fn steer_once(
        &self,
        expected: &str,
        input: UserMessageInput,
        key: Option<RequestKey>,
    ) -> Result<String, Refusal> {
        self.note_answer(key.as_ref(), &expected, Trace::Message).await?;
        let steered = self.steer(expected, input).await;
        if let Err(refusal) = &steered {
            self.forget_answer(key.as_ref(), refusal).await;
        }
        steered
    }

    async fn steer(&self, expected: &str, mut input: UserMessageInput) -> Result<String, Refusal> {
        let none = || Refusal::invalid("no active turn to steer");
        let running = self.running.as_ref().ok_or_else(none)?;
        if running.turn_id != expected {
            let active = &running.turn_id;
            return Err(Refusal::invalid(format!("expected active turn id `{expected}` but found `{active}`")));
        }
        match running.kind {
            _ if running.is_stopping() => return Err(none()),
            TurnKind::Regular => {}
            TurnKind::Review => return Err(not_steerable(NonSteerableTurnKind::Review, "cannot steer a review turn")),
            TurnKind::Compact => {
                return Err(not_steerable(NonSteerableTurnKind::Compact, "cannot steer a compact turn"));
            }
            TurnKind::ShellCommand => return Err(none()),
        }
        // The turn does not end before the input is noted.
        let reserved = running.inbox.hold().ok_or_else(none)?;
        self.note_input(&mut input).await?;
        reserved.put(Input::User(input));
        Ok(running.turn_id.clone())
    }

    /// Interrupts the running turn, or removes a queued one. Replies when the turn has stopped, at once when none is
    /// running.
    pub(crate) async fn interrupt(&mut self, turn_id: &str, strict: bool, reply: Reply<()>) {
        let Some(running) = &mut self.running else {
            return reply(if strict { Err(Refusal::invalid("no active turn to interrupt")) } else { Ok(()) });
        };
        if !turn_id.is_empty() && turn_id != running.turn_id {
            let at = self.queued.iter().position(|queued| queued.turn_id == turn_id);
            if let Some(queued) = at.and_then(|at| self.queued.remove(at)) {
                self.note_unqueued(&queued.turn_id).await;
                reply(Ok(()));
                return self.publish_not_started(queued.turn_id, None).await;
            }
            let active = &running.turn_id;
            return reply(Err(Refusal::invalid(format!("expected active turn id `{turn_id}` but found `{active}`"))));
        }
        running.interrupts.push(reply);
        running.cancel();
    }

    /// Starts a turn in place of the running one, which is interrupted.
    pub(crate) async fn replace(&mut self, work: Work, key: Option<RequestKey>, reply: Reply<WireTurn>) {
        let turn_id = new_turn_id();
        let shown = shown_turn(turn_id.clone(), &work);
        if let Err(refusal) = self.note_answer(key.as_ref(), &shown, Trace::Turn(turn_id.clone())).await {
            return reply(Err(refusal));
        }
        match &self.running {
            None => {
                if let Err((refusal, reply)) = self.begin_turn(turn_id, work, Some(reply)).await {
                    self.forget_answer(key.as_ref(), &refusal).await;
                    refuse(reply, refusal);
                }
            }
            Some(running) => {
                let turn = shown_turn(turn_id.clone(), &work);
                let mut queued = QueuedTurn { turn_id, work, replaces: true };
                if let Err(refusal) = self.note_queued(&mut queued).await {
                    self.forget_answer(key.as_ref(), &refusal).await;
                    return reply(Err(refusal));
                }
                running.replaced.store(true, Ordering::Relaxed);
                running.cancel();
                reply(Ok(turn));
                // After other replacements, before turns that wait for the end of the running one.
                let at = self.queued.iter().take_while(|queued| queued.replaces).count();
                self.queued.insert(at, queued);
            }
        }
    }

    /// Runs a command of the user: beside a running turn, else as a turn of its own.
    pub(crate) async fn shell_command(&mut self, command: String, key: Option<RequestKey>, reply: Reply<()>) {
        if let Err(refusal) = self.note_answer(key.as_ref(), &(), Trace::Unknown).await {
            return reply(Err(refusal));
        }
        if let Some(running) = self.running.as_ref().filter(|running| running.kind == TurnKind::Regular)
            && let Some(hold) = running.inbox.hold()
        {
            reply(Ok(()));
            let tools = Arc::clone(&running.tools);
            tokio::spawn(async move {
                let told = shell_command::run(&tools, command).await;
                hold.put(Input::Injected(Box::new(told)));
            });
            return;
        }
        let reply: Reply<WireTurn> = Box::new(|turn| reply(turn.map(|_| ())));
        let (turn_id, work) = (new_turn_id(), Work::ShellCommand { command });
        if self.queued.len() >= MAX_QUEUED {
            let refusal = Refusal::invalid("too many turns wait for the running one");
            self.forget_answer(key.as_ref(), &refusal).await;
            reply(Err(refusal));
        } else if self.running.is_some() {
            reply(Ok(in_progress(turn_id.clone())));
            self.queued.push_back(QueuedTurn { turn_id, work, replaces: false });
        } else if let Err((refusal, reply)) = self.begin_turn(turn_id, work, Some(reply)).await {
            self.forget_answer(key.as_ref(), &refusal).await;
            refuse(reply, refusal);
        }
    }

    async fn begin_turn(
        &mut self,
        turn_id: String,
        mut work: Work,
        reply: Option<Reply<WireTurn>>,
    ) -> Result<(), (Refusal, Option<Reply<WireTurn>>)> {
        let prepared = match self.prepare_noted(&turn_id, &mut work).await {
            Ok(prepared) => prepared,
            Err(refusal) => return Err((refusal, reply)),
        };
        if let Some(reply) = reply {
            reply(Ok(shown_turn(turn_id.clone(), &work)));
        }
        self.launch(prepared, turn_id, work).await;
        Ok(())
    }

    /// Takes the thread's lease for a turn that is about to start.
    pub(super) async fn prepare_turn(&mut self) -> Result<(Recorder, Memory), Refusal> {
        self.record_notifications().await;
        self.materialize_noted().await?;
        self.prepare().await
    }

    /// Takes the thread's lease for a turn and notes the turn.
    pub(super) async fn prepare_noted(
        &mut self,
        turn_id: &str,
        work: &mut Work,
    ) -> Result<(Recorder, Memory), Refusal> {
        let prepared = self.prepare_turn().await?;
        match self.note_started(turn_id, work, false).await {
            Ok(()) => Ok(prepared),
            Err(refusal) => {
                self.put_back(prepared);
                Err(refusal)
            }
        }
    }

    /// Gives up the lease of a turn that does not start after all.
    pub(super) fn put_back(&mut self, (recorder, memory): (Recorder, Memory)) {
        drop(recorder);
        self.memory = Some(Box::new(memory));
    }

    /// Starts a turn under the lease that was taken for it.
    pub(super) async fn launch(&mut self, prepared: (Recorder, Memory), turn_id: String, work: Work) {
        self.launch_recovered(prepared, turn_id, work, None).await;
    }

    /// Like [`Self::launch`], for a turn of which another process has left something.
    pub(super) async fn launch_recovered(
        &mut self,
        (recorder, memory): (Recorder, Memory),
        turn_id: String,
        work: Work,
        recovered: Option<Box<RecoveredTurn>>,
    ) {
        self.goals.begin_turn(self.settings.mode == ModeKind::Plan).await;
        let goal_turn = matches!(&work, Work::Answer(answer) if matches!(answer.input, TurnInput::Goal(_)));
        let Memory { conversation, session, rate_limits } = memory;
        let inbox = Arc::new(Inbox::counted(&self.services.metering.inbox_inputs));
        let (cancel, replaced) = (CancellationToken::new(), Arc::default());
        let (budget, origin) = work.budget_and_origin();
        let trace = self.trace("turn", &turn_id, &origin);
        let spending = self.spending(turn_id.clone(), budget.as_ref(), origin);
        let mut cx = TurnCx::new(
            self.id,
            turn_id.clone(),
            self.settings.clone(),
            Arc::clone(&self.profile),
            self.profile.model(&self.settings.model),
            Arc::clone(&self.events),
            Arc::clone(&self.view),
            cancel.clone(),
            recorder,
            Arc::clone(&self.realtime_link),
            Arc::clone(&self.guard.denials),
            spending,
            trace,
            self.notes.clone(),
            Arc::clone(&self.disconnect),
        );
        cx.let_go = Arc::clone(&self.let_go);
        if let Some(recovered) = &recovered {
            cx.started = TurnStart::at(recovered.started_at);
        }
        let cx = Arc::new(cx);
        cx.spending.limit_time(cancel.clone(), cx.over.clone());
        self.tools.agent_tree.set_inbox(self.id, Some(Arc::clone(&inbox)));
        self.tools.mcp.set_policy(&self.settings.approval_policy);
        let kind = TurnKind::of(&work);
        let action =
            ActionCx { turn: Arc::clone(&cx), services: Arc::clone(&self.services), guard: Arc::clone(&self.guard) };
        let tools = Arc::new(ToolCx::new(action, Arc::clone(&self.tools)));
        let turn = TurnTask {
            toolbox: Arc::new(Toolbox::new(Arc::clone(&tools), Arc::clone(&self.tool_sources))),
            scope: self.scope(&cx),
            cx: Arc::clone(&cx),
            services: Arc::clone(&self.services),
            view: Arc::clone(&self.view),
            conversation: conversation.unwrap_or_default(),
            session,
            inbox: Arc::clone(&inbox),
            meta: (self.view.persistence() == Persistence::Pending).then(|| self.meta.clone()),
            subagents: self.subagents(),
            rate_limits,
            goals: Arc::clone(&self.goals),
            replaced: Arc::clone(&replaced),
            progress: Progress::after(recovered),
        };
        // Counted before it is published: a shutdown that follows the event waits for the turn.
        let working = self.busy.begin();
        self.view.set_running_turn(Some(turn_id.clone()));
        self.view.change(&self.events, |status| (status.running, status.error) = (true, false)).await;
        let root_turn_id = root_turn_id(&turn_id, &work);
        let shown = WireTurn {
            started_at: Some(cx.started.at.as_second()),
            root_turn_id: Some(root_turn_id.clone()),
            ..in_progress(turn_id.clone())
        };
        let started = TurnStartedNotification { thread_id: self.id.to_string(), turn: shown };
        self.events.publish(ServerNotification::TurnStarted(started)).await;
        let model = &self.settings.model;
        let span = tracing::debug_span!("turn", thread = %self.id, turn = %turn_id, model, outcome = Empty);
        let task = AbortOnDropHandle::new(tokio::spawn(turn.run(work).instrument(span)));
        self.running = Some(RunningTurn {
            turn_id,
            kind,
            cx,
            tools,
            inbox,
            cancel,
            replaced,
            task,
            root_turn_id,
            goal_turn,
            queued_message: false,
            interrupts: Vec::new(),
            _working: working,
        });
        self.tools.agent_tree.set(self.id, AgentStatus::Running);
    }

    /// The spans and log events of a turn or a sample.
    pub(super) fn trace(&self, name: &'static str, turn_id: &str, origin: &TurnOrigin) -> Arc<TurnTrace> {
        let of = TraceOf {
            name,
            thread_id: self.id.to_string(),
            turn_id,
            client: &self.profile.client,
            model: &self.settings.model,
            origin,
        };
        match self.services.replayed {
            Some(_) => Arc::default(),
            None => TurnTrace::begin(&self.services.telemetry, of),
        }
    }

    /// What a turn or a sample is about to spend.
    pub(super) fn spending(&self, turn_id: String, budget: Option<&Budget>, origin: TurnOrigin) -> Arc<Spending> {
        let tree = &self.tools.agent_tree;
        let since = self.meta.created_at().map_or(Date::MIN, loomd_ledger::today);
        let of = SpendingOf {
            thread_id: self.id.to_string(),
            turn_id,
            root_thread_id: tree.root(self.id).to_string(),
            // The root of a tree is older than its agents, by an unknown time.
            since: if self.tools.role == Role::Child { Date::MIN } else { since },
            client: &self.profile.client,
            config: self.profile.config.config.loomd.as_ref(),
            budget,
            thread: Arc::clone(&tree.spending),
            parents: origin.parents,
            unlimited: self.services.replayed.is_some(),
        };
        Spending::new(&self.services.metering, of)
    }

    pub(super) fn scope(&mut self, cx: &TurnCx) -> ModelScope {
        ModelScope {
            session_id: self.id.to_string(),
            subagent: (self.tools.role == Role::Child).then(|| "collab_spawn".into()),
            instructions: self.instructions(&cx.model),
            shows_messages: true,
            records: true,
        }
    }

    /// The instructions of the last turn as long as the model is the same. A changed personality is sent in the
    /// conversation.
    pub(super) fn instructions(&mut self, model: &ModelInfo) -> Arc<str> {
        if let Some((last, instructions)) = &self.instructions
            && *last == self.settings.model
        {
            return Arc::clone(instructions);
        }
        let configured = self.profile.config.config.personality;
        let initial = configured.or(context::personality(&self.settings, &self.profile));
        let personality = initial.filter(|_| model.supports_personality || !model.known);
        let instructions: Arc<str> = context::instructions(&self.profile, model, personality).into();
        self.instructions = Some((self.settings.model.clone(), Arc::clone(&instructions)));
        instructions
    }

    /// Publishes how a turn ended, and starts the next one in the queue.
    pub(crate) async fn turn_ended(&mut self, ended: Result<TurnEnd, JoinError>) {
        let Some(running) = self.running.take() else { return };
        self.recovered_calls.clear();
        self.tools.agent_tree.set_inbox(self.id, None);
        let outcome = match ended {
            Ok(TurnEnd { outcome, conversation, session, rate_limits }) => {
                self.memory = Some(Box::new(Memory { conversation, session, rate_limits }));
                outcome
            }
            Err(error) => {
                tracing::error!(thread = %self.id, %error, "the task of a turn failed");
                let error = TurnError {
                    message: "internal error: the turn broke down".into(),
                    codex_error_info: Some(CodexErrorInfo::Other),
                    additional_details: None,
                };
                running.cx.record_failure(&error).await;
                if running.cx.written().await > Position::START && running.cx.broken().is_none() {
                    self.view.mark_stored();
                }
                running.cx.close().await;
                Outcome::Failed(error)
            }
        };
        self.complete_open_items(&running.turn_id, running.cx.is_broken()).await;
        self.view.set_running_turn(None);
        self.record_notifications().await;
        self.notify_parent(&outcome, &running.turn_id);
        self.realtime_link.turn_ended(&running.turn_id, outcome.error_text());
        if running.queued_message {
            self.settle_queued_message(&running.turn_id).await;
        }
        let result = self.turn_result(&running, &outcome);
        self.interrupted = Some(result == TurnResult::Interrupted);
        self.last_turn = Some(running.turn_id.clone());
        self.goals.end_turn(&running.turn_id, result, running.goal_turn).await;
        if running.goal_turn && !self.goals.limits().pause.is_zero() {
            self.wake_at = Instant::now().checked_add(self.goals.limits().pause);
        }
        for reply in running.interrupts {
            reply(Ok(()));
        }
        let (status, error) = match outcome {
            Outcome::Completed { .. } => (TurnStatus::Completed, None),
            Outcome::Interrupted => (TurnStatus::Interrupted, None),
            Outcome::Failed(error) => (TurnStatus::Failed, Some(error)),
        };
        let failed = error.is_some();
        self.view
            .change(&self.events, |status| {
                status.running = false;
                status.error = failed;
                (status.approvals, status.questions) = (0, 0);
            })
            .await;
        if let Some(error) = &error {
            self.events
                .publish(ServerNotification::Error(ErrorNotification {
                    error: error.clone(),
                    will_retry: false,
                    thread_id: self.id.to_string(),
                    turn_id: running.turn_id.clone(),
                }))
                .await;
        }
        let usage = running.cx.usage.lock().map(usage::breakdown);
        self.mark_unread(&running.turn_id).await;
        let times = running.cx.started.times();
        let items: Vec<_> = running.cx.last_message().into_iter().collect();
        let view = if items.is_empty() { TurnItemsView::NotLoaded } else { TurnItemsView::Summary };
        let turn = WireTurn {
            id: running.turn_id,
            items,
            status,
            error,
            items_view: Some(view),
            started_at: times.started_at,
            completed_at: times.completed_at,
            duration_ms: times.duration_ms,
            root_turn_id: Some(running.root_turn_id),
        };
        let completed = TurnCompletedNotification { thread_id: self.id.to_string(), turn, usage };
        self.events.publish(ServerNotification::TurnCompleted(completed)).await;
        self.begin_next().await;
        if !matches!(result, TurnResult::Interrupted | TurnResult::Stopped) {
            self.begin_idle_work().await;
        }
        self.remove_notes().await;
        // Those of turns that a killed process left unfinished and no process has taken up.
        self.events.cancel_stale_approvals().await;
    }

    /// What the end of a turn means for goals and for the queue.
    fn turn_result(&self, running: &RunningTurn, outcome: &Outcome) -> TurnResult {
        match outcome {
            Outcome::Completed { .. } => TurnResult::Completed,
            Outcome::Failed(TurnError {
                codex_error_info: Some(CodexErrorInfo::UsageLimitExceeded | CodexErrorInfo::SessionBudgetExceeded),
                ..
            }) => TurnResult::UsageLimited,
            Outcome::Failed(_) => TurnResult::Failed,
            Outcome::Interrupted if self.closing || running.replaced.load(Ordering::Relaxed) => TurnResult::Stopped,
            Outcome::Interrupted => TurnResult::Interrupted,
        }
    }

    /// Marks the thread unread from a turn that ended.
    async fn mark_unread(&self, turn_id: &str) {
        if self.view.persistence() != Persistence::Stored || self.services.replayed.is_some() {
            return;
        }
        let (id, turn_id) = (self.id, turn_id.to_owned());
        match self.services.organiser.run(move |organiser| organiser.turn_ended(id, &turn_id)).await {
            Ok(read_state) => {
                let changed = ThreadReadStateChangedNotification { thread_id: id.to_string(), read_state };
                self.events.publish(ServerNotification::ThreadReadStateChanged(changed)).await;
            }
            Err(error) => tracing::warn!(%error, thread = %id, "a thread could not be marked unread"),
        }
    }

    /// Notifies the parent agent, before the end of the turn is published.
    fn notify_parent(&self, outcome: &Outcome, turn_id: &str) {
        let status = match outcome {
            Outcome::Completed { last_message } => AgentStatus::Completed(last_message.clone()),
            Outcome::Failed(error) => AgentStatus::Errored(error.message.clone()),
            Outcome::Interrupted => AgentStatus::Interrupted,
        };
        let Some(notice) = self.notice(&status, turn_id) else {
            return self.tools.agent_tree.set(self.id, status);
        };
        let Some(parent) = self.tools.agent_tree.turn_ended(self.id, status, notice) else { return };
        let host = Arc::clone(&self.host);
        // An idle parent records it at once. Not waited for: the parent may be waiting for this thread.
        tokio::spawn(async move { host.record_notifications(parent).await });
    }

    /// What the parent agent is told about the end of a turn.
    fn notice(&self, status: &AgentStatus, turn_id: &str) -> Option<Notice> {
        let agent_tree = &self.tools.agent_tree;
        let agent = agent_tree.find(self.id)?;
        let Some(path) = agent.path else {
            let text = prompts::subagent_notification(&self.id.to_string(), status).ok()?;
            return Some(Notice { item: Box::new(message("user", text)), activity: None });
        };
        let text = match status {
            AgentStatus::Completed(text) => text.clone().unwrap_or_default(),
            AgentStatus::Errored(text) => format!("The turn failed: {text}"),
            _ => "The turn was interrupted.".into(),
        };
        let activity = CompletedItem::SubAgentActivity {
            id: format!("subagent-completed-{turn_id}"),
            kind: SubAgentActivityKind::Completed,
            agent_thread_id: self.id.to_string(),
            agent_path: path.clone(),
            model: None,
            reasoning_effort: None,
        };
        let item = Box::new(agent_message(path, agent_tree.path(agent.parent), text));
        Some(Notice { item, activity: Some(activity) })
    }

    /// Notes that the user allows what the reviewer had denied, and tells the model before its next call.
    pub(crate) async fn approve_denied(&mut self, event: &JsonValue, reply: Reply<()>) {
        let action = match self.guard.denials.approve(event) {
            Ok(Some(action)) => action,
            Ok(None) => return reply(Ok(())),
            Err(refusal) => return reply(Err(refusal)),
        };
        let item = message("developer", prompts::approved_denial(&action));
        let running = self.running.as_ref().filter(|running| running.kind == TurnKind::Regular);
        if let Some(running) = running
            && running.inbox.put(Input::Injected(Box::new(item.clone()))).is_ok()
        {
            return reply(Ok(()));
        }
        reply(self.record_item(item).await);
    }

    /// Takes a message of another agent: into the running turn, into a new one, or into the conversation.
    pub(crate) async fn agent_message(
        &mut self,
        item: Box<ResponseItem>,
        start: bool,
        origin: TurnOrigin,
        reply: Reply<()>,
    ) {
        let mut input = Input::Injected(item);
        if let Some(running) = self.running.as_ref().filter(|running| running.kind == TurnKind::Regular) {
            input = match running.inbox.put(input) {
                Ok(()) => return reply(Ok(())),
                Err(refused) => refused,
            };
        }
        let Input::Injected(item) = input else { return reply(Ok(())) };
        if !start {
            return reply(match self.running {
                None => self.record_item(*item).await,
                Some(_) => Err(Refusal::invalid("the agent takes no messages now")),
            });
        }
        let answer = AnswerWork { input: TurnInput::Message(*item), origin, ..AnswerWork::default() };
        let work = Work::Answer(Box::new(answer));
        if self.running.is_some() {
            if self.queued.len() >= MAX_QUEUED {
                return reply(Err(Refusal::invalid("too many turns wait for the running one")));
            }
            self.queued.push_back(QueuedTurn { turn_id: new_turn_id(), work, replaces: false });
            return reply(Ok(()));
        }
        reply(match self.begin_turn(new_turn_id(), work, None).await {
            Ok(()) => Ok(()),
            Err((refusal, _)) => Err(refusal),
        });
    }

    fn subagents(&self) -> Vec<(String, String)> {
        let children = self.tools.agent_tree.children(self.id).into_iter();
        children.map(|(id, nickname)| (id.to_string(), nickname)).collect()
    }

    pub(super) async fn begin_next(&mut self) {
        while let Some(QueuedTurn { turn_id, work, .. }) = self.queued.pop_front() {
            match self.begin_turn(turn_id.clone(), work, None).await {
                Ok(()) => return,
                // It is noted, and the next owner begins with it.
                Err((Refusal::LeaseLost(_) | Refusal::Failed(_), _)) if self.let_go.is_shared() => {
                    return self.let_go.abandon();
                }
                Err((refusal, _)) => self.publish_not_started(turn_id, Some(refusal)).await,
            }
        }
    }

    /// Publishes that a queued turn ends without having started: it failed to, or was interrupted.
    pub(crate) async fn publish_not_started(&self, turn_id: String, refusal: Option<Refusal>) {
        let text = refusal.as_ref().map_or_else(|| INTERRUPTED.to_owned(), ToString::to_string);
        self.realtime_link.turn_ended(&turn_id, Some(text));
        let error = refusal.map(|refusal| TurnError {
            message: refusal.to_string(),
            codex_error_info: Some(CodexErrorInfo::Other),
            additional_details: None,
        });
        let thread_id = self.id.to_string();
        if let Some(error) = error.clone() {
            let (thread_id, turn_id) = (thread_id.clone(), turn_id.clone());
            let error = ErrorNotification { error, will_retry: false, thread_id, turn_id };
            self.events.publish(ServerNotification::Error(error)).await;
        }
        let status = if error.is_some() { TurnStatus::Failed } else { TurnStatus::Interrupted };
        let turn = WireTurn { status, error, ..in_progress(turn_id) };
        let completed = TurnCompletedNotification { thread_id, turn, usage: None };
        self.events.publish(ServerNotification::TurnCompleted(completed)).await;
    }

    /// Completes the open items of a turn that ended, except commands in the background. Items of a turn that could not
    /// be written are dropped instead.
    async fn complete_open_items(&self, turn_id: &str, broken: bool) {
        for item in self.events.open_items(turn_id) {
            if self.tools.terminals.runs(item.id()) {
                continue;
            }
            match broken {
                true => self.events.forget_item(turn_id, item.id()),
                false => self.show_completed(given_up(item), turn_id.into()).await,
            }
        }
    }
}

/// What the rollout has of a turn once it has started.
fn trace_of(answer: &AnswerWork, turn_id: &str) -> Trace {
    match &answer.input {
        TurnInput::User(input) if !input.content.is_empty() => Trace::Message,
        _ => Trace::Turn(turn_id.to_owned()),
    }
}

pub(crate) fn new_turn_id() -> String {
    Uuid::now_v7().to_string()
}

pub(super) fn in_progress(id: String) -> WireTurn {
    let root_turn_id = Some(id.clone());
    WireTurn { id, items_view: Some(TurnItemsView::NotLoaded), root_turn_id, ..WireTurn::default() }
}

/// The turn of a response. That of a review has the review's hint as its first item.
fn shown_turn(id: String, work: &Work) -> WireTurn {
    let mut turn = in_progress(id);
    turn.root_turn_id = Some(root_turn_id(&turn.id, work));
    if let Work::Review { hint, .. } = work {
        let content = vec![UserInput::Text { text: hint.clone(), text_elements: Vec::new() }];
        turn.items.push(ThreadItem::UserMessage { id: turn.id.clone(), content, client_id: None });
    }
    turn
}

/// The turn that a turn belongs to, as its request says: itself unless another is named.
fn root_turn_id(turn_id: &str, work: &Work) -> String {
    match work {
        Work::Answer(answer) => answer.labels.root_turn_id.clone().unwrap_or_else(|| turn_id.to_owned()),
        _ => turn_id.to_owned(),
    }
}

fn refuse(reply: Option<Reply<WireTurn>>, refusal: Refusal) {
    if let Some(reply) = reply {
        reply(Err(refusal));
    }
}

/// The refusal of a turn that would have to steer the running one, which takes no input.
fn not_startable(running: &RunningTurn) -> Option<Refusal> {
    match running.kind {
        _ if running.is_stopping() => None,
        TurnKind::Review => Some(not_steerable(NonSteerableTurnKind::Review, "cannot steer a review turn")),
        TurnKind::Compact => Some(not_steerable(NonSteerableTurnKind::Compact, "cannot steer a compact turn")),
        TurnKind::Regular | TurnKind::ShellCommand => None,
    }
}

fn not_steerable(turn_kind: NonSteerableTurnKind, message: &str) -> Refusal {
    Refusal::NotSteerable { message: message.into(), turn_kind }
}
