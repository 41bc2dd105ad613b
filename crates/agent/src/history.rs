//! Reading the rollout of a thread, window by window.

use std::future::poll_fn;
use std::task::Poll;

use loomd_protocol::{ReasoningEffort, Turn};
use loomd_store::rollout::{
    AbortReason, Compacted, Event, Line, LineHeader, Record, SessionMeta, StoredSettings, TokenUsageInfo, TurnContext,
};
use loomd_store::{Position, Reader, Result, StoredLine, ThreadId};

use crate::turns::{Turns, interrupt_open};

/// The size of a window.
const PIECE: usize = 256 * 1024;

/// How many bytes from the end of a rollout [`last`] searches.
const REACH: usize = 4 * 1024 * 1024;

/// How many bytes from the start of a rollout are searched for its `session_meta`.
const HEAD: usize = 64 * 1024;

/// The turns of a thread. Without `running`, a turn in progress is returned as interrupted.
pub(crate) async fn turns(reader: &dyn Reader, running: bool) -> Result<Vec<Turn>> {
    let mut reading = ReadTurns::new(reader.id());
    reading.read_on(reader).await?;
    let mut turns = reading.finish();
    if !running {
        interrupt_open(&mut turns);
    }
    Ok(turns)
}

/// Reads the turns of a thread, in steps, while its rollout may grow.
pub(crate) struct ReadTurns {
    turns: Turns,
    read: Position,
}

impl ReadTurns {
    pub fn new(id: ThreadId) -> Self {
        Self { turns: Turns::new(id), read: Position::START }
    }

    /// Reads from where the last call ended to the end of the rollout.
    pub async fn read_on(&mut self, reader: &dyn Reader) -> Result<()> {
        let turns = &mut self.turns;
        self.read = each_line_as_it_stands(reader, self.read, |line| turns.push_bytes(line)).await?;
        Ok(())
    }

    pub fn finish(self) -> Vec<Turn> {
        self.turns.finish()
    }
}

/// Calls `take` with every well-formed line of a thread, in order. Returns the position after the last.
pub(crate) async fn each_line(reader: &dyn Reader, take: impl FnMut(&Line<'_>)) -> Result<Position> {
    each_line_from(reader, Position::START, take).await
}

/// Like [`each_line`], for the lines after a position.
pub(crate) async fn each_line_from(
    reader: &dyn Reader,
    from: Position,
    mut take: impl FnMut(&Line<'_>),
) -> Result<Position> {
    each_line_as_it_stands(reader, from, |line| {
        if let Some(line) = Line::parse(line) {
            take(&line);
        }
    })
    .await
}

async fn each_line_as_it_stands(reader: &dyn Reader, from: Position, mut take: impl FnMut(&[u8])) -> Result<Position> {
    let mut window = reader.records_after(from, PIECE).await?;
    while !window.is_empty() {
        // The next window is read while this one is processed.
        let mut next = reader.records_after(window.end(), PIECE);
        let begun = poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        for line in window.lines() {
            take(line.bytes);
        }
        drop(window);
        window = match begun {
            Poll::Ready(read) => read?,
            Poll::Pending => next.await?,
        };
        tokio::task::yield_now().await;
    }
    Ok(window.end())
}

/// The complete `session_meta` of a thread. The index of the store leaves out its long fields.
pub(crate) async fn meta(reader: &dyn Reader) -> Result<Option<SessionMeta>> {
    let window = reader.records_after(Position::START, HEAD).await?;
    let mut records = window.lines().filter_map(|line| Line::parse(line.bytes)?.decode());
    Ok(records.find_map(|record| match record {
        Record::SessionMeta(meta) => Some(*meta),
        _ => None,
    }))
}

/// The settings of the last turn.
pub(crate) async fn last_turn_context(reader: &dyn Reader) -> Result<Option<TurnContext>> {
    last(reader, None, "turn_context", |record| match record {
        Record::TurnContext(context) => Some(*context),
        _ => None,
    })
    .await
}

/// The settings that were last changed.
pub(crate) async fn last_settings(reader: &dyn Reader) -> Result<Option<StoredSettings>> {
    last(reader, None, "thread_settings_applied", |record| match record {
        Record::EventMsg(Event::ThreadSettingsApplied(applied)) => Some(applied.thread_settings),
        _ => None,
    })
    .await
}

/// The model and the effort that the next turn would use, as far as they are stored.
pub(crate) async fn last_model(reader: &dyn Reader) -> Result<Option<(Option<String>, Option<ReasoningEffort>)>> {
    if let Some(settings) = last_settings(reader).await? {
        return Ok(Some((Some(settings.model), settings.effort)));
    }
    Ok(last_turn_context(reader).await?.map(|turn| (Some(turn.model), turn.effort)))
}

/// The tokens used so far.
pub(crate) async fn last_usage(reader: &dyn Reader) -> Result<Option<TokenUsageInfo>> {
    last(reader, None, "token_count", token_usage).await
}

/// The tokens used before a position.
pub(crate) async fn usage_before(reader: &dyn Reader, to: Position) -> Result<Option<TokenUsageInfo>> {
    last(reader, Some(to), "token_count", token_usage).await
}

fn token_usage(record: Record) -> Option<TokenUsageInfo> {
    match record {
        Record::EventMsg(Event::TokenCount(count)) => count.info,
        _ => None,
    }
}

/// Whether the last turn was interrupted on purpose. One that a crash cut short was not.
pub(crate) async fn ends_interrupted(reader: &dyn Reader) -> Result<bool> {
    let ended = last(reader, None, "event_msg", |record| match record {
        Record::EventMsg(Event::TaskStarted(_) | Event::TaskComplete(_)) => Some(false),
        Record::EventMsg(Event::TurnAborted(aborted)) => Some(aborted.reason == AbortReason::Interrupted),
        _ => None,
    });
    Ok(ended.await?.unwrap_or(false))
}

/// The id of the last turn.
pub(crate) async fn last_turn_id(reader: &dyn Reader) -> Result<Option<String>> {
    let id = |record| match record {
        Record::EventMsg(Event::TaskStarted(started)) => Some(started.turn_id),
        _ => None,
    };
    last(reader, None, "_started", id).await
}

/// Whether a turn has a message of the user.
pub(crate) async fn has_user_message(reader: &dyn Reader, turn_id: &str) -> Result<bool> {
    let (mut within, mut found) = (false, false);
    each_line(reader, |line| match line.decode() {
        Some(Record::EventMsg(Event::TaskStarted(started))) => within = started.turn_id == turn_id,
        Some(Record::EventMsg(Event::UserMessage(_))) => found |= within,
        _ => {}
    })
    .await?;
    Ok(found)
}

/// The start of the turn with the last `compacted` record that has a `replacement_history`: the conversation can be
/// read from there. `None` when there is no such record, or it is not in a turn with a start record.
pub(crate) async fn last_summary(reader: &dyn Reader) -> Result<Option<Position>> {
    let (mut to, mut found) = (None, false);
    loop {
        let window = reader.records_before(to, PIECE).await?;
        if window.is_empty() {
            return Ok(None);
        }
        // Most windows contain no summary, so their lines are not parsed.
        if found || memchr::memmem::find(window.bytes(), b"replacement_history").is_some() {
            let lines: Vec<StoredLine<'_>> = window.lines().collect();
            for line in lines.into_iter().rev() {
                match boundary(line.bytes) {
                    Some(Boundary::Summary) => found = true,
                    Some(Boundary::Begins) if found => return Ok(Some(line.start)),
                    Some(Boundary::Ends) if found => return Ok(None),
                    _ => {}
                }
            }
        }
        to = Some(window.start());
    }
}

enum Boundary {
    Summary,
    Begins,
    Ends,
}

/// The boundary of a turn or of the conversation that a line is, if any.
fn boundary(line: &[u8]) -> Option<Boundary> {
    let kind = |kind: &str, payload_type: Option<&str>| match (kind, payload_type) {
        ("compacted", _) => Some(Boundary::Summary),
        ("event_msg", Some("task_started" | "turn_started")) => Some(Boundary::Begins),
        ("event_msg", Some("task_complete" | "turn_complete" | "turn_aborted" | "thread_rolled_back")) => {
            Some(Boundary::Ends)
        }
        _ => None,
    };
    let bound = match LineHeader::parse(line) {
        Some(header) if header.kind != "event_msg" || header.payload_type().is_some() => {
            kind(header.kind, header.payload_type())
        }
        _ => Line::parse(line).and_then(|line| kind(&line.kind, line.payload_type().as_deref())),
    };
    bound.filter(|bound| match bound {
        // Summaries of older releases need the items before them.
        Boundary::Summary => matches!(
            Line::parse(line).and_then(|line| line.decode()),
            Some(Record::Compacted(Compacted { replacement_history: Some(_), .. }))
        ),
        _ => true,
    })
}

/// The last record before `to`, or in the rollout, for which `wanted` returns a value. Searches at most [`REACH`]
/// bytes, and decodes only lines that contain `marker`.
async fn last<T>(
    reader: &dyn Reader,
    mut to: Option<Position>,
    marker: &str,
    wanted: impl Fn(Record) -> Option<T>,
) -> Result<Option<T>> {
    let mut searched = 0;
    while searched < REACH {
        let window = reader.records_before(to, PIECE).await?;
        if window.is_empty() {
            break;
        }
        let mut found = None;
        let marked = |line: &[u8]| memchr::memmem::find(line, marker.as_bytes()).is_some();
        for line in window.lines().filter(|line| marked(line.bytes)) {
            if let Some(value) = Line::parse(line.bytes).and_then(|line| line.decode()).and_then(&wanted) {
                found = Some(value);
            }
        }
        if found.is_some() {
            return Ok(found);
        }
        searched += window.bytes().len();
        to = Some(window.start());
    }
    Ok(None)
}
