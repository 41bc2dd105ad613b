//! The course of a turn, whatever it is for: its start, its end, and what is recorded of both.

use std::sync::atomic::Ordering;

use loomd_protocol::{ServerNotification, TurnError, WarningNotification};
use loomd_store::Durability;
use loomd_store::rollout::{AbortReason, BaseInstructions, Event, Record, TaskComplete, TaskStarted, TurnAborted};
use loomd_telemetry::SpanStatus;

use super::task::{Failure, Outcome, TurnEnd, TurnTask};
use super::work::{AnswerWork, Work};
use super::{usage, workspaces};
use crate::context::name_of;
use crate::message::message;
use crate::metering::{Checked, CountedOutcome};
use crate::notify::{self, TurnComplete};
use crate::prompts;
use crate::turn_cx::GRACE;

impl TurnTask {
    /// Runs the turn and records how it ended.
    pub async fn run(mut self, work: Work) -> TurnEnd {
        let mut recovered = self.progress.recovered.take().map(|recovered| *recovered);
        self.begin(recovered.as_ref().is_some_and(|recovered| recovered.recorded)).await;
        let answers = matches!(work, Work::Answer(_));
        let done = match work {
            work if let Some(recovered) = recovered.take_if(|recovered| recovered.interrupted) => {
                self.record_unread(work, recovered.inputs).await;
                Err(Failure::Interrupted)
            }
            Work::Answer(answer) => {
                let AnswerWork { input, context, output_schema, labels, budget: _, origin: _ } = *answer;
                (self.progress.output_schema, self.progress.labels) = (output_schema, labels);
                self.progress.given_context = context;
                self.answer(input, recovered).await
            }
            Work::Compact => self.compact().await,
            Work::Review { target, hint, prompt } => self.review(target, hint, prompt).await,
            Work::ShellCommand { command } => self.shell_command(command).await,
        };
        // Input that came after the last model call is still added to the conversation.
        let mut late = self.inbox.close();
        self.settle().await;
        late.extend(self.inbox.take());
        for inputs in late {
            // Input whose hooks were interrupted is dropped.
            _ = self.take_queued(inputs).await;
        }
        self.count_side_calls().await;
        let mut outcome = match done {
            // The time of a budget was used up.
            Err(Failure::Interrupted) if let Some(error) = self.cx.spending.stopped() => Outcome::Failed(error),
            Ok(()) => Outcome::Completed { last_message: self.progress.last_message.clone() },
            Err(Failure::Interrupted) => Outcome::Interrupted,
            Err(Failure::Model(error)) => Outcome::Failed(self.turn_error(&error)),
            Err(Failure::Other(error)) => Outcome::Failed(error),
        };
        if matches!(outcome, Outcome::Completed { .. }) {
            // A turn that has completed does not fail because nothing is left for the next one.
            self.check_budgets().await;
        }
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
        self.cx.spending.settle();
        self.services.metering.counts.turn(match &outcome {
            Outcome::Completed { .. } => CountedOutcome::Completed,
            Outcome::Failed(_) => CountedOutcome::Failed,
            Outcome::Interrupted => CountedOutcome::Cancelled,
        });
        tracing::Span::current().record("outcome", outcome.name());
        self.cx.trace.end(match &outcome {
            Outcome::Completed { .. } => SpanStatus::Completed,
            Outcome::Failed(error) => SpanStatus::Failed(failure_kind(error)),
            Outcome::Interrupted => SpanStatus::Cancelled,
        });
        TurnEnd { outcome, conversation, session: self.session, rate_limits: self.rate_limits }
    }

    /// Fails when a budget is used up. To be called before every model call of the turn.
    pub(super) async fn within_budgets(&self) -> Result<(), Failure> {
        match self.check_budgets().await {
            Some(error) => {
                self.cx.spending.stop(error.clone());
                Err(Failure::Other(error))
            }
            None => Ok(()),
        }
    }

    /// Publishes warnings about budgets; the error when one is used up.
    async fn check_budgets(&self) -> Option<TurnError> {
        let Checked { warnings, exceeded } = self.cx.spending.check().await;
        for message in warnings {
            let warning = WarningNotification { thread_id: Some(self.cx.thread_id.clone()), message };
            self.cx.publish(ServerNotification::Warning(warning)).await;
        }
        exceeded
    }

    /// Waits for commands of the user that run beside the turn. An interrupt stops them, too, within [`GRACE`].
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

    /// `recorded`: the rollout has the start of the turn.
    async fn begin(&mut self, recorded: bool) {
        let mut records = Vec::new();
        let git = crate::git::facts(&self.cx.settings.cwd).await;
        self.progress.workspaces = workspaces::workspaces(&self.cx.settings.cwd, git.as_ref());
        if let Some(mut meta) = self.meta.take() {
            meta.git = git;
            meta.base_instructions = Some(BaseInstructions { text: self.scope.instructions.to_string() });
            records.push(Record::SessionMeta(meta));
        }
        if !recorded {
            records.push(Record::EventMsg(Event::TaskStarted(TaskStarted {
                turn_id: self.cx.turn_id.clone(),
                model_context_window: Some(usage::window(&self.cx.model)),
                collaboration_mode_kind: name_of(self.cx.settings.mode).unwrap_or_default(),
                started_at: Some(self.cx.started.at.as_second()),
            })));
        }
        self.cx.note(&records).await;
        if !self.cx.model.known && self.cx.profile.has_newer_tools() {
            let model = &self.cx.settings.model;
            let message = format!(
                "The model `{model}` is not in the catalogue: default metadata is used, which may degrade performance."
            );
            let warning = WarningNotification { thread_id: Some(self.cx.thread_id.clone()), message };
            self.cx.publish(ServerNotification::Warning(warning)).await;
        }
    }

    async fn finish(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Completed { last_message } => {
                let (turn_id, last_agent_message) = (self.cx.turn_id.clone(), last_message.clone());
                let over =
                    Event::TaskComplete(TaskComplete { turn_id, last_agent_message, times: self.cx.started.times() });
                self.cx.note(&[Record::EventMsg(over)]).await;
            }
            Outcome::Failed(error) => self.cx.record_failure(error).await,
            Outcome::Interrupted => {
                let replaced = self.replaced.load(Ordering::Relaxed);
                if !replaced {
                    self.append(&message("user", prompts::TURN_ABORTED.into())).await;
                }
                let reason = if replaced { AbortReason::Replaced } else { AbortReason::Interrupted };
                let times = self.cx.started.times();
                let over = Event::TurnAborted(TurnAborted { turn_id: Some(self.cx.turn_id.clone()), reason, times });
                self.cx.note(&[Record::EventMsg(over)]).await;
            }
        }
        self.cx.flush(Durability::Synced).await;
        if self.cx.broken().is_none() {
            self.view.mark_stored();
        }
    }

    /// Runs the user's `notify` program.
    fn notify(&self, last_message: Option<&str>) {
        let cx = &self.cx;
        if let Some(program) = &cx.profile.config.config.notify
            && self.services.replayed.is_none()
        {
            notify::run(
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
}

/// The kind of an error, for spans: its text may quote the request.
fn failure_kind(error: &TurnError) -> String {
    error.codex_error_info.as_ref().and_then(name_of).unwrap_or_else(|| "other".into())
}
