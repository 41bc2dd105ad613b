//! Where the turns of a rollout begin, so that a page reads only its own turns. An outline is made from the
//! rollout, extended as that grows, and thrown away when the two disagree; it is never the only copy of anything.

use loomd_protocol::Turn;
use loomd_store::{Position, Reader, Result, Store, Window};

use crate::turns::{Counters, Past, Start, Turns};

/// How much of a rollout is in memory at a time while it is outlined, and while turns are read.
const PIECE: usize = 256 * 1024;

/// The turns of a rollout by place. About 40 bytes a turn.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    marks: Marks,
    /// How much of the rollout has been read for good: no turn is open here.
    read: Start,
    /// The turn that is still open at the end of the rollout.
    open: Option<Mark>,
    /// The end of the rollout.
    end: Position,
    /// Bytes that were read since the outline was last kept in the store.
    unkept: usize,
}

/// The form in which outlines are kept. Others are made anew.
const FORM: u64 = 1;
/// An outline is kept when this much was read since.
const KEPT_EVERY: usize = 1024 * 1024;

#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Of the turn's id.
    id: u64,
    start: Start,
    items: u32,
}

/// The place of a turn that was rolled back.
const DROPPED: u32 = u32::MAX;

/// Turns that are over.
#[derive(Clone, Debug, Default)]
struct Marks {
    turns: Vec<Mark>,
    /// Lines behind the end of a turn that belong to it: the turn's place and the line's position, in the order of
    /// the lines.
    late: Vec<(u32, Position)>,
    /// A rollback came after late lines, so that items are not counted exactly.
    inexact: bool,
    /// Ids were made from an inexact count. They would differ from those that a reading of all records makes.
    unusable: bool,
}

impl Past for Marks {
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

    fn count_matters(&mut self) {
        self.unusable |= self.inexact;
    }
}

impl Marks {
    /// Whether the line belongs to an earlier turn than the one in which it stands.
    fn is_late(&self, position: Position) -> bool {
        self.late.binary_search_by_key(&position, |(_, late)| *late).is_ok()
    }
}

impl Outline {
    /// How many turns there are, the open one included.
    pub fn len(&self) -> usize {
        self.marks.turns.len() + usize::from(self.open.is_some())
    }

    /// Whether nothing has been read for it.
    pub fn is_new(&self) -> bool {
        self.end == Position::START
    }

    /// Whether turns can be read by their places. If not, only a reading of the whole rollout gives their ids.
    pub fn is_usable(&self) -> bool {
        !self.marks.unusable
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.marks.turns.capacity() * size_of::<Mark>() + self.marks.late.capacity() * size_of::<(u32, Position)>()
    }

    /// The places of the turns that may have this id.
    pub fn places(&self, id: &str) -> impl DoubleEndedIterator<Item = usize> {
        let id = hash(id);
        (0..self.len()).filter(move |at| self.mark(*at).is_some_and(|mark| mark.id == id))
    }

    fn mark(&self, at: usize) -> Option<&Mark> {
        self.marks.turns.get(at).or(self.open.as_ref().filter(|_| at == self.marks.turns.len()))
    }

    /// The outline that was kept for a rollout, if it is still one of it.
    pub async fn kept(store: &dyn Store, reader: &dyn Reader) -> Option<Self> {
        let bytes = store.derived(reader.id()).await.ok()??;
        let (outline, last_line) = Self::decode(&bytes)?;
        (last_line_hash(reader, outline.read.position).await.ok()? == last_line).then_some(outline)
    }

    /// Keeps the outline, if it has grown enough.
    pub async fn keep(&mut self, store: &dyn Store, reader: &dyn Reader) -> Result<()> {
        if self.unkept >= KEPT_EVERY {
            let last_line = last_line_hash(reader, self.read.position).await?;
            store.keep_derived(reader.id(), self.encode(last_line)).await?;
            self.unkept = 0;
        }
        Ok(())
    }

    /// As numbers, up to where no turn is open: the rest is read again.
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

    /// Reads what was added to the rollout. One that became shorter is read anew.
    pub async fn extend(&mut self, reader: &dyn Reader) -> Result<()> {
        let mut window = reader.records_after(self.read.position, PIECE).await?;
        if window.thread_end() < self.end.max(self.read.position) {
            *self = Self::default();
            window = reader.records_after(Position::START, PIECE).await?;
        }
        if window.thread_end() == self.end && self.end > Position::START {
            return Ok(());
        }
        // Left empty, and made anew, if this is given up in the middle.
        let Self { mut marks, read: before, mut unkept, .. } = std::mem::take(self);
        // What belongs to an earlier turn and stands behind the beginning of the open one is met again.
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
        *self = Self { marks: turns.past, read, open, end, unkept };
        Ok(())
    }

    /// The turns at these places, oldest first; `None` when the rollout is not the one that was outlined.
    pub async fn read(&self, reader: &dyn Reader, places: std::ops::Range<usize>) -> Result<Option<Vec<Turn>>> {
        let id = reader.id();
        let mut lines = Lines { reader, window: None };
        let mut found = Vec::with_capacity(places.len());
        for at in places {
            let Some(mark) = self.mark(at) else { break };
            let mut turns = Turns::after(id, Vec::new(), mark.start.counters);
            let mut from = mark.start.position;
            while turns.past.is_empty() && from < self.end {
                let Some(next) = lines
                    .each(from, self.end, |position, line| {
                        if !self.marks.is_late(position) {
                            turns.push_at(position, line);
                        }
                        turns.past.is_empty()
                    })
                    .await?
                else {
                    break;
                };
                from = next;
            }
            let mut turns = Turns::after(id, turns.finish(), Counters::default());
            turns.past.truncate(1);
            for (_, late) in self.marks.late.iter().filter(|(late, _)| *late as usize == at) {
                lines
                    .each(*late, self.end, |position, line| {
                        turns.push_at(position, line);
                        false
                    })
                    .await?;
            }
            match turns.past.pop().filter(|turn| hash(&turn.id) == mark.id) {
                Some(turn) => found.push(turn),
                None => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

/// Lines of a rollout, from places that mostly follow each other.
struct Lines<'a> {
    reader: &'a dyn Reader,
    window: Option<Window>,
}

impl Lines<'_> {
    /// Hands over the lines of one window between two positions, until `take` wants no more. Gives the position to go
    /// on from; `None` at the end of the rollout.
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

/// Of the line before a position.
async fn last_line_hash(reader: &dyn Reader, position: Position) -> Result<u64> {
    let window = reader.records_before(Some(position), 1).await?;
    Ok(hash_bytes(window.bytes()) ^ window.end().to_bits())
}

fn hash(id: &str) -> u64 {
    hash_bytes(id.as_bytes())
}

/// FNV-1a: the same in every release.
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
        fn turns_read_by_place_are_those_of_a_whole_reading_however_the_rollout_grew(
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
    async fn a_rewritten_rollout_is_noticed() {
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
