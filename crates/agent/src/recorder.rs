//! Writing a thread's records down, in the order in which they happen and before anybody is shown them.

use loomd_store::rollout::Record;
use loomd_store::{Batch, Durability, Position, Result, Writer};

/// Writes to one thread. One that is not kept takes records and forgets them.
pub(crate) struct Recorder {
    writer: Option<Box<dyn Writer>>,
    batch: Batch,
    closed: bool,
    /// The end of the thread's records, as far as they were written here.
    pub end: Position,
}

impl Recorder {
    /// `writer` is `None` for an ephemeral thread. `end` is where the thread's records end now.
    pub fn new(writer: Option<Box<dyn Writer>>, end: Position) -> Self {
        Self { writer, batch: Batch::new(), closed: false, end }
    }

    /// Takes a record; it is written with the next flush.
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

    /// Nothing has been written, nor noted.
    pub fn is_untouched(&self) -> bool {
        self.end == Position::START && self.batch.is_empty()
    }

    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// Everything noted is written when this returns. A batch that could not be written is dropped: the caller
    /// fails the turn and publishes nothing of it, or keeps the records and notes them again.
    pub async fn flush(&mut self, durability: Durability) -> Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if self.batch.is_empty() && durability == Durability::Flushed {
            return Ok(());
        }
        let batch = std::mem::take(&mut self.batch);
        self.end = writer.append(batch, durability).await?.end;
        Ok(())
    }
}
