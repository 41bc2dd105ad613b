//! Bounded capture of a program's output.

use std::collections::VecDeque;

use crate::text::begun_character;

/// The most bytes that are retained of one stream, and of both together.
pub const RETAINED_BYTES: usize = 1024 * 1024;

/// The retained parts of the two streams. When both do not fit into [`RETAINED_BYTES`], stdout gets a third and
/// stderr the rest, and stdout what stderr does not use.
pub(crate) fn shares<'a>(stdout: &'a [u8], stderr: &'a [u8]) -> [&'a [u8]; 2] {
    let first = stdout.len().min(RETAINED_BYTES / 3);
    let second = stderr.len().min(RETAINED_BYTES - first);
    let first = stdout.len().min(RETAINED_BYTES - second);
    [&stdout[..first], &stderr[..second]]
}

/// The beginning of a stream; the rest is dropped.
#[derive(Debug, Default)]
pub struct Head {
    pub bytes: Vec<u8>,
    limit: usize,
}

impl Head {
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        let room = self.limit - self.bytes.len();
        self.bytes.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// The first and the last bytes of a stream, half of [`RETAINED_BYTES`] each; the bytes between are dropped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HeadTail {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: u64,
}

const HALF: usize = RETAINED_BYTES / 2;

impl HeadTail {
    pub fn push(&mut self, bytes: &[u8]) {
        let (head, rest) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(head);
        // Of a chunk longer than the tail only the end is retained.
        let (passing, rest) = rest.split_at(rest.len().saturating_sub(HALF));
        let over = (self.tail.len() + rest.len()).saturating_sub(HALF);
        self.dropped += (passing.len() + over) as u64;
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    /// How many bytes are missing between the halves.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    pub fn is_empty(&self) -> bool {
        self.head.is_empty()
    }

    /// Removes and returns an incomplete character at the end.
    pub(crate) fn hold_back(&mut self) -> Vec<u8> {
        let len = self.head.len() + self.tail.len();
        let last = |from: usize| -> Vec<u8> { self.head.iter().chain(&self.tail).skip(from).copied().collect() };
        let held = begun_character(&last(len.saturating_sub(4)));
        let bytes = last(len - held);
        for _ in 0..held {
            if self.tail.pop_back().is_none() {
                self.head.pop();
            }
        }
        bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        let mut bytes = self.head;
        let (front, back) = self.tail.as_slices();
        bytes.extend_from_slice(front);
        bytes.extend_from_slice(back);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn stdout_and_stderr_share_the_retained_bytes() {
        let check = |stdout: usize, stderr: usize, expected: (usize, usize)| {
            let (stdout, stderr) = (vec![b'o'; stdout], vec![b'e'; stderr]);
            let both = shares(&stdout, &stderr).concat();
            let kept = both.iter().filter(|byte| **byte == b'o').count();
            assert_eq!((kept, both.len() - kept), expected);
            assert!(both.is_sorted_by(|a, b| a >= b), "stdout comes first");
        };
        let all = RETAINED_BYTES;
        check(0, 0, (0, 0));
        check(3, 4, (3, 4));
        check(all, 0, (all, 0));
        check(0, all, (0, all));
        check(all, 10, (all - 10, 10));
        check(10, all, (10, all - 10));
        check(all, all, (all / 3, all - all / 3));
    }

    #[test]
    fn an_incomplete_character_is_held_back_at_the_end() {
        for (bytes, expected) in
            [(&b"a\xe2\x82"[..], &b"\xe2\x82"[..]), (b"a\xe2\x82\xac", b""), (b"\xf0", b"\xf0"), (b"", b"")]
        {
            let mut kept = HeadTail::default();
            kept.push(bytes);
            assert_eq!(kept.hold_back(), expected);
            assert_eq!(kept.into_bytes(), bytes[..bytes.len() - expected.len()]);
        }
        let mut full = HeadTail::default();
        full.push(&[vec![b'a'; HALF], b"\xe2\x82".to_vec()].concat());
        assert_eq!((full.hold_back(), full.into_bytes().len()), (b"\xe2\x82".to_vec(), HALF));
    }

    #[test]
    fn head_retains_the_first_bytes() {
        let mut head = Head::new(5);
        for piece in ["ab", "cde", "f"] {
            head.push(piece.as_bytes());
        }
        assert_eq!(head.bytes, b"abcde");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn head_tail_retains_both_ends(pieces in prop::collection::vec(0usize..2 * HALF, 0..6)) {
            let total: usize = pieces.iter().sum();
            let whole: Vec<u8> = (0..total).map(|n| (n % 251) as u8).collect();
            let (mut kept, mut from) = (HeadTail::default(), 0);
            for piece in pieces {
                kept.push(&whole[from..from + piece]);
                from += piece;
            }
            let missing = total.saturating_sub(RETAINED_BYTES);
            prop_assert_eq!(kept.dropped(), missing as u64);
            let expected = if missing == 0 {
                whole.clone()
            } else {
                [&whole[..HALF], &whole[total - HALF..]].concat()
            };
            prop_assert!(kept.into_bytes() == expected);
        }
    }
}
