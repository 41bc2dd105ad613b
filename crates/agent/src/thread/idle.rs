//! What an idle thread does by itself: turns of queued messages, then turns of its goal. Such a turn starts only under
//! the thread's lease, so of several processes that have the thread loaded one starts it. A queued message is claimed
//! before its turn starts and removed when the turn has ended; what a killed process has claimed is settled first.

use loomd_protocol::{
    ModeKind, QueuedSubmission, ServerNotification, ThreadQueueChangedNotification, Turn as WireTurn,
};
use loomd_store::rollout::{Event, Record};
use loomd_store::{Enqueued, Goal, QueuedMessage};
use tokio::time::Instant;

use super::launching::{in_progress, new_turn_id};
use super::op::Reply;
use super::state::Thread;
use crate::event_sink::Subscriber;
use crate::goals::{
    GoalChange, IdleFacts, IdleWork, cleared_notification, continuation, next_idle_work, updated_notification,
};
use crate::history;
use crate::inbox::UserMessageInput;
use crate::refusal::Refusal;
use crate::turn::{AnswerWork, TurnInput, TurnLabels, Work};
use crate::view::Persistence;

impl Thread {
    /// Starts the next turn that the thread has to do by itself, if it is idle and there is one.
    pub(crate) async fn begin_idle_work(&mut self) {
        if !self.may_begin_idle_work() {
            return;
        }
        if let Err(refusal) = self.try_idle_work().await {
            tracing::debug!(thread = %self.id, %refusal, "idle work does not start here");
        }
    }

    fn may_begin_idle_work(&self) -> bool {
        self.running.is_none()
            && self.queued.is_empty()
            && !self.closing
            && !self.busy.is_draining()
            && self.view.persistence() != Persistence::Ephemeral
            && self.services.replayed.is_none()
    }

    async fn try_idle_work(&mut self) -> Result<(), Refusal> {
        let work = self.store.work();
        let queued = work.has_queued(self.id).await?;
        let goal = self.goals.read().await?;
        if !queued && goal.is_none() {
            return Ok(());
        }
        let interrupted = queued && self.is_interrupted().await?;
        let plan_mode = self.settings.mode == ModeKind::Plan;
        let facts = IdleFacts { queued, interrupted, goal: goal.as_ref(), plan_mode };
        match next_idle_work(&facts) {
            Some(IdleWork::QueuedMessage) => {
                let has_begun = self.begin_queued_turn(None, None).await?;
                // All entries may be claims of a turn that had started.
                if !has_begun && goal.is_some() {
                    self.begin_goal_turn(plan_mode).await?;
                }
            }
            Some(IdleWork::Goal) => self.begin_goal_turn(plan_mode).await?,
            None => {}
        }
        Ok(())
    }

    /// Whether the last turn was interrupted, here or before the thread was loaded.
    pub(super) async fn is_interrupted(&mut self) -> Result<bool, Refusal> {
        if let Some(interrupted) = self.interrupted {
            return Ok(interrupted);
        }
        let interrupted = match (&self.reader, self.view.persistence()) {
            (Some(reader), Persistence::Stored) => history::ends_interrupted(&**reader).await?,
            _ => false,
        };
        self.interrupted = Some(interrupted);
        Ok(interrupted)
    }

    async fn begin_goal_turn(&mut self, plan_mode: bool) -> Result<(), Refusal> {
        if plan_mode {
            return Ok(());
        }
        if let Some(wake_at) = self.wake_at.filter(|wake_at| *wake_at > Instant::now()) {
            tracing::debug!(thread = %self.id, ?wake_at, "the next turn of the goal waits");
            return Ok(());
        }
        self.wake_at = None;
        let prepared = self.prepare_turn().await?;
        let Some(goal) = self.goals.begin_goal_turn().await? else {
            self.put_back(prepared);
            return Ok(());
        };
        let input = TurnInput::Goal(continuation(&goal));
        let labels = TurnLabels { trigger: Some("goal".into()), ..TurnLabels::default() };
        let mut work = Work::Answer(Box::new(AnswerWork { input, labels, ..AnswerWork::default() }));
        let turn_id = new_turn_id();
        self.note_started(&turn_id, &mut work, false).await?;
        self.launch(prepared, turn_id, work).await;
        Ok(())
    }

    /// Starts the turn of a queued message: the first one, or a certain one. False when there is none.
    async fn begin_queued_turn(
        &mut self,
        message: Option<String>,
        reply: Option<&mut Option<Reply<WireTurn>>>,
    ) -> Result<bool, Refusal> {
        let prepared = self.prepare_turn().await?;
        self.settle_claims().await?;
        let turn_id = new_turn_id();
        let claimed = self.store.work().claim(self.id, message, turn_id.clone()).await;
        let claimed = match claimed {
            Ok(Some(claimed)) => claimed,
            Ok(None) => {
                self.put_back(prepared);
                return Ok(false);
            }
            Err(error) => {
                self.put_back(prepared);
                return Err(error.into());
            }
        };
        if let Some(reply) = reply.and_then(Option::take) {
            reply(Ok(in_progress(turn_id.clone())));
        }
        self.publish_queue_changed().await;
        let QueuedMessage { input: content, client_id, .. } = claimed;
        let input = TurnInput::User(UserMessageInput { id: None, content, client_id: Some(client_id) });
        let labels = TurnLabels { trigger: Some("queue".into()), ..TurnLabels::default() };
        let mut work = Work::Answer(Box::new(AnswerWork { input, labels, ..AnswerWork::default() }));
        self.note_started(&turn_id, &mut work, true).await?;
        self.launch(prepared, turn_id, work).await;
        if let Some(running) = &mut self.running {
            running.queued_message = true;
        }
        Ok(true)
    }

    /// Decides about messages that another process had claimed when it was killed: those whose turn has them in the
    /// rollout are removed, the others wait again. Called under the thread's lease.
    async fn settle_claims(&mut self) -> Result<(), Refusal> {
        let work = self.store.work();
        for claim in work.claims(self.id).await? {
            let started = match &self.reader {
                Some(reader) => history::has_user_message(&**reader, &claim.turn_id).await?,
                None => false,
            };
            match started {
                true => work.settle_claim(self.id, claim.turn_id).await?,
                false => work.release_claim(self.id, claim.turn_id).await?,
            }
        }
        Ok(())
    }

    /// Removes the queued message of a turn that has ended.
    pub(super) async fn settle_queued_message(&self, turn_id: &str) {
        if let Err(error) = self.store.work().settle_claim(self.id, turn_id.to_owned()).await {
            // Its claim is settled before the next queued turn.
            tracing::warn!(thread = %self.id, %error, "a queued message cannot be removed yet");
        }
    }

    /// Queues a message, which becomes a turn at once when the thread is idle.
    pub(crate) async fn enqueue(
        &mut self,
        client_id: String,
        input: Vec<loomd_protocol::UserInput>,
        reply: Reply<QueuedSubmission>,
    ) {
        if let Err(refusal) = self.materialize(Vec::new()).await {
            return reply(Err(refusal));
        }
        match self.store.work().enqueue(self.id, client_id.clone(), input).await {
            Ok(Enqueued::Added(message)) => {
                reply(Ok(message.to_wire()));
                self.publish_queue_changed().await;
                self.begin_idle_work().await;
            }
            other => reply(other.map_err(Into::into).and_then(|queued| not_added(queued, &client_id))),
        }
    }

    /// Starts the turn of a queued message now.
    pub(crate) async fn start_queued(&mut self, message: Option<String>, reply: Reply<WireTurn>) {
        if self.running.is_some() || !self.queued.is_empty() {
            return reply(Err(Refusal::invalid("thread already has an active or pending turn")));
        }
        let none = match &message {
            Some(message) => format!("queued submission not found: {message}"),
            None => "queue is empty".to_owned(),
        };
        let mut reply = Some(reply);
        let refusal = match self.begin_queued_turn(message, Some(&mut reply)).await {
            Ok(true) => return,
            Ok(false) => Refusal::invalid(none),
            Err(refusal) => refusal,
        };
        if let Some(reply) = reply {
            reply(Err(refusal));
        }
    }

    pub(super) async fn publish_queue_changed(&self) {
        self.events.publish(queue_changed(self.id)).await;
    }

    /// Changes the goal for a client. An active goal of an idle thread starts a turn.
    pub(crate) async fn set_goal(&mut self, change: GoalChange, reply: Reply<loomd_protocol::ThreadGoal>) {
        let goals = std::sync::Arc::clone(&self.goals);
        let stored = match goals.set(change).await {
            Ok(stored) => stored,
            Err(refusal) => return reply(Err(refusal)),
        };
        if let Err(refusal) = self.record_goal(&stored.goal).await {
            return reply(Err(refusal));
        }
        reply(Ok(stored.goal.to_wire(self.id)));
        stored.publish().await;
        self.begin_idle_work().await;
    }

    pub(crate) async fn clear_goal(&mut self, reply: Reply<bool>) {
        let mut reply = Some(reply);
        let goals = std::sync::Arc::clone(&self.goals);
        let cleared = goals.clear(|cleared| {
            if let Some(reply) = reply.take() {
                reply(Ok(cleared));
            }
        });
        if let Err(refusal) = cleared.await
            && let Some(reply) = reply
        {
            reply(Err(refusal));
        }
    }

    /// Publishes the goal of a thread that was resumed, then starts what it has to do by itself.
    pub(super) async fn resume_goal(&mut self) {
        match self.goals.read().await {
            Ok(Some(goal)) => {
                self.goals.resume_clock(&goal);
                self.events.publish(updated_notification(self.id, &goal, None)).await;
            }
            Ok(None) => self.events.publish(cleared_notification(self.id)).await,
            Err(refusal) => tracing::warn!(thread = %self.id, %refusal, "the goal cannot be read"),
        }
        self.begin_idle_work().await;
    }

    /// Publishes the goal that a fork took along.
    pub(super) async fn publish_forked_goal(&self) {
        if let Ok(Some(goal)) = self.goals.read().await {
            self.events.publish(updated_notification(self.id, &goal, None)).await;
        }
    }

    /// Sends the goal to a client that has joined the thread.
    pub(super) async fn notify_goal(&self, subscriber: Subscriber) {
        let notification = match self.goals.read().await {
            Ok(Some(goal)) => updated_notification(self.id, &goal, None),
            Ok(None) => cleared_notification(self.id),
            Err(_) => return,
        };
        self.events.notify(&[subscriber], notification).await;
    }

    /// Copies the goal to the rollout, which is created if there is none.
    async fn record_goal(&mut self, goal: &Goal) -> Result<(), Refusal> {
        let goal = goal.to_wire(self.id);
        let updated = loomd_store::rollout::ThreadGoalUpdated { thread_id: self.id.to_string(), goal };
        let record = Record::EventMsg(Event::ThreadGoalUpdated(updated));
        if self.view.persistence() == Persistence::Pending && self.running.is_none() {
            return self.materialize(vec![record]).await;
        }
        if let Some(running) = &self.running {
            running.cx.record_while_open(std::slice::from_ref(&record)).await;
        } else if let Err(refusal) = self.append_idle(&record).await {
            // Another process runs a turn. The goal itself is stored; this is only a copy.
            tracing::debug!(thread = %self.id, %refusal, "the goal is not copied to the rollout");
        }
        Ok(())
    }
}

/// The answer to a message that was not added to the queue.
pub(crate) fn not_added(queued: Enqueued, client_id: &str) -> Result<QueuedSubmission, Refusal> {
    match queued {
        Enqueued::Added(message) | Enqueued::Present(message) => Ok(message.to_wire()),
        Enqueued::Started { turn_id } => {
            Err(Refusal::invalid(format!("message {client_id} has already become turn {turn_id}")))
        }
        Enqueued::Full => {
            Err(Refusal::invalid(format!("the queue is full: it has {} messages", loomd_store::MAX_QUEUED)))
        }
    }
}

pub(crate) fn queue_changed(id: loomd_store::ThreadId) -> ServerNotification {
    ServerNotification::ThreadQueueChanged(ThreadQueueChangedNotification { thread_id: id.to_string() })
}
