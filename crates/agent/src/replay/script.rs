//! A rollout as a script: turns that can be replayed, and lines between them that are copied.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use jiff::Zoned;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use loomd_protocol::TurnStartParams;
use loomd_store::rollout::{Event, Record, SessionMeta, TurnContext};
use serde::de::DeserializeOwned;

use super::cut::{self, CutTurn, Work};
use super::lines::{CallEnds, RolloutLines, ends_of_calls};
use super::steps::{BetweenCalls, CallOutcome, CallPurpose};

/// The longest rollout that can be replayed. Threads that are years old have a few hundred megabytes.
const MAX_ROLLOUT: usize = 512 * 1024 * 1024;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ScriptError {
    #[error("the rollout has no `session_meta` record")]
    NoSessionMeta,
    #[error("the rollout has more than {MAX_ROLLOUT} bytes")]
    TooLong,
}

/// A thread that can be replayed.
pub struct Script {
    pub meta: SessionMeta,
    pub segments: Vec<Segment>,
    /// The model's answers as a scenario.
    pub scenario: String,
    pub(super) lines: Arc<RolloutLines>,
}

/// A part of a thread, in order.
pub enum Segment {
    /// Lines outside of turns, or of a turn that cannot be replayed.
    Copied(CopiedLines),
    Turn(Box<Turn>),
}

pub struct CopiedLines {
    lines: Range<usize>,
    /// Lines of the range that are not copied, because a replayed call writes them.
    omitted: Vec<usize>,
    /// The number of the turn that the lines are, and why it is not replayed.
    pub turn: Option<(usize, &'static str)>,
}

/// A turn that can be replayed.
pub struct Turn {
    /// Its number in the rollout, from 1.
    pub number: usize,
    /// The recorded id.
    pub id: String,
    pub work: Work,
    pub context: Option<TurnContext>,
    pub(super) now: Option<Zoned>,
    pub(super) model_calls: Vec<(CallPurpose, usize)>,
    pub(super) gaps: Vec<BetweenCalls>,
    pub(super) outcomes: HashMap<String, CallOutcome>,
}

impl Turn {
    /// The params that start the turn with its recorded settings; `None` for a compaction.
    pub fn params(&self, thread_id: String) -> Option<TurnStartParams> {
        let Work::Answer(input) = &self.work else { return None };
        let context = self.context.as_ref();
        // A value that is unknown to this release is left out.
        fn read<T: DeserializeOwned>(word: &str) -> Option<T> {
            serde_json::from_value(word.into()).ok()
        }
        Some(TurnStartParams {
            thread_id,
            input: input.clone(),
            cwd: context.map(|context| context.cwd.clone()),
            approval_policy: context.map(|context| context.approval_policy.clone()),
            sandbox_policy: context.map(|context| context.sandbox_policy.clone().into()),
            model: context.map(|context| context.model.clone()),
            effort: context.and_then(|context| context.effort.clone()),
            summary: context.and_then(|context| read(&context.summary)),
            personality: context.and_then(|context| read(context.personality.as_deref()?)),
            collaboration_mode: context.and_then(|context| context.collaboration_mode.clone()),
            ..TurnStartParams::default()
        })
    }
}

impl Script {
    pub fn read(rollout: Vec<u8>) -> Result<Self, ScriptError> {
        if rollout.len() > MAX_ROLLOUT {
            return Err(ScriptError::TooLong);
        }
        let lines = Arc::new(RolloutLines::new(rollout));
        let count = lines.count();
        let meta = (0..count).find_map(|at| match lines.record(at) {
            Some(Record::SessionMeta(meta)) => Some(*meta),
            _ => None,
        });
        let mut script = Self {
            meta: meta.ok_or(ScriptError::NoSessionMeta)?,
            segments: Vec::new(),
            scenario: String::new(),
            lines: Arc::clone(&lines),
        };
        let ends = ends_of_calls(&lines, count);
        let mut number = 0;
        let mut from = 0;
        while let Some(span) = next_turn(&lines, from, count) {
            number += 1;
            script.copy(from..span.lines.start, None, &ends);
            from = span.lines.end;
            let cut = match span.ended {
                true => cut::cut(&lines, span.lines.clone(), &ends),
                false => Err("it never ended"),
            };
            match cut {
                Ok(cut) => script.add(number, span.id, cut),
                Err(why) => script.copy(span.lines, Some((number, why)), &ends),
            }
        }
        script.copy(from..count, None, &ends);
        Ok(script)
    }

    fn add(&mut self, number: usize, id: String, cut: CutTurn) {
        let CutTurn { work, context, model_calls, gaps, outcomes, scenario } = cut;
        self.scenario += &scenario;
        let now = context.as_ref().and_then(day);
        self.segments.push(Segment::Turn(Box::new(Turn {
            number,
            id,
            work,
            context,
            now,
            model_calls,
            gaps,
            outcomes,
        })));
    }

    fn copy(&mut self, lines: Range<usize>, turn: Option<(usize, &'static str)>, ends: &CallEnds) {
        // A background command may end between turns; its end is replayed with the call that started it.
        let is_omitted = |at: &usize| turn.is_none() && ends.calls.get(at).is_some_and(|call| self.makes(call));
        let omitted: Vec<usize> = lines.clone().filter(is_omitted).collect();
        if lines.len() > omitted.len() {
            self.segments.push(Segment::Copied(CopiedLines { lines, omitted, turn }));
        }
    }

    /// Whether a replayed turn makes the call.
    fn makes(&self, call: &str) -> bool {
        self.segments.iter().any(|segment| matches!(segment, Segment::Turn(turn) if turn.outcomes.contains_key(call)))
    }

    /// The copied lines, each with its line break.
    pub fn text(&self, copied: &CopiedLines) -> Vec<u8> {
        let mut text = Vec::new();
        for at in copied.lines.clone().filter(|at| !copied.omitted.contains(at)) {
            text.extend_from_slice(self.lines.bytes(at));
            text.push(b'\n');
        }
        text
    }

    /// The whole rollout.
    pub fn rollout(&self) -> &[u8] {
        &self.lines.bytes
    }
}

struct Span {
    id: String,
    lines: Range<usize>,
    ended: bool,
}

/// The first turn at or after a line.
fn next_turn(lines: &RolloutLines, from: usize, count: usize) -> Option<Span> {
    let mut open: Option<(String, usize)> = None;
    for at in from..count {
        let Some(line) = lines.line(at).filter(|line| line.kind == "event_msg") else { continue };
        let kind = line.payload_type();
        let bound = matches!(
            kind.as_deref(),
            Some("task_started" | "turn_started" | "task_complete" | "turn_complete" | "turn_aborted")
        );
        let Some(Record::EventMsg(event)) = bound.then(|| line.decode()).flatten() else { continue };
        let ends = |turn_id: Option<&str>| open.as_ref().filter(|(id, _)| turn_id.is_none_or(|turn| turn == id));
        let ended = match &event {
            Event::TaskStarted(started) => match open {
                Some((id, start)) => return Some(Span { id, lines: start..at, ended: false }),
                None => {
                    open = Some((started.turn_id.clone(), at));
                    None
                }
            },
            Event::TaskComplete(complete) => ends(Some(&complete.turn_id)),
            Event::TurnAborted(aborted) => ends(aborted.turn_id.as_deref()),
            _ => None,
        };
        if let Some((id, start)) = ended {
            return Some(Span { id: id.clone(), lines: *start..at + 1, ended: true });
        }
    }
    open.map(|(id, start)| Span { id, lines: start..count, ended: false })
}

/// The recorded date of a turn.
fn day(context: &TurnContext) -> Option<Zoned> {
    let date: Date = context.current_date.as_deref()?.parse().ok()?;
    let zone = TimeZone::get(context.timezone.as_deref().unwrap_or("Etc/UTC")).ok()?;
    date.to_zoned(zone).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;

    fn line(kind: &str, payload: Value) -> String {
        json!({ "timestamp": "2026-01-01T00:00:00.000Z", "type": kind, "payload": payload }).to_string() + "\n"
    }

    fn meta() -> String {
        let id = "01a1df78-4c7d-70f3-8685-bec5007dd5b0";
        let meta =
            json!({ "id": id, "timestamp": "t", "cwd": "/", "originator": "o", "cli_version": "0", "source": "cli" });
        line("session_meta", meta)
    }

    /// The line of a record, by number.
    fn record(sort: usize) -> String {
        let text = |role: &str, text: &str| {
            let kind = if role == "assistant" { "output_text" } else { "input_text" };
            line(
                "response_item",
                json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] }),
            )
        };
        let event = |payload: Value| line("event_msg", payload);
        match sort {
            0 => event(json!({ "type": "task_started", "turn_id": "t" })),
            1 => event(json!({ "type": "task_complete", "turn_id": "t" })),
            2 => event(json!({ "type": "turn_aborted", "turn_id": "t", "reason": "interrupted" })),
            3 => text("user", "hi") + &event(json!({ "type": "user_message", "message": "hi" })),
            4 => event(json!({ "type": "agent_message", "message": "a" })) + &text("assistant", "a"),
            5 => event(json!({ "type": "agent_message", "message": "half" })),
            6 => line(
                "response_item",
                json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": "c" }),
            ),
            7 => line("response_item", json!({ "type": "function_call_output", "call_id": "c", "output": "o" })),
            8 => line("compacted", json!({ "message": "s", "replacement_history": [] })),
            9 => event(json!({ "type": "error", "message": "e" })),
            10 => event(
                json!({ "type": "token_count", "info": { "total_token_usage": {}, "last_token_usage": { "input_tokens": 1 } } }),
            ),
            11 => text("user", "<user_shell_command>x</user_shell_command>"),
            12 => event(json!({ "type": "entered_review_mode", "target": { "type": "uncommittedChanges" } })),
            _ => "{".to_owned() + "\n",
        }
    }

    proptest! {
        #[test]
        fn every_rollout_can_be_cut_into_numbered_turns_and_a_valid_scenario(sorts in prop::collection::vec(0usize..14, 0..40)) {
            let rollout = sorts.iter().fold(meta(), |rollout, sort| rollout + &record(*sort));
            let lines = rollout.lines().count();
            let script = Script::read(rollout.into_bytes()).expect("a script");
            let mut numbers = 0;
            let mut copied_lines = 0;
            for segment in &script.segments {
                match segment {
                    Segment::Copied(copied) => {
                        copied_lines += copied.lines.len();
                        numbers += usize::from(copied.turn.is_some());
                    }
                    Segment::Turn(turn) => {
                        numbers += 1;
                        prop_assert_eq!(turn.number, numbers);
                        let answers = turn.model_calls.iter().filter(|(asked, _)| *asked == CallPurpose::Answer).count();
                        prop_assert_eq!(turn.gaps.len(), answers + 1);
                        prop_assert!(turn.model_calls.is_sorted_by_key(|(_, line)| *line));
                    }
                }
            }
            prop_assert!(copied_lines <= lines);
            prop_assert!(loomd_model::Scenario::of_thread(&script.scenario, "x").is_ok());
        }
    }

    #[test]
    fn a_rollout_without_session_meta_is_an_error() {
        assert_eq!(Script::read(record(0).into_bytes()).err(), Some(ScriptError::NoSessionMeta));
    }
}
