//! Requests about turns: to start, steer, interrupt and replace them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loomd_protocol::{
    CodexErrorInfo, ErrorNotification, JsonValue, Level, NonSteerableTurnKind, ResponseItem, ServerNotification,
    Turn as WireTurn, TurnError, TurnStartParams, UserInput,
};
use loomd_store::RequestKey;

use super::answered::Trace;
use super::launching::{in_progress, new_turn_id, shown_turn};
use super::op::Reply;
use super::running_turn::{QueuedTurn, RunningTurn, TurnKind};
use super::state::Thread;
use crate::confinement::CommandPolicy;
use crate::inbox::{Input, UserMessageInput};
use crate::message::message;
use crate::prompts;
use crate::refusal::Refusal;
use crate::turn::{AnswerWork, TurnInput, Work, shell_command};
use crate::turn_origin::TurnOrigin;

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
}

/// What the rollout has of a turn once it has started.
fn trace_of(answer: &AnswerWork, turn_id: &str) -> Trace {
    match &answer.input {
        TurnInput::User(input) if !input.content.is_empty() => Trace::Message,
        _ => Trace::Turn(turn_id.to_owned()),
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
