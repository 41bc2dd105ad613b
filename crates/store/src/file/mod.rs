//! The default store: rollout files in a home folder, shared with other programs, and an index beside them. Archiving,
//! deleting, listing and waiting for the disk are done on blocking threads; `open_thread.rs` is how records are read
//! and written.

mod archive;
mod background;
mod descriptors;
mod git_patches;
mod index;
mod journal;
mod lease;
mod names;
mod open_thread;
mod read;
mod search;
mod side_file;
mod turn_notes;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use jiff::Timestamp;
use parking_lot::Mutex;
use uuid::Uuid;

use crate::error::{Error, Result, place};
use crate::path::{ARCHIVED, RolloutName};
use crate::search::{SearchPage, SearchQuery};
use crate::store::{Answer, FileBacked, Reader, Store, TurnNotes};
use crate::{GitPatch, ListQuery, Page, StoredThread, ThreadId, WorkStore, head};
use git_patches::GitPatches;
use index::Index;
use journal::Expect;
use lease::FileLease;
use open_thread::{FileReader, OpenThread};
use turn_notes::FileTurnNotes;

/// Threads in the files of one home. Cheap to clone and to open: nothing is read before it is needed.
#[derive(Clone)]
pub struct FileStore(Arc<Inner>);

/// Where a [`FileStore`] keeps things.
#[derive(Clone, Debug)]
pub struct Options {
    /// The home folder.
    pub home: PathBuf,
    /// The folder of the index; the home when `None`.
    pub sqlite_home: Option<PathBuf>,
}

struct Inner {
    home: PathBuf,
    sqlite_home: PathBuf,
    /// Opened when first needed.
    index: Mutex<Option<Index>>,
    /// How many operations wait for the index; the background work steps aside for them.
    waiting: AtomicUsize,
    indexing: AtomicBool,
    /// Files that this process changed since the index was last used.
    touched: Mutex<HashSet<PathBuf>>,
    git: Mutex<GitPatches>,
    work: WorkStore,
    turn_notes: FileTurnNotes,
    /// Threads that have readers.
    open: Mutex<HashMap<ThreadId, Weak<OpenThread>>>,
}

/// The name of the database of goals and queues.
const WORK: &str = "loomd-work.sqlite";

/// Changed files to remember before the index is brought up to date.
const MAX_TOUCHED: usize = 256;

impl FileStore {
    /// A store on a home folder, which need not exist yet.
    pub fn new(options: Options) -> Self {
        descriptors::reserve();
        let home = options.home;
        let sqlite_home = options.sqlite_home.unwrap_or_else(|| home.clone());
        Self(Arc::new(Inner {
            work: WorkStore::at(sqlite_home.join(WORK)),
            turn_notes: FileTurnNotes::new(&home),
            sqlite_home,
            index: Mutex::new(None),
            waiting: AtomicUsize::new(0),
            indexing: AtomicBool::new(false),
            touched: Mutex::default(),
            git: Mutex::new(GitPatches::new(&home)),
            open: Mutex::default(),
            home,
        }))
    }

    /// Starts to bring the index up to date, if that is not being done. The work has a thread of its own,
    /// which ends with it; lists and lookups do not wait for it and start it themselves.
    pub fn start_indexing(&self) {
        self.0.start_indexing();
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Inner>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = Arc::clone(&self.0);
        off_thread(move || work(&inner)).await
    }
}

/// Does something on a blocking thread; without a runtime, here.
pub(crate) async fn off_thread<T: Send + 'static>(work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.map_err(|_| Error::Stopped)?,
        Err(_) => work(),
    }
}

impl Inner {
    fn find(self: &Arc<Self>, id: ThreadId, archived: Option<bool>) -> Result<StoredThread> {
        let mut thread = self.with_index(|index| index.find(id, archived))?;
        self.git.lock().fill(std::slice::from_mut(&mut thread))?;
        Ok(thread)
    }

    fn find_path(&self, id: ThreadId, archived: Option<bool>) -> Result<PathBuf> {
        self.with_index(|index| index.find(id, archived))?.path.ok_or(Error::NotFound { id })
    }

    fn with_index<T>(&self, operation: impl Fn(&mut Index) -> index::Result<T>) -> Result<T> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let mut index = self.index.lock();
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        let index = match &mut *index {
            Some(index) => index,
            none => none.insert(Index::open(&self.home, &self.sqlite_home)?),
        };
        let touched = std::mem::take(&mut *self.touched.lock());
        for path in &touched {
            index.run(|index| index.touch(path))?;
        }
        Ok(index.run(operation)?)
    }

    /// Takes note of a file that this process wrote, moved or deleted.
    fn touch(self: &Arc<Self>, path: &Path) {
        let count = {
            let mut touched = self.touched.lock();
            if !touched.contains(path) {
                touched.insert(path.to_owned());
            }
            touched.len()
        };
        if count > MAX_TOUCHED {
            self.start_indexing();
        }
    }

    /// The thread, if it has readers.
    fn opened(&self, id: ThreadId) -> Option<Arc<OpenThread>> {
        self.open.lock().get(&id)?.upgrade()
    }

    /// The thread, opened at a path unless it has readers.
    fn open_at(self: &Arc<Self>, id: ThreadId, path: PathBuf, expect: Expect) -> Arc<OpenThread> {
        let mut open = self.open.lock();
        if let Some(thread) = open.get(&id).and_then(Weak::upgrade) {
            return thread;
        }
        let thread = Arc::new(OpenThread::new(Arc::clone(self), id, path, expect));
        open.insert(id, Arc::downgrade(&thread));
        thread
    }

    /// The last reader of a thread is gone, unless it was opened again meanwhile.
    fn closed(&self, id: ThreadId) {
        let mut open = self.open.lock();
        if open.get(&id).is_some_and(|thread| thread.strong_count() == 0) {
            open.remove(&id);
        }
    }

    /// Forgets where a thread is: the next `open` looks for it anew.
    fn forget(&self, id: ThreadId) {
        self.open.lock().remove(&id);
    }

    fn moved(self: &Arc<Self>, id: ThreadId, from: &Path, to: &Path) {
        if let Some(open) = self.opened(id) {
            open.move_to(to);
        }
        self.touch(from);
        self.touch(to);
    }

    /// The right to move or delete a thread.
    fn lease(&self, id: ThreadId) -> Result<FileLease> {
        FileLease::take(&self.home, id, Uuid::now_v7())
    }

    fn archive(self: &Arc<Self>, id: ThreadId) -> Result<()> {
        let from = self.find_path(id, Some(false))?;
        let lease = self.lease(id)?;
        lease.check()?;
        let to = archive::archive(&self.home, &from, id)?;
        self.moved(id, &from, &to);
        Ok(())
    }

    fn unarchive(self: &Arc<Self>, id: ThreadId) -> Result<StoredThread> {
        let from = self.find_path(id, Some(true))?;
        let lease = self.lease(id)?;
        lease.check()?;
        let to = archive::unarchive(&self.home, &from, id)?;
        self.moved(id, &from, &to);
        self.find(id, Some(false))
    }

    fn delete(self: &Arc<Self>, id: ThreadId) -> Result<()> {
        let path = match self.opened(id) {
            Some(open) => open.path(),
            None => self.find_path(id, None)?,
        };
        let lease = self.lease(id)?;
        lease.check()?;
        archive::delete(&path)?;
        self.forget(id);
        self.touch(&path);
        // It can be made again, so that nothing depends on its being gone.
        _ = self.with_index(|index| index.drop_derived(id));
        lease.remove_file();
        Ok(())
    }

    /// Reads the head of a file that may be anywhere.
    fn adopt(self: &Arc<Self>, path: &Path) -> Result<(StoredThread, FileReader)> {
        let head = head::read(descriptors::open_file(path).map_err(Error::io(path))?).map_err(Error::io(path))?;
        let file = std::fs::metadata(path).map_err(Error::io(path))?;
        let Some(meta) = head.meta else {
            let place = place(path);
            return Err(if head.blank { Error::Empty { place } } else { Error::NoSessionMeta { place } });
        };
        let meta = head::slim(*meta);
        let modified = file.modified().ok().and_then(|time| Timestamp::try_from(time).ok());
        let mut thread = StoredThread {
            git_info: meta.git.as_ref().and_then(|git| git.to_wire()),
            name: self.with_index(|index| index.name(meta.id))?,
            meta,
            path: Some(path.to_owned()),
            archived: path.starts_with(self.home.join(ARCHIVED)),
            preview: head.preview,
            updated_at: modified.map_or(0, Timestamp::as_second),
            updated_ns: modified.and_then(|time| i64::try_from(time.as_nanosecond()).ok()).unwrap_or(0),
        };
        self.git.lock().fill(std::slice::from_mut(&mut thread))?;
        let open = self.open_at(thread.id(), path.to_owned(), Expect::Existing);
        open.adopt(path);
        Ok((thread, FileReader::new(open)))
    }

    fn list(self: &Arc<Self>, query: &ListQuery) -> Result<Page> {
        let mut page = self.with_index(|index| {
            let page = index.list(query)?;
            if !index.is_complete() || index.wants_sweep() {
                self.start_indexing();
            }
            Ok(page)
        })?;
        self.git.lock().fill(&mut page.threads)?;
        Ok(page)
    }
}

impl Store for FileStore {
    fn create(&self, id: ThreadId, created: Timestamp) -> Arc<dyn Reader> {
        let path = RolloutName::new(id, created).active_path(&self.0.home);
        Arc::new(FileReader::new(self.0.open_at(id, path, Expect::Any)))
    }

    fn open(&self, id: ThreadId) -> Answer<'_, Arc<dyn Reader>> {
        Box::pin(async move {
            let open = match self.0.opened(id) {
                Some(open) => open,
                None => {
                    let path = self.blocking(move |inner| inner.find_path(id, None)).await?;
                    self.0.open_at(id, path, Expect::Existing)
                }
            };
            Ok(Arc::new(FileReader::new(open)) as Arc<dyn Reader>)
        })
    }

    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread> {
        Box::pin(self.blocking(move |inner| inner.find(id, archived)))
    }

    fn list(&self, query: ListQuery) -> Answer<'_, Page> {
        Box::pin(self.blocking(move |inner| inner.list(&query)))
    }

    fn search(&self, query: SearchQuery) -> Answer<'_, SearchPage> {
        let cancelled = search::Cancel::default();
        let running = cancelled.clone();
        Box::pin(async move {
            // Dropped with the request: the search ends.
            let _cancel = cancelled;
            self.blocking(move |inner| inner.search(&query, &running)).await
        })
    }

    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>> {
        Box::pin(self.blocking(move |inner| inner.with_index(|index| index.name(id))))
    }

    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()> {
        let name = name.to_owned();
        Box::pin(self.blocking(move |inner| names::append(&inner.home, id, &name)))
    }

    fn archive(&self, id: ThreadId) -> Answer<'_, ()> {
        Box::pin(self.blocking(move |inner| inner.archive(id)))
    }

    fn unarchive(&self, id: ThreadId) -> Answer<'_, StoredThread> {
        Box::pin(self.blocking(move |inner| inner.unarchive(id)))
    }

    fn delete(&self, id: ThreadId) -> Answer<'_, ()> {
        Box::pin(async move {
            self.blocking(move |inner| inner.delete(id)).await?;
            self.0.turn_notes.remove(id).await?;
            self.0.work.forget(id).await
        })
    }

    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>> {
        Box::pin(self.blocking(move |inner| inner.git.lock().get(&id)))
    }

    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()> {
        let patch = patch.clone();
        Box::pin(self.blocking(move |inner| inner.git.lock().add(id, &patch)))
    }

    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(self.blocking(move |inner| inner.with_index(|index| index.derived(id))))
    }

    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(self.blocking(move |inner| inner.with_index(|index| index.keep_derived(id, &bytes))))
    }

    fn work(&self) -> &WorkStore {
        &self.0.work
    }

    fn turn_notes(&self) -> Option<&dyn TurnNotes> {
        Some(&self.0.turn_notes)
    }

    fn files(&self) -> Option<&dyn FileBacked> {
        Some(self)
    }
}

impl FileBacked for FileStore {
    fn path(&self, id: ThreadId) -> Option<PathBuf> {
        self.0.opened(id).map(|open| open.path())
    }

    fn adopt<'a>(&'a self, path: &'a Path) -> Answer<'a, (StoredThread, Arc<dyn Reader>)> {
        let path = path.to_owned();
        Box::pin(async move {
            let (thread, reader) = self.blocking(move |inner| inner.adopt(&path)).await?;
            Ok((thread, Arc::new(reader) as Arc<dyn Reader>))
        })
    }
}
