//! What the rollout has of a turn that did not end, for a process that takes it up.

use std::collections::{HashMap, HashSet};

use loomd_protocol::ResponseItem;
use loomd_store::rollout::{Event, Line, Record};
use loomd_store::{Reader, Result};

use crate::history;
use crate::message::text_of;
use crate::tool_call::Call;

/// The records of one turn.
#[derive(Debug, Default)]
pub(crate) struct RecordedTurn {
    /// How many there are; 0 when the rollout does not have the turn.
    pub records: usize,
    /// It ended, or a later turn was started.
    pub ended: bool,
    /// The conversation was compacted in it.
    pub compacted: bool,
    /// The model's last answer is complete and has no calls.
    pub answered: bool,
    /// The last message of the agent.
    pub last_message: Option<String>,
    /// The calls without an output, oldest first.
    pub calls: Vec<ResponseItem>,
    /// The ends of calls, as text for the model.
    pub ends: HashMap<String, String>,
    /// The ids of the user's messages.
    pub inputs: HashSet<String>,
    /// The items of the conversation that are not of the model.
    pub added: Vec<ResponseItem>,
}

impl RecordedTurn {
    /// Reads the records of a turn that was started at a time, in seconds.
    pub async fn read(reader: &dyn Reader, turn_id: &str, started_at: i64) -> Result<Self> {
        let (mut turn, mut within) = (Self::default(), false);
        history::each_line(reader, |line| turn.line(line, turn_id, started_at, &mut within)).await?;
        Ok(turn)
    }

    fn line(&mut self, line: &Line<'_>, turn_id: &str, started_at: i64, within: &mut bool) {
        if matches!(line.payload_type().as_deref(), Some("task_started" | "turn_started"))
            && let Some(Record::EventMsg(Event::TaskStarted(started))) = line.decode()
        {
            *within = started.turn_id == turn_id;
            // Another program has gone on with the thread.
            self.ended |= !*within && (self.records > 0 || started.started_at.is_some_and(|at| at > started_at));
        }
        if !*within {
            return;
        }
        self.records += 1;
        match line.decode() {
            Some(Record::ResponseItem(item)) => self.item(item),
            Some(Record::Compacted(_)) => (self.compacted, self.answered) = (true, false),
            Some(Record::EventMsg(event)) => self.event(event, turn_id),
            _ => {}
        }
    }

    fn item(&mut self, item: ResponseItem) {
        self.answered = false;
        match &item {
            ResponseItem::Message { role, .. } if role == "assistant" => self.last_message = Some(text_of(&item)),
            ResponseItem::Message { .. } | ResponseItem::AgentMessage { .. } => self.added.push(item),
            ResponseItem::FunctionCallOutput { call_id, .. } if call_id.is_empty() => self.added.push(item),
            ResponseItem::FunctionCallOutput { call_id, .. } | ResponseItem::CustomToolCallOutput { call_id, .. } => {
                self.calls.retain(|call| Call::of(call).is_none_or(|call| call.id != *call_id));
            }
            ResponseItem::ToolSearchOutput { call_id: Some(call_id), .. } => {
                self.calls.retain(|call| Call::of(call).is_none_or(|call| call.id != *call_id));
            }
            _ if Call::of(&item).is_some() => self.calls.push(item),
            _ => {}
        }
    }

    fn event(&mut self, event: Event, turn_id: &str) {
        match event {
            Event::TaskComplete(complete) => self.ended |= complete.turn_id == turn_id,
            Event::TurnAborted(aborted) => self.ended |= aborted.turn_id.is_none_or(|id| id == turn_id),
            Event::ThreadRolledBack(_) => self.ended = true,
            // Counted when an answer is complete.
            Event::TokenCount(_) => self.answered = self.last_message.is_some() && self.calls.is_empty(),
            Event::UserMessage(message) => self.inputs.extend(message.item_id),
            Event::ExecCommandEnd(end) => {
                let text = format!("Exit code: {}\nOutput:\n{}", end.exit_code, end.aggregated_output);
                self.ends.insert(end.call_id, text);
            }
            Event::PatchApplyEnd(end) => {
                let text = format!("Exit code: {}\nOutput:\n{}{}", i32::from(!end.success), end.stdout, end.stderr);
                self.ends.insert(end.call_id, text);
            }
            _ => {}
        }
    }
}
