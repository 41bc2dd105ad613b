//! The embedded store: rollouts in a home folder with an index beside them. What takes microseconds (a
//! write, a rename, a lock) is done where it is asked for, so that giving up on the answer cannot let it
//! happen after the lease is gone; reading, searching and waiting for the disk happen off the async threads.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use jiff::Timestamp;
use parking_lot::Mutex;

use crate::descriptors;
use crate::error::{Error, Result};
use crate::git_info::GitPatches;
use crate::index::{Index, Step, slim};
use crate::journal::{self, Appended, Durability, Expect, Extent};
use crate::names;
use crate::path::{ARCHIVED, RolloutName};
use crate::store::{Answer, Store};
use crate::{Batch, GitPatch, Lease, ListQuery, Page, StoredThread, ThreadId, Window, archive, head, window};

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
    /// How many want the index; the background work steps aside for them.
    waiting: AtomicUsize,
    indexing: AtomicBool,
    /// Files that this process changed since the index was last used.
    touched: Mutex<HashSet<PathBuf>>,
    git: Mutex<GitPatches>,
    /// Threads in use.
    open: Mutex<HashMap<ThreadId, Arc<Mutex<OpenThread>>>>,
}

/// What is kept in memory for a thread in use.
struct OpenThread {
    path: PathBuf,
    known: Option<Extent>,
    expect: Expect,
}

/// Changed files to remember before the index is told.
const MAX_TOUCHED: usize = 256;
/// How long the background work pauses while somebody waits for the index.
const STEP_ASIDE: Duration = Duration::from_millis(1);
/// How long a look at all files pauses between two of its steps.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);
/// A client that starts a server mostly asks for a list at once, and is not to wait behind work that can.
const FIRST_STEP: Duration = Duration::from_millis(50);

impl FileStore {
    /// A store on a home folder, which need not exist yet.
    pub fn new(options: Options) -> Self {
        descriptors::reserve();
        let home = options.home;
        Self(Arc::new(Inner {
            sqlite_home: options.sqlite_home.unwrap_or_else(|| home.clone()),
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

    async fn off_thread<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Arc<Inner>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let inner = self.0.clone();
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => runtime.spawn_blocking(move || work(&inner)).await.map_err(|_| Error::Stopped)?,
            Err(_) => work(&inner),
        }
    }

    /// The thread in use, looked up when it is not.
    async fn opened(&self, id: ThreadId) -> Result<Arc<Mutex<OpenThread>>> {
        if let Some(open) = self.0.open.lock().get(&id) {
            return Ok(open.clone());
        }
        let thread = self.off_thread(move |inner| inner.find(id, None)).await?;
        Ok(self.0.remember(id, thread.path, Expect::Existing))
    }

    async fn read_file<T: Send + 'static>(
        &self,
        id: ThreadId,
        read: impl Fn(&mut File) -> io::Result<T> + Send + 'static,
    ) -> Result<T> {
        let path = self.opened(id).await?.lock().path.clone();
        self.off_thread(move |inner| {
            let opened = match descriptors::open_file(&path) {
                // Moved by another process, for instance to the archive.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let moved = inner.find(id, None)?.path;
                    inner.move_to(id, &moved);
                    descriptors::open_file(&moved)
                }
                opened => opened,
            };
            opened.and_then(|mut file| read(&mut file)).map_err(Error::io(&path))
        })
        .await
    }
}

impl Inner {
    fn find(self: &Arc<Self>, id: ThreadId, archived: Option<bool>) -> Result<StoredThread> {
        let mut thread = self.with_index(|index| index.find(id, archived))?;
        self.decorate(std::slice::from_mut(&mut thread))?;
        Ok(thread)
    }

    fn decorate(&self, threads: &mut [StoredThread]) -> Result<()> {
        self.git.lock().fill(threads)
    }

    fn with_index<T>(&self, operation: impl Fn(&mut Index) -> Result<T>) -> Result<T> {
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
        index.run(operation)
    }

    fn start_indexing(self: &Arc<Self>) {
        if self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::downgrade(self);
        let started =
            std::thread::Builder::new().name("thread-index".into()).spawn(move || index_in_background(&inner));
        if let Err(error) = started {
            tracing::warn!(%error, "the thread index is brought up to date only as far as lists need it");
            self.indexing.store(false, Ordering::Release);
        }
    }

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

    fn remember(&self, id: ThreadId, path: PathBuf, expect: Expect) -> Arc<Mutex<OpenThread>> {
        let mut open = self.open.lock();
        let thread = open.entry(id).or_insert_with(|| Arc::new(Mutex::new(OpenThread { path, known: None, expect })));
        thread.clone()
    }

    fn move_to(&self, id: ThreadId, path: &Path) {
        if let Some(open) = self.open.lock().get(&id) {
            open.lock().path = path.to_owned();
        }
    }

    fn moved(self: &Arc<Self>, id: ThreadId, from: &Path, to: &Path) {
        self.move_to(id, to);
        self.touch(from);
        self.touch(to);
    }

    /// Reads the head of a file that may be anywhere.
    fn adopt(&self, path: &Path) -> Result<StoredThread> {
        let head = head::read(path).map_err(Error::io(path))?;
        let file = std::fs::metadata(path).map_err(Error::io(path))?;
        let Some(meta) = head.meta else {
            let path = path.to_owned();
            return Err(if head.blank { Error::Empty { path } } else { Error::NoSessionMeta { path } });
        };
        let meta = slim(*meta);
        let mut thread = StoredThread {
            git_info: meta.git.as_ref().and_then(|git| git.to_wire()),
            meta,
            path: path.to_owned(),
            archived: path.starts_with(self.home.join(ARCHIVED)),
            preview: head.preview,
            updated_at: file
                .modified()
                .ok()
                .and_then(|time| Timestamp::try_from(time).ok())
                .map_or(0, Timestamp::as_second),
            size: file.len(),
            name: None,
        };
        self.with_index(|index| index.name(thread.id())).map(|name| thread.name = name)?;
        self.decorate(std::slice::from_mut(&mut thread))?;
        let open = self.remember(thread.id(), thread.path.clone(), Expect::Existing);
        let mut open = open.lock();
        if open.path != thread.path {
            *open = OpenThread { path: thread.path.clone(), known: None, expect: Expect::Existing };
        }
        Ok(thread)
    }

    fn append(self: &Arc<Self>, lease: &Lease, open: &Mutex<OpenThread>, batch: &Batch) -> Result<Appended> {
        let mut open = open.lock();
        lease.check()?;
        match journal::append(&open.path, batch, open.known, open.expect, Durability::Flushed) {
            Ok(appended) => {
                open.known = Some(appended.extent);
                open.expect = Expect::Existing;
                self.touch(&open.path);
                Ok(appended)
            }
            Err(Error::Io { source, .. })
                if source.kind() == io::ErrorKind::NotFound && open.expect == Expect::Existing =>
            {
                self.open.lock().remove(&lease.id());
                Err(Error::NotFound { id: lease.id() })
            }
            Err(error) => Err(error),
        }
    }
}

fn index_in_background(inner: &Weak<Inner>) {
    std::thread::sleep(FIRST_STEP);
    while let Some(inner) = inner.upgrade() {
        if inner.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(STEP_ASIDE);
            continue;
        }
        match inner.with_index(Index::step) {
            Ok(Step::More) => {}
            // Nobody waits for this: it takes a small part of one processor, however many threads there are.
            Ok(Step::Sweeping) => {
                drop(inner);
                std::thread::sleep(SWEEP_PAUSE);
            }
            done => {
                if let Err(error) = done {
                    tracing::warn!(%error, "the thread index could not be brought up to date");
                }
                inner.indexing.store(false, Ordering::Release);
                return;
            }
        }
    }
}

/// Waits until a file, and that there is such a file, is on the disk.
fn sync(path: &Path, is_new: bool) -> Result<()> {
    descriptors::open_file(path).and_then(|file| file.sync_data()).map_err(Error::io(path))?;
    match path.parent().filter(|_| is_new) {
        Some(folder) => {
            descriptors::open(|| File::open(folder)).and_then(|folder| folder.sync_all()).map_err(Error::io(folder))
        }
        None => Ok(()),
    }
}

impl Store for FileStore {
    fn place(&self, id: ThreadId, created: Timestamp) -> PathBuf {
        let path = RolloutName::new(id, created).active_path(&self.0.home);
        self.0.remember(id, path, Expect::Any).lock().path.clone()
    }

    fn adopt<'a>(&'a self, path: &'a Path) -> Answer<'a, StoredThread> {
        let path = path.to_owned();
        Box::pin(self.off_thread(move |inner| inner.adopt(&path)))
    }

    fn release(&self, id: ThreadId) {
        self.0.open.lock().remove(&id);
    }

    fn lease(&self, id: ThreadId) -> Answer<'_, Lease> {
        Box::pin(async move { Lease::take(&self.0.home, id) })
    }

    fn append<'a>(&'a self, lease: &'a Lease, batch: &'a Batch, durability: Durability) -> Answer<'a, Appended> {
        Box::pin(async move {
            let open = self.opened(lease.id()).await?;
            let appended = self.0.append(lease, &open, batch)?;
            if durability == Durability::Synced {
                let path = open.lock().path.clone();
                let is_new = appended.start == 0;
                self.off_thread(move |_| sync(&path, is_new)).await?;
            }
            Ok(appended)
        })
    }

    fn extent(&self, id: ThreadId) -> Answer<'_, Extent> {
        Box::pin(async move {
            let open = self.opened(id).await?;
            let known = open.lock().known;
            let measured = self.read_file(id, move |file| journal::measure(file, known)).await?;
            let mut open = open.lock();
            // An append that came in between knows better.
            if open.known == known {
                open.known = Some(measured.whole);
            }
            Ok(measured.whole)
        })
    }

    fn read(&self, id: ThreadId, from: u64, limit: usize) -> Answer<'_, Window> {
        Box::pin(self.read_file(id, move |file| window::forward(file, from, limit)))
    }

    fn read_back(&self, id: ThreadId, to: Option<u64>, limit: usize) -> Answer<'_, Window> {
        Box::pin(self.read_file(id, move |file| window::backward(file, to, limit)))
    }

    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>> {
        Box::pin(self.off_thread(move |inner| inner.with_index(|index| index.derived(id))))
    }

    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()> {
        Box::pin(self.off_thread(move |inner| inner.with_index(|index| index.keep_derived(id, &bytes))))
    }

    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread> {
        Box::pin(self.off_thread(move |inner| inner.find(id, archived)))
    }

    fn list(&self, query: ListQuery) -> Answer<'_, Page> {
        Box::pin(self.off_thread(move |inner| {
            let mut page = inner.with_index(|index| {
                let page = index.list(&query)?;
                if !index.is_complete() || index.wants_sweep() {
                    inner.start_indexing();
                }
                Ok(page)
            })?;
            inner.decorate(&mut page.threads)?;
            Ok(page)
        }))
    }

    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>> {
        Box::pin(self.off_thread(move |inner| inner.with_index(|index| index.name(id))))
    }

    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()> {
        let name = name.to_owned();
        Box::pin(self.off_thread(move |inner| names::append(&inner.home, id, &name)))
    }

    fn archive<'a>(&'a self, lease: &'a Lease) -> Answer<'a, PathBuf> {
        Box::pin(async move {
            let id = lease.id();
            let from = self.off_thread(move |inner| inner.find(id, Some(false))).await?.path;
            lease.check()?;
            let to = archive::archive(&self.0.home, &from, id)?;
            self.0.moved(id, &from, &to);
            Ok(to)
        })
    }

    fn unarchive<'a>(&'a self, lease: &'a Lease) -> Answer<'a, StoredThread> {
        Box::pin(async move {
            let id = lease.id();
            let from = self.off_thread(move |inner| inner.find(id, Some(true))).await?.path;
            lease.check()?;
            let to = archive::unarchive(&self.0.home, &from, id)?;
            self.0.moved(id, &from, &to);
            self.off_thread(move |inner| inner.find(id, Some(false))).await
        })
    }

    fn delete<'a>(&'a self, lease: &'a Lease) -> Answer<'a, ()> {
        Box::pin(async move {
            let path = self.opened(lease.id()).await?.lock().path.clone();
            lease.check()?;
            archive::delete(&path)?;
            self.0.open.lock().remove(&lease.id());
            self.0.touch(&path);
            let id = lease.id();
            // It can be made again, so that nothing depends on its being gone.
            _ = self.off_thread(move |inner| inner.with_index(|index| index.drop_derived(id))).await;
            lease.forget();
            Ok(())
        })
    }

    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>> {
        Box::pin(self.off_thread(move |inner| inner.git.lock().get(&id)))
    }

    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()> {
        let patch = patch.clone();
        Box::pin(self.off_thread(move |inner| inner.git.lock().add(id, &patch)))
    }
}
