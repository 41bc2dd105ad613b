//! A part of a thread's records, as it was read.

use crate::Position;
use crate::rollout::whole_lines;

/// Whole records that follow each other, each an encoded line. What is torn at the end of a thread is left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Window {
    bytes: Vec<u8>,
    start: Position,
    end: Position,
    thread_end: Position,
    unit: Unit,
}

/// What the positions of a store count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Bytes,
    Records,
}

/// One record of a [`Window`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredLine<'a> {
    /// The position before the record.
    pub start: Position,
    /// The position after the record.
    pub end: Position,
    /// The record as it is stored, without its line break.
    pub bytes: &'a [u8],
}

impl Window {
    /// Lines of a file of `len` bytes, from an offset.
    pub(crate) fn of_bytes(start: u64, len: u64, bytes: Vec<u8>) -> Self {
        let end = start + bytes.len() as u64;
        let [start, end, thread_end] = [start, end, len].map(Position::new);
        Self { bytes, start, end, thread_end, unit: Unit::Bytes }
    }

    /// Records of a thread that has `count` of them, from the one with a number.
    pub fn of_records<'a>(start: u64, count: u64, records: impl Iterator<Item = &'a [u8]>) -> Self {
        let (mut bytes, mut end) = (Vec::new(), start);
        for record in records {
            bytes.extend_from_slice(record);
            bytes.push(b'\n');
            end += 1;
        }
        let [start, end, thread_end] = [start, end, count].map(Position::new);
        Self { bytes, start, end, thread_end, unit: Unit::Records }
    }

    /// The position before the first record.
    pub fn start(&self) -> Position {
        self.start
    }

    /// The position after the last record: the one to read on from.
    pub fn end(&self) -> Position {
        self.end
    }

    /// The end of the thread when the window was read. A thread that ends with a torn record ends after that.
    pub fn thread_end(&self) -> Position {
        self.thread_end
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The encoded records, each with its line break; only the last may lack it.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The records, oldest first.
    pub fn lines(&self) -> impl Iterator<Item = StoredLine<'_>> {
        self.lines_after(self.start)
    }

    /// The records after a position, oldest first.
    pub fn lines_after(&self, position: Position) -> impl Iterator<Item = StoredLine<'_>> {
        let skipped = usize::try_from(position.get().saturating_sub(self.start.get())).unwrap_or(usize::MAX);
        let (bytes, records) = match self.unit {
            Unit::Bytes => (skipped, 0),
            Unit::Records => (0, skipped),
        };
        let rest = self.bytes.get(bytes..).unwrap_or_default();
        whole_lines(rest).enumerate().skip(records).map(move |(number, (offset, line))| {
            let at = |count: u64| Position::new((self.start.get() + count).min(self.end.get()));
            let (start, end) = match self.unit {
                Unit::Bytes => ((bytes + offset) as u64, (bytes + offset + line.len() + 1) as u64),
                Unit::Records => (number as u64, number as u64 + 1),
            };
            StoredLine { start: at(start), end: at(end), bytes: line }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(window: &Window, after: Position) -> Vec<(u64, u64, &str)> {
        let lines = window.lines_after(after);
        lines.map(|line| (line.start.get(), line.end.get(), std::str::from_utf8(line.bytes).unwrap())).collect()
    }

    #[test]
    fn a_record_lies_between_two_positions_whatever_they_count() {
        let bytes = Window::of_bytes(10, 99, b"one\ntwo\nlast".to_vec());
        assert_eq!(lines(&bytes, bytes.start()), [(10, 14, "one"), (14, 18, "two"), (18, 22, "last")]);
        assert_eq!(lines(&bytes, Position::new(14)), [(14, 18, "two"), (18, 22, "last")]);
        assert_eq!(lines(&bytes, bytes.end()), []);
        let records = Window::of_records(5, 9, [&b"one"[..], b"two"].into_iter());
        assert_eq!(lines(&records, records.start()), [(5, 6, "one"), (6, 7, "two")]);
        assert_eq!(lines(&records, Position::new(6)), [(6, 7, "two")]);
        assert_eq!((records.end().get(), records.thread_end().get()), (7, 9));
    }
}
