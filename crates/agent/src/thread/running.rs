//! How a thread starts, steers and ends turns.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loomd_protocol::{
    CodexErrorInfo, ErrorNotification, JsonValue, NonSteerableTurnKind, ServerNotification, ThreadItem,
    Turn as WireTurn, TurnCompletedNotification, TurnError, TurnStartParams, TurnStartedNotification, TurnStatus,
    UserInput,
};
use loomd_store::Position;
use loomd_store::rollout::AgentStatus;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;
use tracing::field::Empty;
use uuid::Uuid;

use super::memory::Memory;
use super::op::Reply;
use super::running_turn::{QueuedTurn, RunningTurn, TurnKind};
use super::state::Thread;
use crate::context;
use crate::given_up::given_up;
use crate::guard::ActionCx;
use crate::inbox::{Inbox, Input};
use crate::message::message;
use crate::prompts;
use crate::refusal::Refusal;
use crate::tools::{Role, ToolCx, Toolbox};
use crate::turn::{INTERRUPTED, ModelScope, Outcome, Progress, TurnEnd, TurnTask, Work, shell_command};
use crate::turn_cx::TurnCx;
use crate::view::Persistence;

/// The most turns that wait for a running one; more are refused.
const MAX_QUEUED: usize = 64;

impl Thread {
    /// Starts a turn, or adds the input to the running one.
    pub(crate) async fn start_turn(&mut self, mut params: TurnStartParams, reply: Reply<WireTurn>) {
        if params.input.is_empty() {
            return reply(Err(Refusal::invalid("input must not be empty")));
        }
        let input = std::mem::take(&mut params.input);
        let output_schema = params.output_schema.take();
        let before = self.settings.clone();
        let disallowed = self.disallowed(&params);
        if disallowed.is_none() {
            self.settings.change(&params);
        }
        if self.running.is_some() {
            return self.steer_or_queue(input, output_schema, reply);
        }
        let (turn_id, work) = (new_turn_id(), Work::Answer { input, output_schema });
        match self.begin_turn(turn_id.clone(), work, Some(reply)).await {
            Ok(()) => self.publish_disallowed(turn_id, disallowed).await,
            Err((refusal, reply)) => {
                self.settings = before;
                refuse(reply, refusal);
            }
        }
    }

    /// Starts a turn with the thread's settings, or adds the input to the running one.
    pub(crate) async fn submit(&mut self, input: Vec<UserInput>, reply: Reply<WireTurn>) {
        if self.running.is_some() {
            return self.steer_or_queue(input, None, reply);
        }
        let work = Work::Answer { input, output_schema: None };
        if let Err((refusal, reply)) = self.begin_turn(new_turn_id(), work, Some(reply)).await {
            refuse(reply, refusal);
        }
    }

    /// Adds input to the running turn. If that takes no more, the input becomes the next turn.
    fn steer_or_queue(&mut self, input: Vec<UserInput>, output_schema: Option<JsonValue>, reply: Reply<WireTurn>) {
        let input = match &self.running {
            Some(running) if running.kind == TurnKind::Regular && !running.is_stopping() => {
                match running.inbox.put(Input::User(input)) {
                    Ok(()) => return reply(Ok(in_progress(running.turn_id.clone()))),
                    Err(Input::User(input)) => input,
                    Err(Input::Injected(_)) => Vec::new(),
                }
            }
            _ => input,
        };
        if self.queued.len() >= MAX_QUEUED {
            return reply(Err(Refusal::invalid("too many turns wait for the running one")));
        }
        let turn_id = new_turn_id();
        reply(Ok(in_progress(turn_id.clone())));
        self.queued.push_back(QueuedTurn { turn_id, work: Work::Answer { input, output_schema }, replaces: false });
    }

    /// The error when the administrator's requirements forbid the settings of a turn.
    fn disallowed(&self, params: &TurnStartParams) -> Option<String> {
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

    pub(crate) fn steer(&self, expected: &str, input: Vec<UserInput>) -> Result<String, Refusal> {
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
        running.inbox.put(Input::User(input)).map_err(|_| none())?;
        Ok(running.turn_id.clone())
    }

    /// Interrupts the running turn, or removes a queued one. Replies when the turn has stopped, at once when none is
    /// running.
    pub(crate) async fn interrupt(&mut self, turn_id: &str, reply: Reply<()>) {
        let Some(running) = &mut self.running else { return reply(Ok(())) };
        if !turn_id.is_empty() && turn_id != running.turn_id {
            let at = self.queued.iter().position(|queued| queued.turn_id == turn_id);
            if let Some(queued) = at.and_then(|at| self.queued.remove(at)) {
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
    pub(crate) async fn replace(&mut self, work: Work, reply: Reply<WireTurn>) {
        let turn_id = new_turn_id();
        match &self.running {
            None => {
                if let Err((refusal, reply)) = self.begin_turn(turn_id, work, Some(reply)).await {
                    refuse(reply, refusal);
                }
            }
            Some(running) => {
                running.replaced.store(true, Ordering::Relaxed);
                running.cancel();
                let turn = shown_turn(turn_id.clone(), &work);
                reply(Ok(turn));
                // After other replacements, before turns that wait for the end of the running one.
                let at = self.queued.iter().take_while(|queued| queued.replaces).count();
                self.queued.insert(at, QueuedTurn { turn_id, work, replaces: true });
            }
        }
    }

    /// Runs a command of the user: beside a running turn, else as a turn of its own.
    pub(crate) async fn shell_command(&mut self, command: String, reply: Reply<()>) {
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
            reply(Err(Refusal::invalid("too many turns wait for the running one")));
        } else if self.running.is_some() {
            reply(Ok(in_progress(turn_id.clone())));
            self.queued.push_back(QueuedTurn { turn_id, work, replaces: false });
        } else if let Err((refusal, reply)) = self.begin_turn(turn_id, work, Some(reply)).await {
            refuse(reply, refusal);
        }
    }

    async fn begin_turn(
        &mut self,
        turn_id: String,
        work: Work,
        reply: Option<Reply<WireTurn>>,
    ) -> Result<(), (Refusal, Option<Reply<WireTurn>>)> {
        self.record_notifications().await;
        let (recorder, memory) = match self.prepare().await {
            Ok(prepared) => prepared,
            Err(refusal) => return Err((refusal, reply)),
        };
        if let Some(reply) = reply {
            reply(Ok(shown_turn(turn_id.clone(), &work)));
        }
        let Memory { conversation, session, rate_limits } = memory;
        let (cancel, inbox, replaced) = (CancellationToken::new(), Arc::new(Inbox::default()), Arc::default());
        let cx = Arc::new(TurnCx::new(
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
        ));
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
            replaced: Arc::clone(&replaced),
            progress: Progress::default(),
        };
        // Counted before it is published: a shutdown that follows the event waits for the turn.
        let working = self.busy.begin();
        self.view.set_running_turn(Some(turn_id.clone()));
        self.view.change(&self.events, |status| (status.running, status.error) = (true, false)).await;
        let started = TurnStartedNotification { thread_id: self.id.to_string(), turn: in_progress(turn_id.clone()) };
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
            interrupts: Vec::new(),
            _working: working,
        });
        self.tools.agent_tree.set(self.id, AgentStatus::Running);
        Ok(())
    }

    fn scope(&mut self, cx: &TurnCx) -> ModelScope {
        ModelScope {
            session_id: self.id.to_string(),
            subagent: (self.tools.role == Role::Child).then(|| "collab_spawn".into()),
            instructions: self.instructions(cx),
            shows_messages: true,
            records: true,
        }
    }

    /// The instructions of the last turn as long as the model is the same. A changed personality is sent in the
    /// conversation.
    fn instructions(&mut self, cx: &TurnCx) -> Arc<str> {
        if let Some((model, instructions)) = &self.instructions
            && *model == self.settings.model
        {
            return Arc::clone(instructions);
        }
        let configured = self.profile.config.config.personality;
        let initial = configured.or(context::personality(&self.settings, &self.profile));
        let personality = initial.filter(|_| cx.model.supports_personality || !cx.model.known);
        let instructions: Arc<str> = context::instructions(&self.profile, &cx.model, personality).into();
        self.instructions = Some((self.settings.model.clone(), Arc::clone(&instructions)));
        instructions
    }

    /// Publishes how a turn ended, and starts the next one in the queue.
    pub(crate) async fn turn_ended(&mut self, ended: Result<TurnEnd, JoinError>) {
        let Some(running) = self.running.take() else { return };
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
        self.notify_parent(&outcome);
        self.realtime_link.turn_ended(&running.turn_id, outcome.error_text());
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
        let turn = WireTurn { id: running.turn_id, items: Vec::new(), status, error, items_view: None };
        let completed = TurnCompletedNotification { thread_id: self.id.to_string(), turn };
        self.events.publish(ServerNotification::TurnCompleted(completed)).await;
        self.begin_next().await;
    }

    /// Notifies the parent agent, before the end of the turn is published.
    fn notify_parent(&self, outcome: &Outcome) {
        let status = match outcome {
            Outcome::Completed { last_message } => AgentStatus::Completed(last_message.clone()),
            Outcome::Failed(error) => AgentStatus::Errored(error.message.clone()),
            Outcome::Interrupted => AgentStatus::Interrupted,
        };
        let Ok(text) = prompts::subagent_notification(&self.id.to_string(), &status) else {
            return self.tools.agent_tree.set(self.id, status);
        };
        let notification = Box::new(message("user", text));
        let Some(parent) = self.tools.agent_tree.turn_ended(self.id, status, notification) else { return };
        let host = Arc::clone(&self.host);
        // An idle parent records it at once. Not waited for: the parent may be waiting for this thread.
        tokio::spawn(async move { host.record_notifications(parent).await });
    }

    fn subagents(&self) -> Vec<(String, String)> {
        let children = self.tools.agent_tree.children(self.id).into_iter();
        children.map(|(id, nickname)| (id.to_string(), nickname)).collect()
    }

    async fn begin_next(&mut self) {
        while let Some(QueuedTurn { turn_id, work, .. }) = self.queued.pop_front() {
            match self.begin_turn(turn_id.clone(), work, None).await {
                Ok(()) => return,
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
        let turn = WireTurn { id: turn_id, items: Vec::new(), status, error, items_view: None };
        self.events.publish(ServerNotification::TurnCompleted(TurnCompletedNotification { thread_id, turn })).await;
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

pub(crate) fn new_turn_id() -> String {
    Uuid::now_v7().to_string()
}

fn in_progress(id: String) -> WireTurn {
    WireTurn { id, items: Vec::new(), status: TurnStatus::InProgress, error: None, items_view: None }
}

/// The turn of a response. That of a review has the review's hint as its first item.
fn shown_turn(id: String, work: &Work) -> WireTurn {
    let mut turn = in_progress(id);
    if let Work::Review { hint, .. } = work {
        let content = vec![UserInput::Text { text: hint.clone(), text_elements: Vec::new() }];
        turn.items.push(ThreadItem::UserMessage { id: turn.id.clone(), content });
    }
    turn
}

fn refuse(reply: Option<Reply<WireTurn>>, refusal: Refusal) {
    if let Some(reply) = reply {
        reply(Err(refusal));
    }
}

fn not_steerable(turn_kind: NonSteerableTurnKind, message: &str) -> Refusal {
    Refusal::NotSteerable { message: message.into(), turn_kind }
}
