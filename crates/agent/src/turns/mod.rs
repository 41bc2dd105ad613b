//! The turns of a stored thread, rebuilt in one pass over its records.
//!
//! Only what clients are shown is rebuilt here; the model's history is another reading of the same
//! records. Ids are stable: a record that carries the id that was streamed keeps it, others are
//! numbered in order, and a turn without a recorded id gets one made from the thread's and its place.

pub(crate) mod collab;
pub(crate) mod hook_prompt;
mod item;

pub(crate) use item::user_message;
use loomd_protocol::{CodexErrorInfo, ThreadItem, Turn, TurnError, TurnStatus};
use loomd_store::ThreadId;
use loomd_store::rollout::{self, CompletedItem, Event, Glance, Line, Record};
use uuid::Uuid;

/// Takes the records of a thread in order and gives its turns.
pub struct Turns {
    thread: ThreadId,
    /// Turns that are over, and such that are not but were left behind.
    closed: Vec<Turn>,
    current: Option<Current>,
    /// The number of the next item that has no id of its own.
    next_item: usize,
    /// Ids made so far, for turns and items whose records have none.
    made: u64,
}

struct Current {
    turn: Turn,
    /// A record opened it, so it counts even when nothing happens in it.
    explicit: bool,
    /// The history was summarised in it.
    compacted: bool,
}

impl Current {
    fn is_only_compacted(&self) -> bool {
        self.compacted && self.turn.items.is_empty()
    }
}

/// Whether a line can say anything about turns. Most of a rollout is the model's conversation, which does
/// not, and need not be decoded.
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
        Self { thread, closed: Vec::new(), current: None, next_item: 1, made: 0 }
    }

    /// All turns so far; the last one may still be in progress.
    pub fn finish(mut self) -> Vec<Turn> {
        self.close();
        self.closed
    }

    /// Takes a line of a rollout as it stands there; one that says nothing about turns costs next to
    /// nothing, and one that cannot be read is passed over.
    pub fn push_bytes(&mut self, line: &[u8]) {
        if let Some(glance) = Glance::at(line) {
            if !concerns_turns(glance.kind, glance.payload_type(), glance.payload) {
                return;
            }
            if glance.kind == "event_msg"
                && let Some(event) = glance.event()
            {
                return self.event(event);
            }
        }
        if let Some(line) = Line::parse(line) {
            self.push_line(&line);
        }
    }

    /// Takes a line of a rollout that has been told apart.
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
            Record::SessionMeta(_) | Record::TurnContext(_) => {}
        }
    }

    fn event(&mut self, event: Event) {
        match event {
            Event::TaskStarted(started) => {
                self.close();
                self.current = Some(Current {
                    turn: turn(started.turn_id, TurnStatus::InProgress),
                    explicit: true,
                    compacted: false,
                });
            }
            Event::TaskComplete(complete) => self.complete(&complete.turn_id),
            Event::TurnAborted(aborted) => {
                if let Some(turn) = self.find(aborted.turn_id.as_deref()) {
                    turn.status = TurnStatus::Interrupted;
                }
            }
            Event::UserMessage(message) => {
                // A message begins a turn of its own, unless one was begun for it.
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
                self.reason(reasoning.item_id, reasoning.text, Part::Summary);
            }
            Event::AgentReasoningRawContent(reasoning) if !reasoning.text.is_empty() => {
                self.reason(reasoning.item_id, reasoning.text, Part::Content);
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
                let CompletedItem::Plan { id, text } = completed.item;
                self.put(Some(&completed.turn_id), ThreadItem::Plan { id, text });
            }
            Event::AgentMessage(_)
            | Event::AgentReasoning(_)
            | Event::AgentReasoningRawContent(_)
            | Event::TokenCount(_)
            | Event::UndoCompleted(_)
            | Event::GuardianAssessment(_) => {}
            event => {
                if let Some((turn_id, item)) = tool_item(event) {
                    self.put(turn_id.as_deref(), item);
                }
            }
        }
    }

    /// The turn that is open; one is opened when there is none.
    fn current(&mut self) -> &mut Current {
        let id = if self.current.is_none() { self.made_id() } else { String::new() };
        self.current.get_or_insert_with(|| Current {
            turn: turn(id, TurnStatus::Completed),
            explicit: false,
            compacted: false,
        })
    }

    /// The same for every reading of the same records.
    fn made_id(&mut self) -> String {
        self.made += 1;
        Uuid::new_v5(self.thread.as_uuid(), &self.made.to_be_bytes()).to_string()
    }

    fn close(&mut self) {
        if let Some(mut current) = self.current.take()
            && (current.explicit || current.compacted || !current.turn.items.is_empty())
        {
            // Room for more items than most turns have; there may be thousands of turns.
            current.turn.items.shrink_to_fit();
            self.closed.push(current.turn);
        }
    }

    fn complete(&mut self, id: &str) {
        let here = self.current.as_ref().is_some_and(|current| current.turn.id == id);
        let earlier = if here { None } else { self.closed.iter_mut().find(|turn| turn.id == id) };
        match (earlier, &mut self.current) {
            (Some(turn), _) => complete(turn),
            (None, Some(current)) => {
                complete(&mut current.turn);
                self.close();
            }
            (None, None) => {}
        }
    }

    /// The turn with this id, or the open one when there is no such turn.
    fn find(&mut self, id: Option<&str>) -> Option<&mut Turn> {
        let current = self.current.as_mut().map(|current| &mut current.turn);
        match id {
            Some(id) if current.as_ref().is_none_or(|turn| turn.id != id) => {
                self.closed.iter_mut().find(|turn| turn.id == id).or(current)
            }
            _ => current,
        }
    }

    fn roll_back(&mut self, turns: u32) {
        self.close();
        let kept = self.closed.len().saturating_sub(turns as usize);
        self.closed.truncate(kept);
        self.next_item = self.closed.iter().map(|turn| turn.items.len()).sum::<usize>() + 1;
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
        let number = self.next_item;
        self.next_item += 1;
        streamed.unwrap_or_else(|| format!("item-{number}"))
    }

    fn add(&mut self, item: ThreadItem) {
        self.current().turn.items.push(item);
    }

    /// Adds an item, or replaces the one with its id, in the turn that is named (an unknown one takes
    /// nothing) or the open one.
    fn put(&mut self, turn_id: Option<&str>, item: ThreadItem) {
        let turn = match turn_id {
            None => &mut self.current().turn,
            Some(id) => match &mut self.current {
                Some(current) if current.turn.id == id => &mut current.turn,
                _ => match self.closed.iter_mut().find(|turn| turn.id == id) {
                    Some(turn) => turn,
                    None => return,
                },
            },
        };
        match turn.items.iter_mut().find(|old| old.id() == item.id()) {
            Some(old) => *old = item,
            None => turn.items.push(item),
        }
    }

    /// Adds to the reasoning item that is growing, or begins one.
    fn reason(&mut self, streamed: Option<String>, text: String, part: Part) {
        if let Some(ThreadItem::Reasoning { id, summary, content }) =
            self.current.as_mut().and_then(|current| current.turn.items.last_mut())
            && streamed.as_ref().is_none_or(|streamed| streamed == id)
        {
            match part {
                Part::Summary => summary.push(text),
                Part::Content => content.push(text),
            }
            return;
        }
        let id = self.item_id(streamed);
        let (summary, content) = match part {
            Part::Summary => (vec![text], Vec::new()),
            Part::Content => (Vec::new(), vec![text]),
        };
        self.add(ThreadItem::Reasoning { id, summary, content });
    }
}

/// The item of a tool whose end an event tells, and the turn it belongs to if the event says so.
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

/// The two texts of a reasoning item.
enum Part {
    Summary,
    Content,
}

/// Old files do not always say which turn.
fn named(turn_id: &str) -> Option<String> {
    Some(turn_id).filter(|id| !id.is_empty()).map(str::to_owned)
}

fn turn(id: String, status: TurnStatus) -> Turn {
    Turn { id, items: Vec::new(), status, error: None, items_view: None }
}

fn complete(turn: &mut Turn) {
    if turn.status == TurnStatus::InProgress {
        turn.status = TurnStatus::Completed;
    }
}

/// What a thread that is not running shows: nothing is in progress in it.
pub fn interrupt_open(turns: &mut [Turn]) {
    for turn in turns {
        if turn.status == TurnStatus::InProgress {
            turn.status = TurnStatus::Interrupted;
        }
    }
}
