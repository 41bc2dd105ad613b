//! A store of files that refuses to append while a test wants it to.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use jiff::Timestamp;
use loomd_store::{
    Answer, Appended, Batch, Durability, Error, Extent, FileStore, GitPatch, Lease, ListQuery, Page, Store,
    StoredThread, ThreadId, Window,
};

pub struct FaultyStore {
    pub files: FileStore,
    /// Appends fail as if the disk were full.
    pub full: AtomicBool,
}

impl Store for FaultyStore {
    fn append<'a>(&'a self, lease: &'a Lease, batch: &'a Batch, durability: Durability) -> Answer<'a, Appended> {
        if self.full.load(Ordering::Relaxed) {
            let error = Error::Io { path: "disk".into(), source: std::io::ErrorKind::StorageFull.into() };
            return Box::pin(std::future::ready(Err(error)));
        }
        self.files.append(lease, batch, durability)
    }

    fn place(&self, id: ThreadId, created: Timestamp) -> PathBuf {
        self.files.place(id, created)
    }

    fn adopt<'a>(&'a self, path: &'a Path) -> Answer<'a, StoredThread> {
        self.files.adopt(path)
    }

    fn release(&self, id: ThreadId) {
        self.files.release(id);
    }

    fn lease(&self, id: ThreadId) -> Answer<'_, Lease> {
        self.files.lease(id)
    }

    fn extent(&self, id: ThreadId) -> Answer<'_, Extent> {
        self.files.extent(id)
    }

    fn read(&self, id: ThreadId, from: u64, limit: usize) -> Answer<'_, Window> {
        self.files.read(id, from, limit)
    }

    fn read_back(&self, id: ThreadId, to: Option<u64>, limit: usize) -> Answer<'_, Window> {
        self.files.read_back(id, to, limit)
    }

    fn derived(&self, id: ThreadId) -> Answer<'_, Option<Vec<u8>>> {
        self.files.derived(id)
    }

    fn keep_derived(&self, id: ThreadId, bytes: Vec<u8>) -> Answer<'_, ()> {
        self.files.keep_derived(id, bytes)
    }

    fn find(&self, id: ThreadId, archived: Option<bool>) -> Answer<'_, StoredThread> {
        self.files.find(id, archived)
    }

    fn list(&self, query: ListQuery) -> Answer<'_, Page> {
        self.files.list(query)
    }

    fn name(&self, id: ThreadId) -> Answer<'_, Option<String>> {
        self.files.name(id)
    }

    fn rename<'a>(&'a self, id: ThreadId, name: &'a str) -> Answer<'a, ()> {
        self.files.rename(id, name)
    }

    fn archive<'a>(&'a self, lease: &'a Lease) -> Answer<'a, PathBuf> {
        self.files.archive(lease)
    }

    fn unarchive<'a>(&'a self, lease: &'a Lease) -> Answer<'a, StoredThread> {
        self.files.unarchive(lease)
    }

    fn delete<'a>(&'a self, lease: &'a Lease) -> Answer<'a, ()> {
        self.files.delete(lease)
    }

    fn git_patch(&self, id: ThreadId) -> Answer<'_, Option<GitPatch>> {
        self.files.git_patch(id)
    }

    fn patch_git<'a>(&'a self, id: ThreadId, patch: &'a GitPatch) -> Answer<'a, ()> {
        self.files.patch_git(id, patch)
    }
}
