//! How a thread ends a turn and begins the next one.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use loomd_protocol::{
    CodexErrorInfo, ErrorNotification, ServerNotification, SubAgentActivityKind, ThreadReadStateChangedNotification,
    Turn as WireTurn, TurnCompletedNotification, TurnError, TurnItemsView, TurnStatus,
};
use loomd_store::Position;
use loomd_store::rollout::{AgentStatus, CompletedItem};
use tokio::task::JoinError;
use tokio::time::Instant;

use super::launching::in_progress;
use super::memory::Memory;
use super::running_turn::{QueuedTurn, RunningTurn};
use super::state::Thread;
use crate::agent_tree::Notice;
use crate::given_up::given_up;
use crate::goals::TurnResult;
use crate::message::{agent_message, message};
use crate::prompts;
use crate::refusal::Refusal;
use crate::turn::{INTERRUPTED, Outcome, TurnEnd, TurnInput, Work, usage};
use crate::view::Persistence;

impl Thread {
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

    pub(super) async fn begin_next(&mut self) {
        while let Some(QueuedTurn { turn_id, work, .. }) = self.queued.pop_front() {
            let is_input = matches!(&work, Work::Answer(answer) if matches!(answer.input, TurnInput::User(_)));
            match self.begin_turn(turn_id.clone(), work, None).await {
                Ok(()) => return,
                // Input was acknowledged and is noted: the next owner begins with it.
                Err((Refusal::Failed(_), _)) if is_input && self.let_go.is_shared() && self.notes.is_some() => {
                    return self.let_go.abandon();
                }
                Err((Refusal::LeaseLost(_), _)) if self.let_go.is_shared() => return self.let_go.abandon(),
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
