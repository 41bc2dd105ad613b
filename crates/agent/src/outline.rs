//! The outline of a rollout: where its turns begin, so that a page reads only its own turns. It is derived from the
//! rollout, extended as the rollout grows, dropped when the two disagree, and never the only copy of anything.

use loomd_protocol::Turn;
use loomd_store::{Position, Reader, Result, Store, Window};

use crate::turns::{ClosedTurns, Counters, Start, Turns};

/// The size of the windows in which a rollout is read.
const PIECE: usize = 256 * 1024;

/// The turns of a rollout by index, oldest first. About 40 bytes per turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    marks: Marks,
    /// Where the next [`Outline::extend`] begins to read: the start of the open turn, else the end of the rollout.
    read: Start,
    /// The turn that is open at the end of the rollout.
    open: Option<Mark>,
    /// The end of the rollout when it was last read.
    end: Position,
    /// The bytes that were read since the outline was last stored.
    unkept: usize,
}

/// The version of the stored form. An outline of another version is ignored.
const FORM: u64 = 1;
/// An outline is stored after this many bytes were read.
const KEPT_EVERY: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// The hash of the turn's id.
    id: u64,
    start: Start,
    items: u32,
}

/// The index of a turn that was rolled back.
const DROPPED: u32 = u32::MAX;

/// The closed turns.
#[derive(Clone, Debug, Default)]
struct Marks {
    turns: Vec<Mark>,
    /// Lines after the end of the turn that they belong to: the turn's index and the line's position, in the order of
    /// the lines.
    late: Vec<(u32, Position)>,
    /// A rollback came after late lines, so the count of items may be wrong.
    inexact: bool,
    /// An id was made from an inexact count, and may differ from the id that reading the whole rollout gives.
    unusable: bool,
}

impl ClosedTurns for Marks {
    fn push(&mut self, turn: Turn, start: Start) {
        let items = u32::try_from(turn.items.len()).unwrap_or(u32::MAX);
        self.turns.push(Mark { id: hash(&turn.id), start, items });
    }

    fn change(&mut self, id: &str, position: Position, _: impl FnOnce(&mut Turn)) -> bool {
        let id = hash(id);
        let Some(at) = self.turns.iter().position(|mark| mark.id == id) else { return false };
        self.late.push((u32::try_from(at).unwrap_or(u32::MAX), position));
        true
    }

    fn drop_last(&mut self, turns: usize) {
        self.turns.truncate(self.turns.len().saturating_sub(turns));
        for (at, _) in &mut self.late {
            if *at as usize >= self.turns.len() {
                *at = DROPPED;
            }
        }
        self.inexact = self.late.iter().any(|(at, _)| *at != DROPPED);
    }

    fn items(&self) -> u64 {
        self.turns.iter().map(|mark| u64::from(mark.items)).sum()
    }

    fn item_count_used(&mut self) {
        self.unusable |= self.inexact;
    }
}

impl Marks {
    /// Whether the line belongs to an earlier turn than its neighbours.
    fn is_late(&self, position: Position) -> bool {
        self.late.binary_search_by_key(&position, |(_, late)| *late).is_ok()
    }
}

impl Outline {
    /// The number of turns, with the open one.
    pub fn len(&self) -> usize {
        self.marks.turns.len() + usize::from(self.open.is_some())
    }

    /// Whether no record has been read yet.
    pub fn is_new(&self) -> bool {
        self.end == Position::START
    }

    /// Whether turns can be read by index. If not, the whole rollout has to be read for their ids.
    pub fn is_usable(&self) -> bool {
        !self.marks.unusable
    }

    /// The approximate memory of the outline.
    pub fn bytes(&self) -> usize {
        self.marks.turns.capacity() * size_of::<Mark>() + self.marks.late.capacity() * size_of::<(u32, Position)>()
    }

    /// The indices of the turns whose id has the hash of `id`.
    pub fn places(&self, id: &str) -> impl DoubleEndedIterator<Item = usize> {
        let id = hash(id);
        (0..self.len()).filter(move |at| self.mark(*at).is_some_and(|mark| mark.id == id))
    }

    fn mark(&self, at: usize) -> Option<&Mark> {
        self.marks.turns.get(at).or(self.open.as_ref().filter(|_| at == self.marks.turns.len()))
    }

    /// Loads the stored outline of a rollout. `None` when there is none, or the rollout has been rewritten since.
    pub async fn kept(store: &dyn Store, reader: &dyn Reader) -> Option<Self> {
        let bytes = store.derived(reader.id()).await.ok()??;
        let (outline, last_line) = Self::decode(&bytes)?;
        (last_line_hash(reader, outline.read.position).await.ok()? == last_line).then_some(outline)
    }

    /// Stores the outline if at least [`KEPT_EVERY`] bytes were read since the last time.
    pub async fn keep(&mut self, store: &dyn Store, reader: &dyn Reader) -> Result<()> {
        if self.unkept >= KEPT_EVERY {
            let last_line = last_line_hash(reader, self.read.position).await?;
            store.keep_derived(reader.id(), self.encode(last_line)).await?;
            self.unkept = 0;
        }
        Ok(())
    }

    /// The outline up to `read` as little-endian numbers. The open turn is left out: it is read again.
    fn encode(&self, last_line: u64) -> Vec<u8> {
        let late: Vec<_> = self.marks.late.iter().filter(|(_, position)| *position < self.read.position).collect();
        let mut numbers = vec![
            FORM,
            last_line,
            self.read.position.to_bits(),
            self.read.counters.next_item,
            self.read.counters.made,
            u64::from(self.marks.inexact) | u64::from(self.marks.unusable) << 1,
            late.len() as u64,
        ];
        numbers.extend(late.iter().flat_map(|(at, position)| [u64::from(*at), position.to_bits()]));
        for Mark { id, start, items } in &self.marks.turns {
            let Start { position, counters } = start;
            numbers.extend([*id, position.to_bits(), counters.next_item, counters.made, u64::from(*items)]);
        }
        numbers.into_iter().flat_map(u64::to_le_bytes).collect()
    }

    fn decode(bytes: &[u8]) -> Option<(Self, u64)> {
        let mut numbers = bytes.chunks_exact(8).filter_map(|chunk| Some(u64::from_le_bytes(chunk.try_into().ok()?)));
        let mut next = || numbers.next();
        if next()? != FORM {
            return None;
        }
        let last_line = next()?;
        let read =
            Start { position: Position::from_bits(next()?), counters: Counters { next_item: next()?, made: next()? } };
        let flags = next()?;
        let mut marks = Marks { inexact: flags & 1 != 0, unusable: flags & 2 != 0, ..Marks::default() };
        for _ in 0..next()? {
            marks.late.push((u32::try_from(next()?).ok()?, Position::from_bits(next()?)));
        }
        while let Some(id) = next() {
            let position = Position::from_bits(next()?);
            let start = Start { position, counters: Counters { next_item: next()?, made: next()? } };
            marks.turns.push(Mark { id, start, items: u32::try_from(next()?).ok()? });
        }
        Some((Self { marks, read, open: None, end: Position::START, unkept: 0 }, last_line))
    }

    /// Reads the records that were added to the rollout. A rollout that became shorter is read from the start.
    pub async fn extend(&mut self, reader: &dyn Reader) -> Result<()> {
        let mut window = reader.records_after(self.read.position, PIECE).await?;
        if window.thread_end() < self.end.max(self.read.position) {
            *self = Self::default();
            window = reader.records_after(Position::START, PIECE).await?;
        }
        if window.thread_end() == self.end && self.end > Position::START {
            return Ok(());
        }
        // Cancel-safe: dropped in the middle, this leaves an empty outline, which reads the rollout from the start.
        let Self { mut marks, read: before, mut unkept, .. } = std::mem::take(self);
        // Late lines after the start of the open turn are read again.
        marks.late.retain(|(_, position)| *position < before.position);
        let mut turns = Turns::after(reader.id(), marks, before.counters);
        let mut bytes = 0;
        while !window.is_empty() {
            for line in window.lines() {
                turns.push_at(line.start, line.bytes);
            }
            bytes += window.bytes().len();
            let end = window.end();
            drop(window);
            tokio::task::yield_now().await;
            window = reader.records_after(end, PIECE).await?;
        }
        let end = window.end();
        let open = turns.open().map(|(turn_id, start)| Mark { id: hash(turn_id), start, items: 0 });
        let read = open.map_or(Start { position: end, counters: turns.counters() }, |open| open.start);
        if read.position > before.position {
            unkept += bytes;
        }
        *self = Self { marks: turns.closed, read, open, end, unkept };
        Ok(())
    }

    /// Reads the turns with these indices, oldest first; `None` when the rollout has been rewritten.
    pub async fn read(&self, reader: &dyn Reader, places: std::ops::Range<usize>) -> Result<Option<Vec<Turn>>> {
        let id = reader.id();
        let mut lines = Lines { reader, window: None };
        let mut found = Vec::with_capacity(places.len());
        for at in places {
            let Some(mark) = self.mark(at) else { break };
            let mut turns = Turns::after(id, Vec::new(), mark.start.counters);
            let mut from = mark.start.position;
            while turns.closed.is_empty() && from < self.end {
                let Some(next) = lines
                    .each(from, self.end, |position, line| {
                        if !self.marks.is_late(position) {
                            turns.push_at(position, line);
                        }
                        turns.closed.is_empty()
                    })
                    .await?
                else {
                    break;
                };
                from = next;
            }
            let mut turns = Turns::after(id, turns.finish(), Counters::default());
            turns.closed.truncate(1);
            for (_, late) in self.marks.late.iter().filter(|(late, _)| *late as usize == at) {
                lines
                    .each(*late, self.end, |position, line| {
                        turns.push_at(position, line);
                        false
                    })
                    .await?;
            }
            match turns.closed.pop().filter(|turn| hash(&turn.id) == mark.id) {
                Some(turn) => found.push(turn),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

/// Reads lines of a rollout from positions that mostly ascend. Keeps the last window.
struct Lines<'a> {
    reader: &'a dyn Reader,
    window: Option<Window>,
}

impl Lines<'_> {
    /// Calls `take` with the lines of one window between two positions until it returns false. Returns the position to
    /// continue from; `None` at `to` or at the end of the rollout.
    async fn each(
        &mut self,
        from: Position,
        to: Position,
        mut take: impl FnMut(Position, &[u8]) -> bool,
    ) -> Result<Option<Position>> {
        if self.window.as_ref().is_none_or(|window| from < window.start() || from >= window.end()) {
            self.window = Some(self.reader.records_after(from, PIECE).await?);
        }
        let Some(window) = self.window.as_ref().filter(|window| !window.is_empty()) else { return Ok(None) };
        for line in window.lines_after(from) {
            if line.start >= to {
                return Ok(None);
            }
            if !take(line.start, line.bytes) {
                return Ok(Some(line.end));
            }
        }
        Ok(Some(window.end()))
    }
}

/// The hash of the line before a position.
async fn last_line_hash(reader: &dyn Reader, position: Position) -> Result<u64> {
    let window = reader.records_before(Some(position), 1).await?;
    Ok(hash_bytes(window.bytes()) ^ window.end().to_bits())
}

fn hash(id: &str) -> u64 {
    hash_bytes(id.as_bytes())
}

/// FNV-1a. Stored outlines contain it, so it must not change between releases.
fn hash_bytes(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use loomd_store::{Batch, Durability, FileBacked, FileStore, MemoryStore, Options, ThreadId};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::history;

    fn id() -> ThreadId {
        "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2".parse().unwrap()
    }

    fn meta() -> String {
        let payload = json!({
            "id": id(), "timestamp": "2025-03-04T05:06:07.000Z", "cwd": "/", "originator": "o", "cli_version": "1",
        });
        line("session_meta", payload)
    }

    fn line(kind: &str, payload: Value) -> String {
        format!("{}\n", json!({ "timestamp": "x", "type": kind, "payload": payload }))
    }

    fn event(payload: Value) -> String {
        line("event_msg", payload)
    }

    fn record() -> impl Strategy<Value = String> {
        let turn = || prop::sample::select(vec!["a", "b", "c", "d", "e"]);
        let item = || prop::option::of(prop::sample::select(vec!["i1", "i2"]));
        prop_oneof![
            4 => turn().prop_map(|id| event(json!({ "type": "task_started", "turn_id": id }))),
            3 => turn().prop_map(|id| event(json!({ "type": "task_complete", "turn_id": id }))),
            1 => prop::option::of(turn()).prop_map(|id| {
                event(json!({ "type": "turn_aborted", "turn_id": id, "reason": "interrupted" }))
            }),
            3 => item().prop_map(|id| event(json!({ "type": "user_message", "message": "hi", "item_id": id }))),
            3 => item().prop_map(|id| event(json!({ "type": "agent_message", "message": "yo", "item_id": id }))),
            1 => item().prop_map(|id| event(json!({ "type": "agent_reasoning", "text": "hm", "item_id": id }))),
            2 => (turn(), prop::sample::select(vec!["c1", "c2"])).prop_map(|(turn, call)| event(json!({
                "type": "exec_command_end", "call_id": call, "turn_id": turn, "command": ["echo"], "cwd": "/w",
                "parsed_cmd": [], "exit_code": 0, "duration": { "secs": 1, "nanos": 0 }, "status": "completed",
            }))),
            1 => (0u32..4).prop_map(|turns| event(json!({ "type": "thread_rolled_back", "num_turns": turns }))),
            1 => Just(line("compacted", json!({ "message": "m" }))),
            1 => Just(event(json!({ "type": "error", "message": "no" }))),
            1 => Just(event(json!({ "type": "token_count", "info": null }))),
            1 => Just("garbage\n".to_owned()),
        ]
    }

    async fn check(reader: &dyn Reader, outline: &mut Outline) {
        outline.extend(reader).await.unwrap();
        let all = history::turns(reader, true).await.unwrap();
        assert_eq!(outline.len(), all.len());
        if !outline.is_usable() {
            return;
        }
        assert_eq!(outline.read(reader, 0..all.len()).await.unwrap().as_ref(), Some(&all));
        for (at, turn) in all.iter().enumerate().rev() {
            let alone = outline.read(reader, at..at + 1).await.unwrap().unwrap();
            assert_eq!(alone, std::slice::from_ref(turn));
            assert!(outline.places(&turn.id).any(|place| place == at));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn turns_read_by_index_equal_those_of_the_whole_rollout(
            pieces in prop::collection::vec(prop::collection::vec(record(), 0..12), 1..5),
        ) {
            let store = MemoryStore::new();
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                let reader = &*store.create(id(), jiff::Timestamp::UNIX_EPOCH);
                let mut writer = reader.writer().await.unwrap();
                let mut append = async |text: String| {
                    writer.append(Batch::of_lines(text.into_bytes()), Durability::Flushed).await.unwrap()
                };
                append(meta()).await;
                let mut outline = Outline::default();
                for piece in pieces {
                    append(piece.concat()).await;
                    check(reader, &mut outline).await;
                    // As after a restart.
                    let last_line = last_line_hash(reader, outline.read.position).await.unwrap();
                    store.keep_derived(id(), outline.encode(last_line)).await.unwrap();
                    outline = Outline::kept(&store, reader).await.unwrap();
                    check(reader, &mut outline).await;
                }
                check(reader, &mut Outline::default()).await;
            });
        }
    }

    #[tokio::test]
    async fn the_outline_of_a_rewritten_rollout_is_not_used() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("rollout.jsonl");
        let turn = |id: &str| {
            let started = event(json!({ "type": "task_started", "turn_id": id }));
            started + &event(json!({ "type": "task_complete", "turn_id": id }))
        };
        let file = |turns: &[&str]| meta() + &turns.iter().map(|id| turn(id)).collect::<String>();
        std::fs::write(&path, file(&["one", "two"])).unwrap();
        let store = FileStore::new(Options { home: home.path().to_owned(), sqlite_home: None });
        let (_, reader) = store.adopt(&path).await.unwrap();
        let reader = &*reader;
        let mut outline = Outline::default();
        check(reader, &mut outline).await;
        std::fs::write(&path, file(&["six", "two"])).unwrap();
        outline.extend(reader).await.unwrap();
        assert_eq!(outline.read(reader, 0..1).await.unwrap(), None);
        let last_line = last_line_hash(reader, outline.read.position).await.unwrap();
        store.keep_derived(id(), outline.encode(last_line)).await.unwrap();
        assert!(Outline::kept(&store, reader).await.is_some());
        std::fs::write(&path, file(&["six", "ten", "more"])).unwrap();
        assert!(Outline::kept(&store, reader).await.is_none());
        std::fs::write(&path, file(&["six"])).unwrap();
        assert!(Outline::kept(&store, reader).await.is_none());
        check(reader, &mut outline).await;
    }
}
