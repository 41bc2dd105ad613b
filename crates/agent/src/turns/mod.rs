//! The turns of a stored thread, rebuilt in one pass over its records.
//!
//! These are the turns and items that clients see; `conversation` builds the model's input from the same records. Ids
//! are stable: an item keeps the id of its record, items without one are numbered in order, and a turn without one gets
//! a UUID of the thread's id and a counter.

mod closed;
pub(crate) mod collab;
mod ended;
pub(crate) mod hook_prompt;
mod item;

pub use closed::ClosedTurns;
pub(crate) use ended::{end_event, file_change};
pub(crate) use item::{completed as completed_item, user_message};
use loomd_protocol::{CodexErrorInfo, ThreadItem, Turn, TurnError, TurnItemsView, TurnStatus};
use loomd_store::rollout::{self, Event, Line, LineHeader, Record, TurnTimes};
use loomd_store::{Position, ThreadId};
use uuid::Uuid;

/// Builds the turns of a thread from its records, which are pushed in order. `P` collects the closed turns.
pub struct Turns<P = Vec<Turn>> {
    thread: ThreadId,
    /// The turns that have ended, and those that were still in progress when another one started.
    pub(crate) closed: P,
    current: Option<TurnBuilder>,
    counters: Counters,
    /// The position of the line that is being read, and the counters before it.
    line: Start,
}

/// The counters that ids are made from. With the same counters, the same records give the same ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters {
    /// The number of the next item that has no id of its own.
    pub(crate) next_item: u64,
    /// The number of UUIDs made so far for turns and items whose records have no id.
    pub(crate) made: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self { next_item: 1, made: 0 }
    }
}

/// The start of a turn: reading from this position with these counters gives the same turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// The position before its first line.
    pub position: Position,
    pub counters: Counters,
}

/// The open turn.
struct TurnBuilder {
    turn: Turn,
    start: Start,
    /// A record started it, so it is a turn even without items.
    explicit: bool,
    /// The conversation was compacted in it.
    compacted: bool,
}

impl TurnBuilder {
    fn is_only_compacted(&self) -> bool {
        self.compacted && self.turn.items.is_empty()
    }
}

/// Whether a line may change turns. Most lines of a rollout belong to the model's conversation; they do not, and are
/// not decoded.
fn concerns_turns(kind: &str, payload_type: Option<&str>, payload: &[u8]) -> bool {
    match kind {
        "event_msg" => payload_type != Some("token_count"),
        "response_item" => hook_prompt::may_be_one(payload),
        "compacted" => true,
        _ => false,
    }
}

impl Turns {
    pub fn new(thread: ThreadId) -> Self {
        Self::after(thread, Vec::new(), Counters::default())
    }

    /// Returns all turns. The last one may be in progress.
    pub fn finish(mut self) -> Vec<Turn> {
        self.close();
        self.closed
    }
}

impl<P: ClosedTurns> Turns<P> {
    /// Continues after `closed`, with no turn open.
    pub(crate) fn after(thread: ThreadId, closed: P, counters: Counters) -> Self {
        Self { thread, closed, current: None, counters, line: Start::default() }
    }

    /// The id and the start of the open turn.
    pub(crate) fn open(&self) -> Option<(&str, Start)> {
        self.current.as_ref().map(|current| (current.turn.id.as_str(), current.start))
    }

    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Like [`Turns::push_bytes`], for the line after `position`, which becomes the start of a turn that it opens.
    pub(crate) fn push_at(&mut self, position: Position, line: &[u8]) {
        self.line = Start { position, counters: self.counters };
        self.push_bytes(line);
    }

    /// Pushes a line of a rollout. Lines that change no turn are not decoded; malformed lines are skipped.
    pub fn push_bytes(&mut self, line: &[u8]) {
        if let Some(header) = LineHeader::parse(line) {
            if !concerns_turns(header.kind, header.payload_type(), header.payload) {
                return;
            }
            if header.kind == "event_msg"
                && let Some(event) = header.event()
            {
                return self.event(event);
            }
        }
        if let Some(line) = Line::parse(line) {
            self.push_line(&line);
        }
    }

    /// Pushes a parsed line of a rollout.
    pub fn push_line(&mut self, line: &Line<'_>) {
        if concerns_turns(&line.kind, line.payload_type().as_deref(), line.payload.get().as_bytes())
            && let Some(record) = line.decode()
        {
            self.push(record);
        }
    }

    fn push(&mut self, record: Record) {
        match record {
            Record::EventMsg(event) => self.event(event),
            Record::Compacted(_) => self.current().compacted = true,
            Record::ResponseItem(item) => {
                if let Some(fragments) = hook_prompt::fragments(&item) {
                    let id = self.made_id();
                    self.add(ThreadItem::HookPrompt { id, fragments });
                }
            }
            Record::SessionMeta(_) | Record::TurnContext(_) | Record::Approval(_) => {}
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::TaskStarted(started) => {
                self.close();
                self.current = Some(TurnBuilder {
                    turn: Turn { started_at: started.started_at, ..turn(started.turn_id, TurnStatus::InProgress) },
                    start: self.line,
                    explicit: true,
                    compacted: false,
                });
            }
            Event::TaskComplete(complete) => self.complete(&complete.turn_id, complete.times),
            Event::TurnAborted(aborted) => self.abort(aborted.turn_id.as_deref(), aborted.times),
            Event::UserMessage(message) => {
                // A message starts a turn, unless a record or a compaction started one for it.
                if self.current.as_ref().is_some_and(|current| !current.explicit && !current.is_only_compacted()) {
                    self.close();
                }
                let id = self.item_id(message.item_id.clone());
                self.add(item::user_message(id, message));
            }
            Event::AgentMessage(message) if !message.message.is_empty() => {
                let id = self.item_id(message.item_id.clone());
                self.add(item::agent_message(id, message));
            }
            Event::AgentReasoning(reasoning) if !reasoning.text.is_empty() => {
                self.reason(reasoning.item_id, reasoning.text, ReasoningText::Summary);
            }
            Event::AgentReasoningRawContent(reasoning) if !reasoning.text.is_empty() => {
                self.reason(reasoning.item_id, reasoning.text, ReasoningText::Content);
            }
            Event::ContextCompacted(compacted) => {
                let id = self.item_id(compacted.item_id);
                self.add(ThreadItem::ContextCompaction { id });
            }
            Event::EnteredReviewMode(entered) => {
                let id = self.item_id(entered.item_id.clone());
                self.add(item::entered_review(id, entered));
            }
            Event::ExitedReviewMode(exited) => {
                let id = self.item_id(exited.item_id.clone());
                self.add(item::exited_review(id, exited));
            }
            Event::ThreadRolledBack(rolled_back) => self.roll_back(rolled_back.num_turns),
            Event::Error(error) => self.fail(error),
            Event::ItemCompleted(completed) => {
                self.put(Some(&completed.turn_id), item::completed(completed.item));
            }
            Event::AgentMessage(_)
            | Event::AgentReasoning(_)
            | Event::AgentReasoningRawContent(_)
            | Event::TokenCount(_)
            | Event::UndoCompleted(_)
            | Event::ThreadGoalUpdated(_)
            | Event::ThreadSettingsApplied(_)
            | Event::GuardianAssessment(_) => {}
            event => {
                if let Some((turn_id, item)) = tool_item(event) {
                    self.put(turn_id.as_deref(), item);
                }
            }
        }
    }

    /// The open turn. Opens one if there is none.
    fn current(&mut self) -> &mut TurnBuilder {
        let id = if self.current.is_none() { self.made_id() } else { String::new() };
        let start = self.line;
        self.current.get_or_insert_with(|| TurnBuilder {
            turn: turn(id, TurnStatus::Completed),
            start,
            explicit: false,
            compacted: false,
        })
    }

    /// A new id, the same one whenever the same records are read.
    fn made_id(&mut self) -> String {
        self.counters.made += 1;
        Uuid::new_v5(self.thread.as_uuid(), &self.counters.made.to_be_bytes()).to_string()
    }

    fn close(&mut self) {
        if let Some(mut current) = self.current.take()
            && (current.explicit || current.compacted || !current.turn.items.is_empty())
        {
            // There may be thousands of turns, and most have fewer items than a grown `Vec` has room for.
            current.turn.items.shrink_to_fit();
            self.closed.push(current.turn, current.start);
        }
    }

    fn complete(&mut self, id: &str, times: TurnTimes) {
        let here = self.current.as_ref().is_some_and(|current| current.turn.id == id);
        if !here && self.closed.change(id, self.line.position, |turn| complete(turn, times)) {
            return;
        }
        if let Some(current) = &mut self.current {
            complete(&mut current.turn, times);
            self.close();
        }
    }

    /// Marks the turn with this id, or the open one if no turn has it, as interrupted.
    fn abort(&mut self, id: Option<&str>, times: TurnTimes) {
        let interrupt = |turn: &mut Turn| {
            turn.status = TurnStatus::Interrupted;
            set_times(turn, times);
        };
        let here = |id: &str| self.current.as_ref().is_some_and(|current| current.turn.id == id);
        if let Some(id) = id
            && !here(id)
            && self.closed.change(id, self.line.position, interrupt)
        {
            return;
        }
        if let Some(current) = &mut self.current {
            interrupt(&mut current.turn);
        }
    }

    fn roll_back(&mut self, turns: u32) {
        self.close();
        self.closed.drop_last(turns as usize);
        self.counters.next_item = self.closed.items() + 1;
    }

    fn fail(&mut self, error: rollout::Error) {
        let info: Option<CodexErrorInfo> = error.codex_error_info.map(Into::into);
        let about_the_turn =
            !matches!(info, Some(CodexErrorInfo::ThreadRollbackFailed | CodexErrorInfo::ActiveTurnNotSteerable { .. }));
        if about_the_turn && let Some(current) = &mut self.current {
            current.turn.status = TurnStatus::Failed;
            current.turn.error =
                Some(TurnError { message: error.message, codex_error_info: info, additional_details: None });
        }
    }

    fn item_id(&mut self, streamed: Option<String>) -> String {
        let number = self.counters.next_item;
        self.counters.next_item += 1;
        streamed.unwrap_or_else(|| {
            self.closed.item_count_used();
            format!("item-{number}")
        })
    }

    fn add(&mut self, item: ThreadItem) {
        self.current().turn.items.push(item);
    }

    /// Adds an item, or replaces the one with its id, in the turn with `turn_id`, or in the open one without a
    /// `turn_id`. Ignored when no turn has the id.
    fn put(&mut self, turn_id: Option<&str>, item: ThreadItem) {
        let put = |turn: &mut Turn| match turn.items.iter_mut().find(|old| old.id() == item.id()) {
            Some(old) => *old = item,
            None => turn.items.push(item),
        };
        match (turn_id, &mut self.current) {
            (None, _) => put(&mut self.current().turn),
            (Some(id), Some(current)) if current.turn.id == id => put(&mut current.turn),
            (Some(id), _) => _ = self.closed.change(id, self.line.position, put),
        }
    }

    /// Adds a text to the reasoning item at the end of the open turn, or adds a new one.
    fn reason(&mut self, streamed: Option<String>, text: String, part: ReasoningText) {
        if let Some(ThreadItem::Reasoning { id, summary, content }) =
            self.current.as_mut().and_then(|current| current.turn.items.last_mut())
            && streamed.as_ref().is_none_or(|streamed| streamed == id)
        {
            match part {
                ReasoningText::Summary => summary.push(text),
                ReasoningText::Content => content.push(text),
            }
            return;
        }
        let id = self.item_id(streamed);
        let (summary, content) = match part {
            ReasoningText::Summary => (vec![text], Vec::new()),
            ReasoningText::Content => (Vec::new(), vec![text]),
        };
        self.add(ThreadItem::Reasoning { id, summary, content });
    }
}

/// The item of the tool call whose end an event records, and its turn's id if the event has one.
pub(crate) fn tool_item(event: Event) -> Option<(Option<String>, ThreadItem)> {
    Some(match event {
        Event::ExecCommandEnd(end) => (Some(end.turn_id.clone()), item::command_execution(end)),
        Event::PatchApplyEnd(end) => (named(&end.turn_id), item::file_change(end)),
        Event::DynamicToolCallRequest(request) => (named(&request.turn_id), item::dynamic_tool_call(request)),
        Event::DynamicToolCallResponse(response) => (named(&response.turn_id), item::dynamic_tool_result(response)),
        Event::McpToolCallEnd(end) => (None, item::mcp_tool_call(end)),
        Event::WebSearchEnd(end) => (None, item::web_search(end)),
        Event::ViewImageToolCall(view) => (None, item::image_view(view)),
        Event::ImageGenerationEnd(end) => (None, item::image_generation(end)),
        Event::CollabAgentSpawnEnd(end) => (None, collab::spawn(end)),
        Event::CollabAgentInteractionEnd(end) => (None, collab::interaction(end)),
        Event::CollabWaitingEnd(end) => (None, collab::waiting(end)),
        Event::CollabCloseEnd(end) => (None, collab::close(end)),
        Event::CollabResumeEnd(end) => (None, collab::resume(end)),
        _ => return None,
    })
}

/// The two kinds of text of a reasoning item.
enum ReasoningText {
    Summary,
    Content,
}

/// `None` for the empty id of old rollouts.
fn named(turn_id: &str) -> Option<String> {
    Some(turn_id).filter(|id| !id.is_empty()).map(str::to_owned)
}

fn turn(id: String, status: TurnStatus) -> Turn {
    Turn { id, status, ..Turn::default() }
}

fn set_times(turn: &mut Turn, times: TurnTimes) {
    turn.started_at = turn.started_at.or(times.started_at);
    (turn.completed_at, turn.duration_ms) = (times.completed_at, times.duration_ms);
}

fn complete(turn: &mut Turn, times: TurnTimes) {
    set_times(turn, times);
    if turn.status == TurnStatus::InProgress {
        turn.status = TurnStatus::Completed;
    }
}

/// Marks turns in progress as interrupted, for a thread in which no turn is running.
pub fn interrupt_open(turns: &mut [Turn]) {
    for turn in turns {
        if turn.status == TurnStatus::InProgress {
            turn.status = TurnStatus::Interrupted;
        }
    }
}

/// Marks turns as having all of their items.
pub(crate) fn full(turns: &mut [Turn]) {
    for turn in turns {
        turn.items_view = Some(TurnItemsView::Full);
    }
}
