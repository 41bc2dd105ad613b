//! A file store whose appends fail while a flag is set.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use loomd_store::search::{SearchPage, SearchQuery};
use loomd_store::{
    Answer, Appended, Batch, Durability, Error, Failure, FileBacked, FileStore, GitPatch, Lease, ListQuery, Page,
    Position, Reader, Store, StoredThread, ThreadId, TurnNotes, Window, WorkStore, Writer,
};

pub struct FaultyStore {
    pub files: FileStore,
    /// Appends fail as if the disk were full.
    pub full: Arc<AtomicBool>,
    /// Appends fail as if the connection to a database were lost.
    pub is_away: Arc<AtomicBool>,
}

impl FaultyStore {
    fn faulty(&self, reader: Arc<dyn Reader>) -> Arc<dyn Reader> {
        Arc::new(FaultyReader { reader, full: Arc::clone(&self.full), is_away: Arc::clone(&self.is_away) })
    }
}

struct FaultyReader {
    reader: Arc<dyn Reader>,
    full: Arc<AtomicBool>,
    is_away: Arc<AtomicBool>,
}

struct FaultyWriter {
    writer: Box<dyn Writer>,
    full: Arc<AtomicBool>,
    is_away: Arc<AtomicBool>,
}

impl Writer for FaultyWriter {
    fn append(&mut self, batch: Batch, durability: Durability) -> Answer<'_, Appended> {
        let failure = match (self.full.load(Ordering::Relaxed), self.is_away.load(Ordering::Relaxed)) {
            (true, _) => Some((Failure::Full, "no storage space")),
            (_, true) => Some((Failure::Unreachable, "the connection was lost")),
            _ => None,
        };
        if let Some((failure, reason)) = failure {
            let error = Error::Storage { place: "disk".into(), failure, reason: reason.into() };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.writer.append(batch, durability)
    }
}

impl Lease for FaultyWriter {
    fn epoch(&self) -> u64 {
        self.writer.epoch()
    }

    fn renew(&self) -> Answer<'_, ()> {
        self.writer.renew()
    }
}

impl Reader for FaultyReader {
    fn id(&self) -> ThreadId {
        self.reader.id()
    }

    fn end(&self) -> Answer<'_, Position> {
        self.reader.end()
    }

    fn records_after(&self, position: Position, limit: usize) -> Answer<'_, Window> {
        self.reader.records_after(position, limit)
    }

    fn records_before(&self, position: Option<Position>, limit: usize) -> Answer<'_, Window> {
        self.reader.records_before(position, limit)
    }

    fn writer(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async move {
            let writer = FaultyWriter {
                writer: self.reader.writer().await?,
                full: Arc::clone(&self.full),
                is_away: Arc::clone(&self.is_away),
            };
            Ok(Box::new(writer) as Box<dyn Writer>)
        })
    }
}

impl Store for FaultyStore {
    fn turn_notes(&self) -> Option<&dyn TurnNotes> {
        self.files.turn_notes()
    }

    fn create(&self, id: ThreadId, created: Timestamp) -> Arc<dyn Reader> {
        self.faulty(self.files.create(id, created))
    }

    fn open(&self, id: ThreadId) -> Answer<'_, Arc<dyn Reader>> {
        Box::pin(async move { Ok(self.faulty(self.files.open(id).await?)) })
    }

    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread> {
        self.files.find(id, archived)
    }

    fn list(&self, query: ListQuery) -> Answer<'_, Page> {
        self.files.list(query)
    }

    fn search(&self, query: SearchQuery) -> Answer<'_, SearchPage> {
        self.files.search(query)
    }

    fn work(&self) -> &WorkStore {
        self.files.work()
    }

    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>> {
        self.files.name(id)
    }

    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()> {
        self.files.rename(id, name)
    }

    fn archive(&self, id: ThreadId) -> Answer<'_, ()> {
        self.files.archive(id)
    }

    fn unarchive(&self, id: ThreadId) -> Answer<'_, StoredThread> {
        self.files.unarchive(id)
    }

    fn delete(&self, id: ThreadId) -> Answer<'_, ()> {
        self.files.delete(id)
    }

    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>> {
        self.files.git_patch(id)
    }

    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()> {
        self.files.patch_git(id, patch)
    }

    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>> {
        self.files.derived(id)
    }

    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()> {
        self.files.keep_derived(id, bytes)
    }

    fn files(&self) -> Option<&dyn FileBacked> {
        Some(&self.files)
    }
}
