//! Where the turns of a rollout begin, so that a page reads only its own turns. An outline is made from the
//! rollout, extended as that grows, and thrown away when the two disagree; it is never the only copy of anything.

use loomd_protocol::Turn;
use loomd_store::{Result, Store, ThreadId};

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
    end: u64,
    /// How much of the rollout was covered when the outline was last kept in the store.
    kept: u64,
}

/// The form in which outlines are kept. Others are made anew.
const FORM: u64 = 1;
/// An outline is kept when this much was read since.
const KEPT_EVERY: u64 = 1024 * 1024;

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
    /// Lines behind the end of a turn that belong to it: the turn's place and the line's offset, in the order of
    /// the lines.
    late: Vec<(u32, u64)>,
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

    fn change(&mut self, id: &str, offset: u64, _: impl FnOnce(&mut Turn)) -> bool {
        let id = hash(id);
        let Some(at) = self.turns.iter().position(|mark| mark.id == id) else { return false };
        self.late.push((u32::try_from(at).unwrap_or(u32::MAX), offset));
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
    fn is_late(&self, offset: u64) -> bool {
        self.late.binary_search_by_key(&offset, |(_, late)| *late).is_ok()
    }
}

impl Outline {
    /// How many turns there are, the open one included.
    pub fn len(&self) -> usize {
        self.marks.turns.len() + usize::from(self.open.is_some())
    }

    /// Whether nothing has been read for it.
    pub fn is_new(&self) -> bool {
        self.end == 0
    }

    /// Whether turns can be read by their places. If not, only a reading of the whole rollout gives their ids.
    pub fn is_usable(&self) -> bool {
        !self.marks.unusable
    }

    /// About how much memory it takes.
    pub fn bytes(&self) -> usize {
        self.marks.turns.capacity() * size_of::<Mark>() + self.marks.late.capacity() * size_of::<(u32, u64)>()
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
    pub async fn kept(store: &dyn Store, id: ThreadId) -> Option<Self> {
        let bytes = store.derived(id).await.ok()??;
        let (outline, last_line) = Self::decode(&bytes)?;
        (last_line_hash(store, id, outline.read.offset).await.ok()? == last_line).then_some(outline)
    }

    /// Keeps the outline, if it has grown enough.
    pub async fn keep(&mut self, store: &dyn Store, id: ThreadId) -> Result<()> {
        if self.read.offset >= self.kept + KEPT_EVERY {
            let last_line = last_line_hash(store, id, self.read.offset).await?;
            store.keep_derived(id, self.encode(last_line)).await?;
            self.kept = self.read.offset;
        }
        Ok(())
    }

    /// As numbers, up to where no turn is open: the rest is read again.
    fn encode(&self, last_line: u64) -> Vec<u8> {
        let late: Vec<_> = self.marks.late.iter().filter(|(_, offset)| *offset < self.read.offset).collect();
        let mut numbers = vec![
            FORM,
            last_line,
            self.read.offset,
            self.read.counters.next_item,
            self.read.counters.made,
            u64::from(self.marks.inexact) | u64::from(self.marks.unusable) << 1,
            late.len() as u64,
        ];
        numbers.extend(late.iter().flat_map(|(at, offset)| [u64::from(*at), *offset]));
        for Mark { id, start, items } in &self.marks.turns {
            numbers.extend([*id, start.offset, start.counters.next_item, start.counters.made, u64::from(*items)]);
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
        let read = Start { offset: next()?, counters: Counters { next_item: next()?, made: next()? } };
        let flags = next()?;
        let mut marks = Marks { inexact: flags & 1 != 0, unusable: flags & 2 != 0, ..Marks::default() };
        for _ in 0..next()? {
            marks.late.push((u32::try_from(next()?).ok()?, next()?));
        }
        while let Some(id) = next() {
            let start = Start { offset: next()?, counters: Counters { next_item: next()?, made: next()? } };
            marks.turns.push(Mark { id, start, items: u32::try_from(next()?).ok()? });
        }
        Some((Self { marks, read, open: None, end: 0, kept: read.offset }, last_line))
    }

    /// Reads what was added to the rollout. One that became shorter is read anew.
    pub async fn extend(&mut self, store: &dyn Store, id: ThreadId) -> Result<()> {
        let mut window = store.read(id, self.read.offset, PIECE).await?;
        if window.file_len < self.end.max(self.read.offset) {
            *self = Self::default();
            window = store.read(id, 0, PIECE).await?;
        }
        if window.file_len == self.end && self.end > 0 {
            return Ok(());
        }
        // Left empty, and made anew, if this is given up in the middle.
        let Self { mut marks, read, kept, .. } = std::mem::take(self);
        // What belongs to an earlier turn and stands behind the beginning of the open one is met again.
        marks.late.retain(|(_, offset)| *offset < read.offset);
        let mut turns = Turns::after(id, marks, read.counters);
        while !window.bytes.is_empty() {
            for (offset, line) in window.lines() {
                turns.push_at(offset, line);
            }
            let end = window.end();
            drop(window);
            tokio::task::yield_now().await;
            window = store.read(id, end, PIECE).await?;
        }
        let end = window.end();
        let open = turns.open().map(|(turn_id, start)| Mark { id: hash(turn_id), start, items: 0 });
        let read = open.map_or(Start { offset: end, counters: turns.counters() }, |open| open.start);
        *self = Self { marks: turns.past, read, open, end, kept };
        Ok(())
    }

    /// The turns at these places, oldest first; `None` when the rollout is not the one that was outlined.
    pub async fn read(
        &self,
        store: &dyn Store,
        id: ThreadId,
        places: std::ops::Range<usize>,
    ) -> Result<Option<Vec<Turn>>> {
        let mut lines = Lines { store, id, window: None };
        let mut found = Vec::with_capacity(places.len());
        for at in places {
            let Some(mark) = self.mark(at) else { break };
            let mut turns = Turns::after(id, Vec::new(), mark.start.counters);
            let mut from = mark.start.offset;
            while turns.past.is_empty() && from < self.end {
                let Some(next) = lines
                    .each(from, self.end, |offset, line| {
                        if !self.marks.is_late(offset) {
                            turns.push_at(offset, line);
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
            for (_, offset) in self.marks.late.iter().filter(|(late, _)| *late as usize == at) {
                lines
                    .each(*offset, offset + 1, |offset, line| {
                        turns.push_at(offset, line);
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
    store: &'a dyn Store,
    id: ThreadId,
    window: Option<loomd_store::Window>,
}

impl Lines<'_> {
    /// Hands over the lines of one window that begin at `from` or later and before `to`, until `take` wants no
    /// more. Gives the offset to go on from; `None` at the end of the rollout.
    async fn each(&mut self, from: u64, to: u64, mut take: impl FnMut(u64, &[u8]) -> bool) -> Result<Option<u64>> {
        if self.window.as_ref().is_none_or(|window| from < window.start || from >= window.end()) {
            self.window = Some(self.store.read(self.id, from, PIECE).await?);
        }
        let Some(window) = self.window.as_ref().filter(|window| !window.bytes.is_empty()) else { return Ok(None) };
        let skipped = usize::try_from(from - window.start).unwrap_or(usize::MAX);
        for (offset, line) in loomd_store::rollout::whole_lines(window.bytes.get(skipped..).unwrap_or_default()) {
            let offset = from + offset as u64;
            if offset >= to {
                return Ok(None);
            }
            if !take(offset, line) {
                return Ok(Some(offset + line.len() as u64 + 1));
            }
        }
        Ok(Some(window.end()))
    }
}

/// Of the line that ends at an offset.
async fn last_line_hash(store: &dyn Store, id: ThreadId, offset: u64) -> Result<u64> {
    let window = store.read_back(id, Some(offset), 1).await?;
    Ok(hash_bytes(&window.bytes) ^ window.end())
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
    use std::io::Write;

    use loomd_store::{FileStore, Options};
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

    async fn check(store: &FileStore, outline: &mut Outline) {
        outline.extend(store, id()).await.unwrap();
        let all = history::turns(store, id(), true).await.unwrap();
        assert_eq!(outline.len(), all.len());
        if !outline.is_usable() {
            return;
        }
        assert_eq!(outline.read(store, id(), 0..all.len()).await.unwrap().as_ref(), Some(&all));
        for (at, turn) in all.iter().enumerate().rev() {
            let alone = outline.read(store, id(), at..at + 1).await.unwrap().unwrap();
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
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("rollout.jsonl");
            std::fs::write(&path, meta()).unwrap();
            let store = FileStore::new(Options { home: home.path().to_owned(), sqlite_home: None });
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                store.adopt(&path).await.unwrap();
                let mut outline = Outline::default();
                for piece in pieces {
                    let mut file = std::fs::File::options().append(true).open(&path).unwrap();
                    file.write_all(piece.concat().as_bytes()).unwrap();
                    check(&store, &mut outline).await;
                    // As after a restart.
                    let last_line = last_line_hash(&store, id(), outline.read.offset).await.unwrap();
                    store.keep_derived(id(), outline.encode(last_line)).await.unwrap();
                    outline = Outline::kept(&store, id()).await.unwrap();
                    check(&store, &mut outline).await;
                }
                check(&store, &mut Outline::default()).await;
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
        store.adopt(&path).await.unwrap();
        let mut outline = Outline::default();
        check(&store, &mut outline).await;
        std::fs::write(&path, file(&["six", "two"])).unwrap();
        outline.extend(&store, id()).await.unwrap();
        assert_eq!(outline.read(&store, id(), 0..1).await.unwrap(), None);
        let last_line = last_line_hash(&store, id(), outline.read.offset).await.unwrap();
        store.keep_derived(id(), outline.encode(last_line)).await.unwrap();
        assert!(Outline::kept(&store, id()).await.is_some());
        std::fs::write(&path, file(&["six", "ten", "more"])).unwrap();
        assert!(Outline::kept(&store, id()).await.is_none());
        std::fs::write(&path, file(&["six"])).unwrap();
        assert!(Outline::kept(&store, id()).await.is_none());
        check(&store, &mut outline).await;
    }
}
