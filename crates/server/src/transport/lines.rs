//! Splits a stream of bytes into lines, in bounded memory.

use std::mem::take;

use bytes::Bytes;
use memchr::memchr;

use crate::connection::Inbound;

/// Splits bytes into lines without their line ends.
pub(crate) struct Lines {
    limit: usize,
    head: usize,
    /// The beginning of a line whose end has not come yet.
    partial: Vec<u8>,
    /// In the rest of a line that was too long.
    skipping: bool,
}

impl Lines {
    /// Lines of up to `limit` bytes; of a longer one the first `head` bytes are kept.
    pub fn new(limit: usize, head: usize) -> Self {
        Self { limit, head, partial: Vec::new(), skipping: false }
    }

    /// Adds bytes and calls `emit` with each line that is now complete. Empty lines are skipped.
    pub fn feed(&mut self, mut bytes: &[u8], emit: &mut impl FnMut(Inbound)) {
        while let Some(end) = memchr(b'\n', bytes) {
            self.append(&bytes[..end], emit);
            self.complete(emit);
            bytes = &bytes[end + 1..];
        }
        self.append(bytes, emit);
    }

    /// The stream is over; its last line needs no line end.
    pub fn finish(&mut self, emit: &mut impl FnMut(Inbound)) {
        self.complete(emit);
    }

    fn append(&mut self, part: &[u8], emit: &mut impl FnMut(Inbound)) {
        if self.skipping {
            return;
        }
        if self.partial.len() + part.len() <= self.limit {
            self.partial.extend_from_slice(part);
            return;
        }
        let mut head = take(&mut self.partial);
        head.extend_from_slice(&part[..part.len().min(self.head)]);
        head.truncate(self.head);
        head.shrink_to_fit();
        self.skipping = true;
        emit(Inbound::Oversized(head.into()));
    }

    fn complete(&mut self, emit: &mut impl FnMut(Inbound)) {
        self.skipping = false;
        let mut line = take(&mut self.partial);
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if !line.is_empty() {
            emit(Inbound::Message(Bytes::from(line)));
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The lines that come out when the input arrives in pieces of `size`; an oversized one is marked.
    fn lines(input: &[u8], size: usize, limit: usize) -> Vec<String> {
        let mut out = Vec::new();
        let mut emit = |inbound| {
            out.push(match inbound {
                Inbound::Message(line) => String::from_utf8_lossy(&line).into_owned(),
                Inbound::Oversized(head) => format!("{}…", String::from_utf8_lossy(&head)),
            });
        };
        let mut lines = Lines::new(limit, 3);
        for piece in input.chunks(size) {
            lines.feed(piece, &mut emit);
        }
        lines.finish(&mut emit);
        out
    }

    #[test]
    fn lines_are_split_wherever_the_chunks_end() {
        for size in 1..20 {
            assert_eq!(lines(b"one\r\n\ntwo\n  \nlast", size, 10), ["one", "two", "  ", "last"], "{size}");
            assert_eq!(lines(b"12345\n123456\n1234567\nx\n", size, 5), ["12345", "123…", "123…", "x"], "{size}");
            assert_eq!(lines(b"endless", size, 5), ["end…"], "{size}");
        }
        assert_eq!(lines(b"", 1, 5), [] as [&str; 0]);
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_the_chunk_size(input in "[ab\r\n]{0,60}", size in 1usize..30) {
            prop_assert_eq!(lines(input.as_bytes(), size, 7), lines(input.as_bytes(), 1000, 7));
        }
    }
}
