//! Cuts bytes into lines, within a bound. A longer line is skipped without being kept.

use memchr::memchr;
use rmcp::model::RequestId;

use super::oversized::IdScanner;

/// A larger buffer is freed once it is empty.
const KEPT_BUFFER: usize = 256 * 1024;

/// Push bytes, then take lines until there are none.
pub(super) struct Lines {
    bytes: Vec<u8>,
    /// The part of `bytes` that has no line end.
    searched: usize,
    limit: usize,
    /// The line that is being skipped.
    skipped: Option<Box<IdScanner>>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// With the id of the request that it answers, if that was found.
    TooLong(Option<RequestId>),
}

impl Lines {
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), searched: 0, limit, skipped: None }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    pub fn next(&mut self) -> Option<Line> {
        let end = memchr(b'\n', &self.bytes[self.searched..]).map(|at| at + self.searched);
        match (end, &mut self.skipped) {
            (Some(end), Some(skipped)) => {
                skipped.push(&self.bytes[..end]);
                self.drop_front(end + 1);
                let id = self.skipped.take().and_then(|scanner| scanner.answers());
                Some(Line::TooLong(id))
            }
            (Some(end), None) => {
                let line = self.bytes[..end].to_vec();
                self.drop_front(end + 1);
                Some(Line::Whole(line))
            }
            (None, Some(skipped)) => {
                skipped.push(&self.bytes);
                self.drop_front(self.bytes.len());
                None
            }
            (None, None) if self.bytes.len() > self.limit => {
                let mut scanner = Box::<IdScanner>::default();
                scanner.push(&self.bytes);
                self.skipped = Some(scanner);
                self.drop_front(self.bytes.len());
                None
            }
            (None, None) => {
                self.searched = self.bytes.len();
                None
            }
        }
    }

    fn drop_front(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.searched = 0;
        if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BUFFER {
            self.bytes = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(pieces: &[&[u8]], limit: usize) -> Vec<Line> {
        let (mut lines, mut found) = (Lines::new(limit), Vec::new());
        for piece in pieces {
            lines.push(piece);
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found
    }

    #[test]
    fn a_line_beyond_the_limit_is_skipped_and_its_id_found() {
        let pieces: [&[u8]; 5] =
            [b"a\n{\"id\":5,", b"\"result\":\"xxxxxxxxx", b"xxxxxxxxxxxxxxxxxxxx", b"\"}\nb", b"\n"];
        let found = cut(&pieces, 16);
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(found, [whole("a"), Line::TooLong(Some(RequestId::Number(5))), whole("b")]);
    }

    #[test]
    fn an_endless_line_is_not_kept() {
        let mut lines = Lines::new(1024);
        for _ in 0..10_000 {
            lines.push(&[b'x'; 1000]);
            assert_eq!(lines.next(), None);
            assert!(lines.bytes.len() <= 2048);
        }
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_the_bytes_are_split(bytes in prop::collection::vec(prop_oneof![Just(b'\n'), Just(b'x')], 0..60), at in 0usize..60) {
            let at = at.min(bytes.len());
            prop_assert_eq!(cut(&[&bytes], 100), cut(&[&bytes[..at], &bytes[at..]], 100));
        }
    }
}
