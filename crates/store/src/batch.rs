//! Records on their way to a rollout, already encoded: a batch is appended whole or not at all.

use crate::error::Result;
use crate::rollout::{Line, Record, copy_line, now, write_line};

/// Encoded lines that are appended together.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    lines: u64,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record, stamped with the time.
    pub fn push(&mut self, record: &Record) -> Result<()> {
        self.lines += u64::from(write_line(&mut self.bytes, &now(), record)?);
        Ok(())
    }

    /// Adds a copy of a line of another rollout, known or not, stamped anew.
    pub fn push_copy(&mut self, line: &Line) {
        copy_line(&mut self.bytes, &now(), line);
        self.lines += 1;
    }

    /// Lines that are already encoded, each with its line break. They are stored as they stand.
    pub fn of_lines(bytes: Vec<u8>) -> Self {
        let lines = memchr::memchr_iter(b'\n', &bytes).count() as u64;
        Self { bytes, lines }
    }

    /// The lines, each with its line break.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many lines there are.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// Whether there is nothing to append.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

impl<R: std::borrow::Borrow<Record>> FromIterator<R> for Batch {
    /// Leaves out what cannot be encoded; [`Batch::push`] reports it.
    fn from_iter<I: IntoIterator<Item = R>>(records: I) -> Self {
        let mut batch = Self::new();
        for record in records {
            let _ = batch.push(record.borrow());
        }
        batch
    }
}
