//! How much of a program's output is kept, and which part.

use std::collections::VecDeque;

/// What is kept of one stream, and of both together: enough for any reader, little enough to keep many.
pub const RETAINED_BYTES: usize = 1024 * 1024;

/// The two streams as one text, stdout first. When both do not fit into [`RETAINED_BYTES`], stdout gets a third
/// and stderr the rest, and stdout what stderr does not use.
pub fn aggregate(stdout: &[u8], stderr: &[u8]) -> Vec<u8> {
    let first = stdout.len().min(RETAINED_BYTES / 3);
    let second = stderr.len().min(RETAINED_BYTES - first);
    let first = stdout.len().min(RETAINED_BYTES - second);
    [&stdout[..first], &stderr[..second]].concat()
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

/// The first and the last half of [`RETAINED_BYTES`]; what lies between is dropped.
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
        // Of a piece longer than the tail only its end can stay.
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
    fn both_streams_share_one_mebibyte() {
        let check = |stdout: usize, stderr: usize, expected: (usize, usize)| {
            let both = aggregate(&vec![b'o'; stdout], &vec![b'e'; stderr]);
            let kept = both.iter().filter(|byte| **byte == b'o').count();
            assert_eq!((kept, both.len() - kept), expected, "{stdout} {stderr}");
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
    fn the_head_keeps_the_beginning() {
        let mut head = Head::new(5);
        for piece in ["ab", "cde", "f"] {
            head.push(piece.as_bytes());
        }
        assert_eq!(head.bytes, b"abcde");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn head_and_tail_keep_both_ends(pieces in prop::collection::vec(0usize..2 * HALF, 0..6)) {
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
