//! The suite of [`loomd_store::suite`] on the stores of this crate.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::sync::Arc;

use loomd_store::suite::Harness;
use loomd_store::{FileStore, MemoryStore, Options, Store, ThreadId};

struct Files(tempfile::TempDir);

impl Harness for Files {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(FileStore::new(Options { home: self.0.path().to_owned(), sqlite_home: None }))
    }

    /// Puts a copy in the place of the lease file: the lock is on the file that was there.
    fn revoke_lease(&self, id: ThreadId) {
        let path = self.0.path().join("loomd/leases").join(id.to_string());
        let copy = path.with_extension("copy");
        std::fs::copy(&path, &copy).unwrap();
        std::fs::rename(copy, path).unwrap();
    }
}

struct Memory(MemoryStore);

impl Harness for Memory {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.0.clone())
    }

    fn revoke_lease(&self, id: ThreadId) {
        self.0.revoke_lease(id);
    }
}

mod files {
    use super::Files;

    loomd_store::store_suite!(Files(tempfile::tempdir().unwrap()));
}

mod memory {
    use super::Memory;

    loomd_store::store_suite!(Memory(Default::default()));
}
