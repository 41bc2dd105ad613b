//! A store in memory, for tests. It does what the file store does, under the same suite; nothing outlives the process.
//!
//! Positions count records, so that code that takes them for byte offsets fails with this store.

mod list;
mod open_thread;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::error::{Error, Result};
use crate::search::{SearchPage, SearchQuery};
use crate::store::{Answer, Reader, Store, TurnNotes};
use crate::{GitPatch, ListQuery, Page, StoredThread, ThreadId, WorkStore, head};
use open_thread::MemoryReader;

/// Threads in memory. Clones share them.
#[derive(Clone, Default)]
pub struct MemoryStore(Arc<Mutex<Content>>, WorkStore);

/// What a store holds.
#[derive(Default)]
struct Content {
    threads: HashMap<ThreadId, ThreadLog>,
    leases: HashMap<ThreadId, LeaseState>,
    names: HashMap<ThreadId, String>,
    patches: HashMap<ThreadId, GitPatch>,
    derived: HashMap<ThreadId, Vec<u8>>,
    turn_notes: BTreeMap<ThreadId, Vec<u8>>,
}

/// A stored thread.
struct ThreadLog {
    /// Encoded records without line breaks.
    records: Vec<Box<[u8]>>,
    archived: bool,
    updated: Timestamp,
}

/// The lease of a thread.
#[derive(Clone, Copy, Default)]
struct LeaseState {
    /// Grows with every holder.
    token: u64,
    epoch: u64,
    /// The reader that took the lease last.
    reader: Option<Uuid>,
    held: bool,
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a thread's lease away from its holder, as another process would that finds it expired.
    pub fn revoke_lease(&self, id: ThreadId) {
        if let Some(lease) = self.0.lock().leases.get_mut(&id) {
            (lease.held, lease.token) = (false, lease.token + 1);
        }
    }

    /// Does something with the content, at once.
    fn answer<'a, T: Send + 'a>(&self, work: impl FnOnce(&mut Content) -> Result<T>) -> Answer<'a, T> {
        Box::pin(std::future::ready(work(&mut self.0.lock())))
    }
}

impl Content {
    /// A stored thread without its records.
    fn find(&self, id: ThreadId, archived: Option<bool>) -> Result<StoredThread> {
        let log = self.threads.get(&id).filter(|log| archived.is_none_or(|archived| log.archived == archived));
        log.map_or(Err(Error::NotFound { id }), |log| self.describe(id, log))
    }

    fn describe(&self, id: ThreadId, log: &ThreadLog) -> Result<StoredThread> {
        let lines: Vec<&[u8]> = log.records.iter().map(|record| &**record).collect();
        let place = format!("memory:{id}");
        let head = head::read(&*lines.join(&b'\n')).map_err(Error::io(&place))?;
        let Some(meta) = head.meta else {
            return Err(if head.blank { Error::Empty { place } } else { Error::NoSessionMeta { place } });
        };
        let meta = head::slim(*meta);
        let git_info = meta.git.as_ref().and_then(|git| git.to_wire());
        Ok(StoredThread {
            path: None,
            archived: log.archived,
            preview: head.preview,
            updated_at: log.updated.as_second(),
            updated_ns: i64::try_from(log.updated.as_nanosecond()).unwrap_or(i64::MAX),
            git_info: match self.patches.get(&id) {
                Some(patch) => patch.apply(git_info),
                None => git_info,
            },
            name: self.name(id),
            meta,
        })
    }

    /// A name without white space around it. A blank one counts as none.
    fn name(&self, id: ThreadId) -> Option<String> {
        self.names.get(&id).map(|name| name.trim().to_owned()).filter(|name| !name.is_empty())
    }

    /// The log of a thread that is archived or not, for a change that needs its lease.
    fn unleased(&mut self, id: ThreadId, archived: Option<bool>) -> Result<&mut ThreadLog> {
        self.find(id, archived)?;
        if self.leases.get(&id).is_some_and(|lease| lease.held) {
            return Err(Error::Held { id, pid: Some(std::process::id()) });
        }
        // The change takes the lease for its length, as another holder would.
        self.leases.entry(id).or_default().take(Uuid::now_v7());
        self.leases.entry(id).and_modify(|lease| lease.held = false);
        self.threads.get_mut(&id).ok_or(Error::NotFound { id })
    }
}

impl LeaseState {
    fn take(&mut self, reader: Uuid) {
        if self.reader != Some(reader) {
            self.epoch += 1;
        }
        *self = Self { token: self.token + 1, epoch: self.epoch, reader: Some(reader), held: true };
    }
}

impl Store for MemoryStore {
    fn create(&self, id: ThreadId, _: Timestamp) -> Arc<dyn Reader> {
        Arc::new(MemoryReader::new(self.clone(), id, true))
    }

    fn open(&self, id: ThreadId) -> Answer<'_, Arc<dyn Reader>> {
        let found = self.0.lock().find(id, None);
        let reader = || Arc::new(MemoryReader::new(self.clone(), id, false)) as Arc<dyn Reader>;
        Box::pin(std::future::ready(found.map(|_| reader())))
    }

    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread> {
        self.answer(|content| content.find(id, archived))
    }

    fn list(&self, query: ListQuery) -> Answer<'_, Page> {
        self.answer(|content| Ok(content.list(&query)))
    }

    fn search(&self, query: SearchQuery) -> Answer<'_, SearchPage> {
        self.answer(|content| Ok(content.search(&query)))
    }

    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>> {
        self.answer(|content| Ok(content.name(id)))
    }

    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()> {
        self.answer(|content| {
            content.names.insert(id, name.to_owned());
            Ok(())
        })
    }

    fn archive(&self, id: ThreadId) -> Answer<'_, ()> {
        self.answer(|content| {
            content.unleased(id, Some(false))?.archived = true;
            Ok(())
        })
    }

    fn unarchive(&self, id: ThreadId) -> Answer<'_, StoredThread> {
        self.answer(|content| {
            let log = content.unleased(id, Some(true))?;
            (log.archived, log.updated) = (false, Timestamp::now());
            content.find(id, Some(false))
        })
    }

    fn delete(&self, id: ThreadId) -> Answer<'_, ()> {
        let deleted = self.answer(|content| {
            content.unleased(id, None)?;
            content.threads.remove(&id);
            content.derived.remove(&id);
            content.turn_notes.remove(&id);
            Ok(())
        });
        Box::pin(async move {
            deleted.await?;
            self.1.forget(id).await
        })
    }

    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>> {
        self.answer(|content| Ok(content.patches.get(&id).cloned()))
    }

    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()> {
        self.answer(|content| {
            content.patches.entry(id).or_default().merge(patch);
            Ok(())
        })
    }

    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>> {
        self.answer(|content| Ok(content.derived.get(&id).cloned()))
    }

    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()> {
        self.answer(|content| {
            content.derived.insert(id, bytes);
            Ok(())
        })
    }

    fn work(&self) -> &WorkStore {
        &self.1
    }

    fn turn_notes(&self) -> Option<&dyn TurnNotes> {
        Some(self)
    }
}

impl TurnNotes for MemoryStore {
    fn replace(&self, id: ThreadId, lines: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(async move {
            self.0.lock().turn_notes.insert(id, lines);
            Ok(())
        })
    }

    fn add(&self, id: ThreadId, line: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(async move {
            let mut content = self.0.lock();
            let notes = content.turn_notes.get_mut(&id).ok_or(Error::NotFound { id })?;
            notes.extend(line);
            Ok(())
        })
    }

    fn read(&self, id: ThreadId) -> Answer<'_, Vec<u8>> {
        Box::pin(async move { Ok(self.0.lock().turn_notes.get(&id).cloned().unwrap_or_default()) })
    }

    fn remove(&self, id: ThreadId) -> Answer<'_, ()> {
        Box::pin(async move {
            self.0.lock().turn_notes.remove(&id);
            Ok(())
        })
    }

    fn threads(&self) -> Answer<'_, Vec<ThreadId>> {
        Box::pin(async move { Ok(self.0.lock().turn_notes.keys().copied().collect()) })
    }
}
