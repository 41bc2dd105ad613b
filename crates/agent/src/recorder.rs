//! Writes a thread's records, in order and before they are published.

use std::sync::Arc;

use loomd_store::rollout::Record;
use loomd_store::{Batch, Durability, Position, Result, Writer};

use crate::metering::StoreLatencies;

/// The writer of a thread. That of an ephemeral thread drops its records.
pub(crate) struct Recorder {
    writer: Option<Box<dyn Writer>>,
    batch: Batch,
    closed: bool,
    latencies: Arc<StoreLatencies>,
    /// The end of the thread's records after the last flush.
    pub end: Position,
}

impl Recorder {
    /// `writer` is `None` for an ephemeral thread. `end` is where the thread's records end now.
    pub fn new(writer: Option<Box<dyn Writer>>, end: Position, latencies: Arc<StoreLatencies>) -> Self {
        Self { writer, batch: Batch::new(), closed: false, latencies, end }
    }

    /// Adds a record to the batch that the next flush writes.
    pub fn note(&mut self, record: &Record) -> Result<()> {
        if self.writer.is_some() {
            self.batch.push(record)?;
        }
        Ok(())
    }

    /// Gives up the thread's lease.
    pub fn close(&mut self) {
        self.writer = None;
        self.closed = true;
    }

    /// Whether the thread has no records, written or in the batch.
    pub fn is_untouched(&self) -> bool {
        self.end == Position::START && self.batch.is_empty()
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes the batch. One that cannot be written is dropped: the caller fails the turn and publishes nothing of it,
    /// or notes the records again.
    pub async fn flush(&mut self, durability: Durability) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.batch.is_empty() && durability == Durability::Flushed {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.end = self.latencies.measure(durability, writer.append(batch, durability)).await?.end;
        Ok(())
    }
}
