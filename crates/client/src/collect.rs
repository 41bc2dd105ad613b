//! Collects the events of one turn up to its end.
//!
//! A turn ends with `turn/completed`, but not every turn gets one: neither one that failed before it started, nor one
//! whose input was added to a turn that was already running. These end after a short wait.

use std::collections::BTreeSet;
use std::time::Duration;

use loomd_protocol::{
    CommandExecutionStatus, JsonValue, MessagePhase, ServerNotification, Thread, ThreadItem, ThreadStatus,
    ThreadTokenUsage, Turn, TurnError, TurnPlanStep, TurnStatus,
};
use tokio::time::Instant;

use crate::error::Error;
use crate::event::{Event, EventKind};

/// How long to wait, after the end of a turn, for a command that is still open. Some servers complete a short command
/// just after its turn; a background terminal stays open.
const LATE_COMMAND: Duration = Duration::from_millis(250);

/// How long to wait for `turn/completed` of a turn that probably gets none.
const NO_END: Duration = Duration::from_secs(2);

/// The result of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct CompletedTurn {
    /// The turn as `turn/completed` has it, which leaves out the items.
    pub turn: Turn,
    /// Every completed item, in order.
    pub items: Vec<ThreadItem>,
    /// Completed items of types that this release does not know.
    pub other_items: Vec<JsonValue>,
    /// The final answer of the model, or else its last message.
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
    /// The turn that was running when this one was requested. The input may have been added to it.
    before: Option<String>,
    /// Whether an event with this turn's own id was received.
    begun: bool,
    /// Whether the connection was lost meanwhile, so that events may be missing.
    lost: bool,
    items: Vec<ThreadItem>,
    other_items: Vec<JsonValue>,
    open_commands: BTreeSet<String>,
    diff: Option<String>,
    plan: Vec<TurnPlanStep>,
    usage: Option<ThreadTokenUsage>,
    /// The final turn, and until when to wait for late events.
    end: Option<(Turn, Instant)>,
}

impl Collector {
    pub(crate) fn new(turn_id: String, before: Option<String>) -> Self {
        let before = before.filter(|id| *id != turn_id);
        Self { turn_id, before, ..Self::default() }
    }

    /// When the turn is over even if no further event is received.
    pub(crate) fn over_at(&self) -> Option<Instant> {
        self.end.as_ref().map(|(_, at)| *at)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over_at().is_some_and(|at| at <= Instant::now())
    }

    /// The id of the turn that has the input: this one, or the one that was running before.
    pub(crate) fn turn_id(&self) -> &str {
        match &self.before {
            Some(before) if !self.begun => before,
            _ => &self.turn_id,
        }
    }

    /// Updates the result with an event of the thread.
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

    /// Whether an event belongs to this turn, or to the one that its input may have been added to.
    fn concerns_turn(&mut self, event: &Event) -> bool {
        let Some(turn_id) = &event.turn_id else { return false };
        if *turn_id != self.turn_id {
            return !self.begun && Some(turn_id) == self.before.as_ref();
        }
        // An `error` may be the only event of a turn.
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

    /// Marks the turn as started, and drops what was collected from the turn before.
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
        // The last late command is complete.
        if let Some((_, at)) = &mut self.end
            && self.open_commands.is_empty()
        {
            *at = Instant::now();
        }
    }

    fn finish(&mut self, turn: &Turn) {
        let late = turn.status == TurnStatus::Completed && !self.open_commands.is_empty();
        // The input was added to another turn, unless this turn starts after it.
        let not_ours = turn.id != self.turn_id;
        let wait = match (not_ours, late) {
            (true, _) => NO_END,
            (false, true) => LATE_COMMAND,
            (false, false) => Duration::ZERO,
        };
        self.end = Some((turn.clone(), Instant::now() + wait));
    }

    /// Updates the result with the state of a resumed thread, in place of the missed events.
    fn apply_snapshot(&mut self, thread: &Thread) {
        let active = matches!(thread.status, ThreadStatus::Active { .. });
        let Some(turn) = thread.turns.iter().find(|turn| turn.id == self.turn_id) else {
            if self.lost && !active {
                // The turn is neither stored nor running: it was lost before its first record was written.
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
        Turn { id: self.turn_id.clone(), items: Vec::new(), status, error, ..Turn::default() }
    }

    /// Returns [`Error::TurnFailed`] if the turn failed.
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

/// The text of the final answer if the model marked one, else of the last message.
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

/// Compares type and id: the two markers of a review share an id.
fn is_same(one: &ThreadItem, other: &ThreadItem) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other) && one.id() == other.id()
}
