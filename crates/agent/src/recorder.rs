//! Writing a thread's records down, in the order in which they happen and before anybody is shown them.

use std::sync::Arc;

use loomd_store::rollout::Record;
use loomd_store::{Batch, Durability, Lease, Result, Store};

/// Writes to one thread. One that is not kept takes records and forgets them.
pub(crate) struct Recorder {
    store: Arc<dyn Store>,
    lease: Option<Lease>,
    batch: Batch,
    closed: bool,
    /// How long the file is, as far as it was written here.
    pub len: u64,
}

impl Recorder {
    /// `lease` is `None` for a thread of which nothing is kept.
    pub fn new(store: Arc<dyn Store>, lease: Option<Lease>, len: u64) -> Self {
        Self { store, lease, batch: Batch::new(), closed: false, len }
    }

    /// Takes a record; it is written with the next flush.
    pub fn note(&mut self, record: &Record) -> Result<()> {
        if self.lease.is_some() {
            self.batch.push(record)?;
        }
        Ok(())
    }

    /// Gives up the right to write.
    pub fn close(&mut self) {
        self.lease = None;
        self.closed = true;
    }

    /// Nothing has been written, nor noted.
    pub fn is_untouched(&self) -> bool {
        self.len == 0 && self.batch.is_empty()
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Everything noted is written when this returns. A batch that could not be written is dropped: the caller
    /// fails the turn and publishes nothing of it, or keeps the records and notes them again.
    pub async fn flush(&mut self, durability: Durability) -> Result<()> {
        let Some(lease) = &self.lease else { return Ok(()) };
        if self.batch.is_empty() && durability == Durability::Flushed {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        let appended = self.store.append(lease, &batch, durability).await?;
        self.len = appended.extent.len;
        Ok(())
    }
}
