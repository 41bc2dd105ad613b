//! The goal of one thread, as its task, its turns and its tools change it: counts what turns use, and stores every change
//! before it is published. Nothing is read or written for a thread without a goal except one look at the store per turn.

use std::sync::Arc;
use std::time::Instant;

use jiff::Timestamp;
use loomd_model::TokenUsage;
use loomd_protocol::{
    ServerNotification, ThreadGoalClearedNotification, ThreadGoalStatus, ThreadGoalUpdatedNotification,
};
use loomd_store::{Goal, Store, ThreadId, WorkStore};
use parking_lot::Mutex;
use uuid::Uuid;

use super::prompts;
use super::rules::{self, GoalChange, GoalLimits, TurnResult};
use crate::event_log::EventLog;
use crate::refusal::Refusal;

pub(crate) struct GoalCx {
    id: ThreadId,
    store: Arc<dyn Store>,
    events: Arc<EventLog>,
    limits: GoalLimits,
    meter: Mutex<Meter>,
    /// Held while a change is stored and published, so that clients get changes in the order in which they are stored.
    order: tokio::sync::Mutex<()>,
}

/// What is counted and not stored yet.
#[derive(Default)]
struct Meter {
    /// The goal that the running turn is charged to.
    charged: Option<Uuid>,
    tokens: i64,
    /// When the time of an active goal was last stored.
    since: Option<Instant>,
    note: Option<TurnNote>,
    called_tools: bool,
}

/// What the running turn is to be told before its next model call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TurnNote(pub String);

impl GoalCx {
    pub fn new(id: ThreadId, store: Arc<dyn Store>, events: Arc<EventLog>, limits: GoalLimits) -> Self {
        Self { id, store, events, limits, meter: Mutex::default(), order: tokio::sync::Mutex::default() }
    }

    pub fn limits(&self) -> GoalLimits {
        self.limits
    }

    pub async fn read(&self) -> Result<Option<Goal>, Refusal> {
        Ok(self.work().goal(self.id).await?)
    }

    /// Counts the time of an active goal from now on: the thread has been loaded.
    pub fn resume_clock(&self, goal: &Goal) {
        if goal.status == ThreadGoalStatus::Active {
            self.meter.lock().since = Some(Instant::now());
        }
    }

    /// Changes the goal for a client. The change is stored; the caller publishes it once it has answered.
    pub async fn set(&self, change: GoalChange) -> Result<StoredGoal<'_>, Refusal> {
        let order = self.order.lock().await;
        let (id, limits, charged) = (self.id, self.limits, self.meter.lock().charged);
        let (tokens, ms) = self.take_counts();
        let changed = self
            .work()
            .change_goal(id, move |goal| {
                charge(goal, charged, tokens, ms);
                let before = goal.clone();
                rules::set(goal, change, limits, id, now_ms()).map(|changed| (before, changed))
            })
            .await?;
        let (before, goal) = changed?;
        self.changed(before.as_ref(), &goal);
        Ok(StoredGoal { cx: self, goal, _order: order })
    }

    /// Removes the goal. `stored` is called once it is removed, with whether there was one.
    pub async fn clear(&self, stored: impl FnOnce(bool)) -> Result<(), Refusal> {
        let _order = self.order.lock().await;
        let cleared = self.work().change_goal(self.id, |goal| goal.take().is_some()).await?;
        {
            let mut meter = self.meter.lock();
            (meter.charged, meter.tokens, meter.since, meter.note) = (None, 0, None, None);
        }
        stored(cleared);
        if cleared {
            self.events.broadcast(cleared_notification(self.id)).await;
        }
        Ok(())
    }

    /// Changes the goal for the model, in a turn.
    pub async fn change_in_turn(
        &self,
        turn_id: &str,
        change: impl FnOnce(&mut Option<Goal>) -> Result<Goal, String> + Send + 'static,
    ) -> Result<Goal, String> {
        let _order = self.order.lock().await;
        let charged = self.meter.lock().charged;
        let (tokens, ms) = self.take_counts();
        let changed = self
            .work()
            .change_goal(self.id, move |goal| {
                charge(goal, charged, tokens, ms);
                let before = goal.clone();
                change(goal).map(|changed| (before, changed))
            })
            .await
            .map_err(|error| error.to_string())?;
        let (before, goal) = changed?;
        self.changed(before.as_ref(), &goal);
        self.publish(&goal, Some(turn_id)).await;
        Ok(goal)
    }

    /// Notes what the meter has to know of a changed goal.
    fn changed(&self, before: Option<&Goal>, goal: &Goal) {
        let mut meter = self.meter.lock();
        let is_new = before.is_none_or(|before| before.id != goal.id);
        if goal.status == ThreadGoalStatus::Active {
            meter.since.get_or_insert_with(Instant::now);
            if is_new {
                // A goal is charged from the moment on at which it is set.
                (meter.charged, meter.tokens) = (Some(goal.id), 0);
            }
            let reworded = before.is_some_and(|before| before.objective != goal.objective);
            if reworded && !is_new {
                meter.note = Some(TurnNote(prompts::continuation(goal)));
            }
        } else {
            meter.since = None;
        }
        if !is_new && meter.charged.is_none() && goal.status == ThreadGoalStatus::Active {
            meter.charged = Some(goal.id);
        }
    }

    /// A turn begins. What it uses is charged to an active or `budgetLimited` goal, except in plan mode.
    pub async fn begin_turn(&self, plan_mode: bool) {
        let goal = self.read().await.unwrap_or_else(|refusal| {
            tracing::warn!(thread = %self.id, %refusal, "the goal cannot be read");
            None
        });
        let charged = goal.filter(|goal| {
            !plan_mode && matches!(goal.status, ThreadGoalStatus::Active | ThreadGoalStatus::BudgetLimited)
        });
        let mut meter = self.meter.lock();
        (meter.charged, meter.tokens) = (charged.map(|goal| goal.id), 0);
        (meter.note, meter.called_tools) = (None, false);
    }

    /// Counts a turn that starts for the goal; `None` when none may start any more.
    pub async fn begin_goal_turn(&self) -> Result<Option<Goal>, Refusal> {
        let begun = self.work().change_goal(self.id, |goal| {
            let goal = goal.as_mut()?;
            rules::begin_turn(goal).then(|| goal.clone())
        });
        Ok(begun.await?)
    }

    /// Counts a model call.
    pub fn count(&self, usage: &TokenUsage) {
        let fresh = usage.input_tokens.saturating_sub(usage.cached_input_tokens).max(0);
        let mut meter = self.meter.lock();
        if meter.charged.is_some() {
            meter.tokens = meter.tokens.saturating_add(fresh).saturating_add(usage.output_tokens.max(0));
        }
    }

    /// The model has called tools, whose outputs are there. Stores what was used so far. The model is asked for a wrap-up
    /// if the budget is used up.
    pub async fn tools_called(&self, turn_id: &str) {
        self.meter.lock().called_tools = true;
        if self.meter.lock().tokens == 0 {
            return;
        }
        let stored = self.store_counts(turn_id, |goal| {
            let limited = goal.status == ThreadGoalStatus::BudgetLimited && !goal.wrapped_up;
            goal.wrapped_up |= limited;
            limited
        });
        if let Some((goal, true)) = stored.await {
            self.meter.lock().note = Some(TurnNote(prompts::wrap_up(&goal)));
        }
    }

    /// Stores what the running turn has used so far.
    pub async fn flush(&self, turn_id: &str) {
        _ = self.store_counts(turn_id, |_| ()).await;
    }

    /// What the running turn is to be told before its next model call.
    pub fn take_note(&self) -> Option<TurnNote> {
        self.meter.lock().note.take()
    }

    /// A turn has ended. Stores what it used, and what that means for the goal.
    pub async fn end_turn(&self, turn_id: &str, result: TurnResult, goal_turn: bool) {
        let (called_tools, limits) = (self.meter.lock().called_tools, self.limits);
        let stored = self.store_counts(turn_id, move |goal| {
            rules::end_turn(goal, result, goal_turn, called_tools, limits);
        });
        if let Some((goal, ())) = stored.await
            && goal.status != ThreadGoalStatus::Active
        {
            self.meter.lock().since = None;
        }
        let mut meter = self.meter.lock();
        (meter.charged, meter.tokens, meter.note) = (None, 0, None);
    }

    /// Stores what was counted, and publishes the goal. `None` when the turn is charged to no goal.
    async fn store_counts<T: Send + 'static>(
        &self,
        turn_id: &str,
        change: impl FnOnce(&mut Goal) -> T + Send + 'static,
    ) -> Option<(Goal, T)> {
        let charged = self.meter.lock().charged?;
        let _order = self.order.lock().await;
        let (tokens, ms) = self.take_counts();
        let stored = self.work().change_goal(self.id, move |goal| {
            charge(goal, Some(charged), tokens, ms);
            let goal = goal.as_mut().filter(|goal| goal.id == charged)?;
            let changed = change(goal);
            Some((goal.clone(), changed))
        });
        match stored.await {
            Ok(stored) => {
                if let Some((goal, _)) = &stored {
                    self.publish(goal, Some(turn_id)).await;
                }
                stored
            }
            Err(error) => {
                tracing::warn!(thread = %self.id, %error, "the usage of the goal cannot be stored");
                // Stored with the next one.
                self.meter.lock().tokens += tokens;
                None
            }
        }
    }

    /// Takes the tokens and the time that are not stored yet.
    fn take_counts(&self) -> (i64, i64) {
        let mut meter = self.meter.lock();
        let now = Instant::now();
        let elapsed = meter.since.map_or(0, |since| now.duration_since(since).as_millis());
        if meter.since.is_some() {
            meter.since = Some(now);
        }
        (std::mem::take(&mut meter.tokens), i64::try_from(elapsed).unwrap_or(i64::MAX))
    }

    async fn publish(&self, goal: &Goal, turn_id: Option<&str>) {
        let updated = updated_notification(self.id, goal, turn_id);
        match turn_id {
            Some(_) => self.events.publish(updated).await,
            // A client changed it, which need not have subscribed to the thread.
            None => self.events.broadcast(updated).await,
        }
    }

    fn work(&self) -> &WorkStore {
        self.store.work()
    }
}

/// A goal that is stored and not published yet. Other changes wait for it.
pub(crate) struct StoredGoal<'a> {
    cx: &'a GoalCx,
    pub goal: Goal,
    _order: tokio::sync::MutexGuard<'a, ()>,
}

impl StoredGoal<'_> {
    pub async fn publish(self) {
        self.cx.publish(&self.goal, None).await;
    }
}

/// Charges the stored goal, if it is the one that the turn is charged to. The time counts for any active goal.
fn charge(goal: &mut Option<Goal>, charged: Option<Uuid>, tokens: i64, ms: i64) {
    if let Some(goal) = goal {
        let tokens = if charged == Some(goal.id) { tokens } else { 0 };
        rules::charge(goal, tokens, ms, now_ms());
    }
}

pub(crate) fn updated_notification(id: ThreadId, goal: &Goal, turn_id: Option<&str>) -> ServerNotification {
    ServerNotification::ThreadGoalUpdated(ThreadGoalUpdatedNotification {
        thread_id: id.to_string(),
        turn_id: turn_id.map(str::to_owned),
        goal: goal.to_wire(id),
    })
}

pub(crate) fn cleared_notification(id: ThreadId) -> ServerNotification {
    ServerNotification::ThreadGoalCleared(ThreadGoalClearedNotification { thread_id: id.to_string() })
}

fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
