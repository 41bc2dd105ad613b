//! Putting the events of one turn together, up to its end.
//!
//! A turn ends with `turn/completed`. Servers also have turns that end without it, and these must not be waited
//! for: one that failed before it began, and one whose input went into a turn that was already running.

use std::collections::BTreeSet;
use std::time::Duration;

use loomd_protocol::{
    CommandExecutionStatus, JsonValue, MessagePhase, ServerNotification, Thread, ThreadItem, ThreadStatus,
    ThreadTokenUsage, Turn, TurnError, TurnPlanStep, TurnStatus,
};
use tokio::time::Instant;

use crate::error::Error;
use crate::event::{Event, EventKind};

/// How long a command that is still open when its turn has ended is waited for: some servers tell the end of a
/// short command just after that of the turn. One in the background goes on for as long as it likes.
const LATE_COMMAND: Duration = Duration::from_millis(250);

/// How long the end of a turn is waited for when something says that it will not come.
const NO_END: Duration = Duration::from_secs(2);

/// What a turn did.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedTurn {
    /// As it ended. Servers leave out its items here.
    pub turn: Turn,
    /// Every completed item, in order.
    pub items: Vec<ThreadItem>,
    /// Completed items of types that this release does not know.
    pub other_items: Vec<JsonValue>,
    /// The last message of the agent.
    pub agent_message: Option<String>,
    /// All changes to files, as one unified diff.
    pub diff: Option<String>,
    pub plan: Vec<TurnPlanStep>,
    pub usage: Option<ThreadTokenUsage>,
}

impl CompletedTurn {
    pub(crate) fn error_message(&self) -> &str {
        self.turn.error.as_ref().map_or("no reason was given", |error| &error.message)
    }
}

#[derive(Default)]
pub(crate) struct Collector {
    turn_id: String,
    /// The turn that ran when this one was asked for. The input may have gone into it.
    before: Option<String>,
    /// Whether anything was heard under this turn's own id.
    begun: bool,
    /// Whether events may be missing.
    lost: bool,
    items: Vec<ThreadItem>,
    other_items: Vec<JsonValue>,
    open_commands: BTreeSet<String>,
    diff: Option<String>,
    plan: Vec<TurnPlanStep>,
    usage: Option<ThreadTokenUsage>,
    /// The end as it was told, and when to stop waiting for what may still come.
    end: Option<(Turn, Instant)>,
}

impl Collector {
    pub(crate) fn new(turn_id: String, before: Option<String>) -> Self {
        let before = before.filter(|id| *id != turn_id);
        Self { turn_id, before, ..Self::default() }
    }

    /// When to look again, although nothing happened; the turn is over when that time has come.
    pub(crate) fn over_at(&self) -> Option<Instant> {
        self.end.as_ref().map(|(_, at)| *at)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over_at().is_some_and(|at| at <= Instant::now())
    }

    /// The turn that the events of this one come under.
    pub(crate) fn turn_id(&self) -> &str {
        match &self.before {
            Some(before) if !self.begun => before,
            _ => &self.turn_id,
        }
    }

    /// Takes in an event of the thread.
    pub(crate) fn absorb(&mut self, event: &Event) {
        match &event.kind {
            EventKind::Lost(_) => self.lost = true,
            EventKind::Reconnected => {}
            EventKind::Resumed(resumed) => self.apply_snapshot(&resumed.thread),
            EventKind::NotResumed(error) => {
                let error =
                    TurnError { message: error.message.clone(), codex_error_info: None, additional_details: None };
                self.end = Some((self.ended(TurnStatus::Failed, Some(error)), Instant::now()));
            }
            EventKind::Notification(notification) if self.concerns_turn(event) => {
                self.absorb_notification(notification)
            }
            EventKind::Other { method, params } if self.concerns_turn(event) && method == "item/completed" => {
                self.other_items.push(params["item"].clone());
            }
            EventKind::Notification(_) | EventKind::Other { .. } => {}
        }
    }

    /// Whether an event belongs to this turn, or to the one that its input may have gone into.
    fn concerns_turn(&mut self, event: &Event) -> bool {
        let Some(turn_id) = &event.turn_id else { return false };
        if *turn_id != self.turn_id {
            return !self.begun && Some(turn_id) == self.before.as_ref();
        }
        // An error may be all that there ever is.
        match event.notification() {
            Some(ServerNotification::Error(error)) if !self.begun => {
                if !error.will_retry {
                    let turn = self.ended(TurnStatus::Failed, Some(error.error.clone()));
                    self.end = Some((turn, Instant::now() + NO_END));
                }
            }
            _ => self.begin(),
        }
        true
    }

    /// The turn is one of its own: what was collected in case it were not is another's.
    fn begin(&mut self) {
        if !self.begun {
            let (turn_id, lost) = (std::mem::take(&mut self.turn_id), self.lost);
            *self = Self { turn_id, lost, begun: true, ..Self::default() };
        }
    }

    fn absorb_notification(&mut self, notification: &ServerNotification) {
        match notification {
            ServerNotification::ItemStarted(started) => {
                if let ThreadItem::CommandExecution { id, .. } = &started.item {
                    self.open_commands.insert(id.clone());
                }
            }
            ServerNotification::ItemCompleted(completed) => self.complete(completed.item.clone()),
            ServerNotification::TurnDiffUpdated(updated) => self.diff = Some(updated.diff.clone()),
            ServerNotification::TurnPlanUpdated(updated) => self.plan.clone_from(&updated.plan),
            ServerNotification::ThreadTokenUsageUpdated(updated) => self.usage = Some(updated.token_usage.clone()),
            ServerNotification::TurnCompleted(completed) => self.finish(&completed.turn),
            _ => {}
        }
    }

    fn complete(&mut self, item: ThreadItem) {
        self.open_commands.remove(item.id());
        match self.items.iter_mut().find(|known| is_same(known, &item)) {
            Some(known) => *known = item,
            None => self.items.push(item),
        }
        // The last late command has come.
        if let Some((_, at)) = &mut self.end
            && self.open_commands.is_empty()
        {
            *at = Instant::now();
        }
    }

    fn finish(&mut self, turn: &Turn) {
        let late = turn.status == TurnStatus::Completed && !self.open_commands.is_empty();
        // The input went into another turn, unless that one ended and this one is about to begin.
        let not_ours = turn.id != self.turn_id;
        let wait = match (not_ours, late) {
            (true, _) => NO_END,
            (false, true) => LATE_COMMAND,
            (false, false) => Duration::ZERO,
        };
        self.end = Some((turn.clone(), Instant::now() + wait));
    }

    /// The state of the thread, in place of events that were missed.
    fn apply_snapshot(&mut self, thread: &Thread) {
        let active = matches!(thread.status, ThreadStatus::Active { .. });
        let Some(turn) = thread.turns.iter().find(|turn| turn.id == self.turn_id) else {
            if self.lost && !active {
                // It was lost before anything of it was written down.
                self.end = Some((self.ended(TurnStatus::Interrupted, None), Instant::now()));
            }
            return;
        };
        self.begin();
        for item in &turn.items {
            let running =
                matches!(item, ThreadItem::CommandExecution { status: CommandExecutionStatus::InProgress, .. });
            if !running && !self.items.iter().any(|known| is_same(known, item)) {
                self.complete(item.clone());
            }
        }
        if turn.status != TurnStatus::InProgress {
            self.finish(turn);
        }
    }

    fn ended(&self, status: TurnStatus, error: Option<TurnError>) -> Turn {
        Turn { id: self.turn_id.clone(), items: Vec::new(), status, error, items_view: None }
    }

    /// What was collected; an error when the turn failed.
    pub(crate) fn into_completed(self) -> Result<CompletedTurn, Error> {
        let interrupted = self.ended(TurnStatus::Interrupted, None);
        let turn = self.end.map_or(interrupted, |(turn, _)| turn);
        let completed = CompletedTurn {
            turn,
            agent_message: last_message(&self.items),
            items: self.items,
            other_items: self.other_items,
            diff: self.diff,
            plan: self.plan,
            usage: self.usage,
        };
        match completed.turn.status {
            TurnStatus::Failed => Err(Error::TurnFailed(Box::new(completed))),
            _ => Ok(completed),
        }
    }
}

/// The final answer where the model marks it, else the last message.
fn last_message(items: &[ThreadItem]) -> Option<String> {
    let messages = || {
        items.iter().rev().filter_map(|item| match item {
            ThreadItem::AgentMessage { text, phase, .. } => Some((text, phase)),
            _ => None,
        })
    };
    let final_answer = messages().find(|(_, phase)| **phase == Some(MessagePhase::FinalAnswer));
    final_answer.or_else(|| messages().next()).map(|(text, _)| text.clone())
}

/// The two markers of a review share an id.
fn is_same(one: &ThreadItem, other: &ThreadItem) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one.id() == other.id()
}
