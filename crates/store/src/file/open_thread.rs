//! A thread that is open in a [`FileStore`](super::FileStore): where its file is, how much of it is known, and its readers
//! and writers.
//!
//! What takes microseconds (writing a small batch, taking a lease, looking at a length) is done where it is called: a hop
//! to a blocking thread costs several times as much. Reading, large batches and waiting for the disk are done on
//! blocking threads.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use super::journal::{self, Expect};
use super::lease::FileLease;
use super::{Inner, descriptors, off_thread, read};
use crate::error::{Error, Failure, Result};
use crate::store::{Answer, Appended, Durability, Lease, Reader, Writer};
use crate::{Batch, Position, ThreadId, Window};

/// The largest batch that is written on the calling thread. It covers nearly all that a turn writes at a time, and is
/// copied into the page cache in about the time that a hop to another thread takes.
const LARGEST_INLINE: usize = 64 * 1024;

/// What the readers and writers of one thread share.
pub(super) struct OpenThread {
    store: Arc<Inner>,
    id: ThreadId,
    file: Mutex<RolloutFile>,
    /// Held for the length of an append. It is only ever contended after a caller has given up on an append that goes on
    /// on a blocking thread.
    appending: Arc<tokio::sync::Mutex<()>>,
}

/// The file of an open thread.
#[derive(Clone)]
struct RolloutFile {
    path: PathBuf,
    /// The length of its whole lines when it was last written or measured.
    known: Option<u64>,
    expect: Expect,
}

impl OpenThread {
    pub(super) fn new(store: Arc<Inner>, id: ThreadId, path: PathBuf, expect: Expect) -> Self {
        let file = Mutex::new(RolloutFile { path, known: None, expect });
        Self { store, id, file, appending: Arc::default() }
    }

    pub(super) fn path(&self) -> PathBuf {
        self.file.lock().path.clone()
    }

    /// The thread is stored in another file from now on.
    pub(super) fn move_to(&self, path: &Path) {
        self.file.lock().path = path.to_owned();
    }

    /// The thread is the one in this file, which may hold something else than the last one.
    pub(super) fn adopt(&self, path: &Path) {
        let mut file = self.file.lock();
        if file.path != path {
            *file = RolloutFile { path: path.to_owned(), known: None, expect: Expect::Existing };
        }
    }

    /// Does something with the open file; `missing` when nothing is stored yet.
    fn with_file<T>(&self, missing: T, work: impl FnOnce(&mut File) -> io::Result<T>) -> Result<T> {
        let RolloutFile { mut path, expect, .. } = self.file.lock().clone();
        let opened = match descriptors::open_file(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound && expect == Expect::Any => return Ok(missing),
            // Another process has moved it, for instance to the archive.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                path = self.store.find_path(self.id, None)?;
                self.move_to(&path);
                descriptors::open_file(&path)
            }
            opened => opened,
        };
        opened.and_then(|mut file| work(&mut file)).map_err(Error::io(&path))
    }

    /// The length of the whole lines, read from the file.
    fn measure(&self) -> Result<u64> {
        let known = self.file.lock().known;
        let whole = self.with_file(0, |file| Ok(journal::measure(file, known)?.whole))?;
        let mut file = self.file.lock();
        // An append that came in between knows better.
        if file.known == known {
            file.known = Some(whole);
        }
        Ok(whole)
    }

    /// The length of the whole lines, if it is the one that is known.
    fn unchanged(&self) -> Option<u64> {
        let file = self.file.lock().clone();
        let known = file.known?;
        std::fs::metadata(&file.path).is_ok_and(|meta| meta.is_file() && meta.len() == known).then_some(known)
    }

    /// Appends a batch under a lease. `appending` is locked.
    fn append(&self, lease: &FileLease, batch: &Batch) -> Result<Appended> {
        let RolloutFile { path, known, expect } = self.file.lock().clone();
        lease.check()?;
        match journal::append(&path, batch, known, expect, Durability::Flushed) {
            Ok(appended) => {
                let mut file = self.file.lock();
                (file.known, file.expect) = (Some(appended.end.get()), Expect::Existing);
                drop(file);
                self.store.touch(&path);
                Ok(appended)
            }
            Err(Error::Storage { failure: Failure::Missing, .. }) if expect == Expect::Existing => {
                self.store.forget(self.id);
                Err(Error::NotFound { id: self.id })
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for OpenThread {
    fn drop(&mut self) {
        self.store.closed(self.id);
    }
}

/// A reader of one thread. Its writers share an epoch.
pub(super) struct FileReader {
    pub(super) thread: Arc<OpenThread>,
    pub(super) id: Uuid,
}

impl FileReader {
    pub(super) fn new(thread: Arc<OpenThread>) -> Self {
        Self { thread, id: Uuid::now_v7() }
    }

    fn lease(&self) -> Result<FileLease> {
        FileLease::take(&self.thread.store.home, self.thread.id, self.id)
    }
}

impl Reader for FileReader {
    fn id(&self) -> ThreadId {
        self.thread.id
    }

    fn end(&self) -> Answer<'_, Position> {
        Box::pin(async move {
            let len = match self.thread.unchanged() {
                Some(len) => len,
                None => {
                    let thread = Arc::clone(&self.thread);
                    off_thread(move || thread.measure()).await?
                }
            };
            Ok(Position::new(len))
        })
    }

    fn records_after(&self, position: Position, limit: usize) -> Answer<'_, Window> {
        let thread = Arc::clone(&self.thread);
        Box::pin(off_thread(move || thread.with_file(empty(), |file| read::forward(file, position, limit))))
    }

    fn records_before(&self, position: Option<Position>, limit: usize) -> Answer<'_, Window> {
        let thread = Arc::clone(&self.thread);
        Box::pin(off_thread(move || thread.with_file(empty(), |file| read::backward(file, position, limit))))
    }

    fn writer(&self) -> Answer<'_, Box<dyn Writer>> {
        Box::pin(async move {
            let lease = match self.lease() {
                // An append whose caller has given up on it holds the lease until it is over.
                Err(Error::Held { .. }) if self.thread.appending.try_lock().is_err() => {
                    drop(self.thread.appending.lock().await);
                    self.lease()?
                }
                taken => taken?,
            };
            let writer = FileWriter { thread: Arc::clone(&self.thread), lease: Arc::new(lease) };
            Ok(Box::new(writer) as Box<dyn Writer>)
        })
    }
}

fn empty() -> Window {
    Window::of_bytes(0, 0, Vec::new())
}

/// A writer of one thread.
struct FileWriter {
    thread: Arc<OpenThread>,
    /// Shared with an append on a blocking thread, so that it is held until that is over.
    lease: Arc<FileLease>,
}

impl Lease for FileWriter {
    fn epoch(&self) -> u64 {
        self.lease.epoch()
    }

    fn renew(&self) -> Answer<'_, ()> {
        // The operating system keeps the lock; only a file that was replaced ends it.
        Box::pin(std::future::ready(self.lease.check()))
    }
}

impl Writer for FileWriter {
    fn append(&mut self, batch: Batch, durability: Durability) -> Answer<'_, Appended> {
        Box::pin(async move {
            let appending = Arc::clone(&self.thread.appending).lock_owned().await;
            let appended = if batch.bytes().len() <= LARGEST_INLINE {
                let appended = self.thread.append(&self.lease, &batch);
                drop(appending);
                appended?
            } else {
                let (thread, lease) = (Arc::clone(&self.thread), Arc::clone(&self.lease));
                let append = move || {
                    let appended = thread.append(&lease, &batch);
                    // Before the lock, so that a writer that waits for the lock finds the lease free.
                    drop(lease);
                    drop(appending);
                    appended
                };
                off_thread(append).await?
            };
            if durability == Durability::Synced {
                let (path, is_new) = (self.thread.path(), appended.start == Position::START);
                off_thread(move || sync(&path, is_new)).await?;
            }
            Ok(appended)
        })
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
