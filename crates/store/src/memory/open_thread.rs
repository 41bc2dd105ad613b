//! Readers and writers of a thread in memory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use uuid::Uuid;

use super::{Content, MemoryStore, ThreadLog};
use crate::error::{Error, Result};
use crate::rollout::whole_lines;
use crate::store::{Answer, Appended, Durability, Lease, Reader, Writer};
use crate::{Batch, Position, ThreadId, Window};

pub(super) struct MemoryReader {
    store: MemoryStore,
    thread: ThreadId,
    id: Uuid,
    /// Whether nothing has been appended to the new thread yet.
    is_new: Arc<AtomicBool>,
}

impl MemoryReader {
    pub(super) fn new(store: MemoryStore, thread: ThreadId, is_new: bool) -> Self {
        Self { store, thread, id: Uuid::now_v7(), is_new: Arc::new(AtomicBool::new(is_new)) }
    }

    fn records<'a>(&self, content: &'a Content) -> Result<&'a [Box<[u8]>]> {
        match content.threads.get(&self.thread) {
            Some(log) => Ok(&log.records),
            None if self.is_new.load(Ordering::Relaxed) => Ok(&[]),
            None => Err(Error::NotFound { id: self.thread }),
        }
    }
}

impl Reader for MemoryReader {
    fn id(&self) -> ThreadId {
        self.thread
    }

    fn end(&self) -> Answer<'_, Position> {
        self.store.answer(|content| Ok(position(self.records(content)?.len())))
    }

    fn records_after(&self, position: Position, limit: usize) -> Answer<'_, Window> {
        self.store.answer(|content| {
            let records = self.records(content)?;
            let start = index(position).min(records.len());
            let count = fitting(records[start..].iter(), limit);
            Ok(window(records, start, start + count))
        })
    }

    fn records_before(&self, position: Option<Position>, limit: usize) -> Answer<'_, Window> {
        self.store.answer(|content| {
            let records = self.records(content)?;
            let end = position.map_or(records.len(), index).min(records.len());
            let count = fitting(records[..end].iter().rev(), limit);
            Ok(window(records, end - count, end))
        })
    }

    fn writer(&self) -> Answer<'_, Box<dyn Writer>> {
        self.store.answer(|content| {
            let lease = content.leases.entry(self.thread).or_default();
            if lease.held {
                return Err(Error::Held { id: self.thread, pid: Some(std::process::id()) });
            }
            lease.take(self.id);
            let (token, epoch) = (lease.token, lease.epoch);
            let (store, is_new) = (self.store.clone(), Arc::clone(&self.is_new));
            Ok(Box::new(MemoryWriter { store, thread: self.thread, is_new, token, epoch }) as Box<dyn Writer>)
        })
    }
}

/// How many of the records fit into a window.
fn fitting<'a>(records: impl Iterator<Item = &'a Box<[u8]>>, limit: usize) -> usize {
    let mut size = 0;
    let fits = |record: &&Box<[u8]>| {
        let first = size == 0;
        size += record.len() + 1;
        first || size <= limit
    };
    records.take_while(fits).count()
}

fn window(records: &[Box<[u8]>], start: usize, end: usize) -> Window {
    Window::of_records(start as u64, records.len() as u64, records[start..end].iter().map(|record| &**record))
}

fn position(index: usize) -> Position {
    Position::new(index as u64)
}

fn index(position: Position) -> usize {
    usize::try_from(position.get()).unwrap_or(usize::MAX)
}

struct MemoryWriter {
    store: MemoryStore,
    thread: ThreadId,
    is_new: Arc<AtomicBool>,
    token: u64,
    epoch: u64,
}

impl MemoryWriter {
    fn check(&self, content: &Content) -> Result<()> {
        match content.leases.get(&self.thread) {
            Some(lease) if lease.held && lease.token == self.token => Ok(()),
            _ => Err(Error::StaleLease { id: self.thread }),
        }
    }
}

impl Lease for MemoryWriter {
    fn epoch(&self) -> u64 {
        self.epoch
    }

    fn renew(&self) -> Answer<'_, ()> {
        self.store.answer(|content| self.check(content))
    }
}

impl Writer for MemoryWriter {
    fn append(&mut self, batch: Batch, _: Durability) -> Answer<'_, Appended> {
        self.store.answer(|content| {
            self.check(content)?;
            let is_new = self.is_new.swap(false, Ordering::Relaxed);
            if !is_new && !content.threads.contains_key(&self.thread) {
                return Err(Error::NotFound { id: self.thread });
            }
            let new = || ThreadLog { records: Vec::new(), archived: false, updated: Timestamp::now() };
            let log = content.threads.entry(self.thread).or_insert_with(new);
            let start = log.records.len();
            log.records.extend(whole_lines(batch.bytes()).map(|(_, line)| line.into()));
            log.updated = Timestamp::now();
            Ok(Appended { start: position(start), end: position(log.records.len()) })
        })
    }
}

impl Drop for MemoryWriter {
    fn drop(&mut self) {
        if let Some(lease) = self.store.0.lock().leases.get_mut(&self.thread).filter(|lease| lease.token == self.token)
        {
            lease.held = false;
        }
    }
}
