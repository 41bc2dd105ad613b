//! The lines of a rollout, and the ends of tool calls in them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use loomd_store::rollout::{Event, Line, Record, whole_lines};

use crate::tool_call::Call;

/// The lines of a rollout.
pub(super) struct RolloutLines {
    pub bytes: Vec<u8>,
    ranges: Vec<Range<usize>>,
}

impl RolloutLines {
    pub fn new(bytes: Vec<u8>) -> Self {
        let ranges = whole_lines(&bytes).map(|(start, line)| start..start + line.len()).collect();
        Self { bytes, ranges }
    }

    pub fn bytes(&self, at: usize) -> &[u8] {
        self.ranges.get(at).map_or(&[], |range| &self.bytes[range.clone()])
    }

    pub fn count(&self) -> usize {
        self.ranges.len()
    }

    pub fn line(&self, at: usize) -> Option<Line<'_>> {
        Line::parse(self.bytes(at))
    }

    pub fn record(&self, at: usize) -> Option<Record> {
        self.line(at)?.decode()
    }
}

/// The events that record ends of tool calls.
#[derive(Default)]
pub(super) struct CallEnds {
    /// The events by the id of the call.
    pub events: HashMap<String, Vec<Event>>,
    /// The ids of the calls by line.
    pub calls: HashMap<usize, String>,
    /// The ids of all calls of the model.
    pub made: HashSet<String>,
}

pub(super) fn ends_of_calls(lines: &RolloutLines, count: usize) -> CallEnds {
    let mut ends = CallEnds::default();
    for at in 0..count {
        match lines.record(at) {
            Some(Record::EventMsg(event)) => {
                if let Some(id) = call_id(&event).map(str::to_owned) {
                    ends.calls.insert(at, id.clone());
                    ends.events.entry(id).or_default().push(event);
                }
            }
            Some(Record::ResponseItem(item)) => ends.made.extend(Call::of(&item).map(|call| call.id)),
            _ => {}
        }
    }
    ends
}

/// The id of the call whose end an event records.
pub(super) fn call_id(event: &Event) -> Option<&str> {
    Some(match event {
        Event::ExecCommandEnd(end) => &end.call_id,
        Event::PatchApplyEnd(end) => &end.call_id,
        Event::McpToolCallEnd(end) => &end.call_id,
        Event::ViewImageToolCall(view) => &view.call_id,
        Event::DynamicToolCallRequest(request) => &request.call_id,
        Event::DynamicToolCallResponse(response) => &response.call_id,
        Event::CollabAgentSpawnEnd(end) => &end.call_id,
        Event::CollabAgentInteractionEnd(end) => &end.call_id,
        Event::CollabWaitingEnd(end) => &end.call_id,
        Event::CollabCloseEnd(end) => &end.call_id,
        Event::CollabResumeEnd(end) => &end.call_id,
        _ => return None,
    })
}
