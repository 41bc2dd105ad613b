//! A parser of server-sent events: bytes in, the data of each event out. Other fields are ignored, because no provider
//! needs them here. The events do not depend on how the bytes are split.

use std::ops::Range;

use memchr::memchr2;

/// The limit on the data of one event, and on a line. A generated image arrives in one event, and the largest that
/// providers offer is less than half of this.
pub const MAX_EVENT: usize = 32 * 1024 * 1024;

/// A larger buffer is freed once it is empty.
const KEPT_BUFFER: usize = 256 * 1024;

const BOM: &[u8] = b"\xef\xbb\xbf";

/// An event exceeds [`MAX_EVENT`], or the limit that was set instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of the stream is longer than {} MiB", MAX_EVENT >> 20)]
pub struct TooLong;

/// Push bytes, then take events until there are none. Unusable after [`TooLong`].
#[derive(Debug)]
pub struct SseParser {
    bytes: Vec<u8>,
    /// The start of the first unfinished line.
    line: usize,
    /// The end of the part of that line that was searched for a line end.
    seen: usize,
    /// The last line ended with CR, so a following LF belongs to it.
    after_cr: bool,
    /// Nothing was read yet, so a byte order mark may follow.
    fresh: bool,
    /// The data of the current event; `None` while it has no `data` field.
    data: Option<Data>,
    /// Whether `data` was returned to the caller.
    taken: bool,
    max_event: usize,
}

/// The data of an event. Almost every event has one line, which is not copied.
#[derive(Debug)]
enum Data {
    /// The range of the line in the parser's bytes.
    Line(Range<usize>),
    Joined(Vec<u8>),
}

impl Default for SseParser {
    fn default() -> Self {
        Self::new(MAX_EVENT)
    }
}

impl SseParser {
    pub fn new(max_event: usize) -> Self {
        Self { bytes: Vec::new(), line: 0, seen: 0, after_cr: false, fresh: true, data: None, taken: false, max_event }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.clear_taken();
        let done = match &self.data {
            Some(Data::Line(line)) => line.start,
            _ => self.line,
        };
        if done > 0 {
            self.bytes.drain(..done);
            self.seen -= done;
            self.line -= done;
            if let Some(Data::Line(line)) = &mut self.data {
                *line = line.start - done..line.end - done;
            }
            if self.bytes.is_empty() && self.bytes.capacity() > KEPT_BUFFER {
                self.bytes = Vec::new();
            }
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Returns the data of the next complete event.
    #[allow(clippy::should_implement_trait, reason = "the data is borrowed from the parser")]
    pub fn next(&mut self) -> Option<Result<&[u8], TooLong>> {
        self.clear_taken();
        if self.fresh && !self.skip_mark() {
            return None;
        }
        while let Some(end) = self.line_end() {
            let start = std::mem::replace(&mut self.line, self.seen);
            if start < end {
                if !self.read_line(start, end) {
                    return Some(Err(TooLong));
                }
            } else if self.take() {
                return Some(Ok(self.event()));
            }
        }
        (self.seen - self.line > self.max_event).then_some(Err(TooLong))
    }

    /// Returns the data of a last event that lacks its empty line. It may be truncated.
    pub fn finish(&mut self) -> Option<&[u8]> {
        self.clear_taken();
        let start = std::mem::replace(&mut self.line, self.bytes.len());
        self.seen = self.line;
        let fits = self.read_line(start, self.line);
        (fits && self.take()).then(|| self.event())
    }

    /// Skips a byte order mark. Returns false when more bytes are needed to decide.
    fn skip_mark(&mut self) -> bool {
        let known = self.bytes.len().min(BOM.len());
        if self.bytes[..known] != BOM[..known] {
            self.fresh = false;
        } else if known == BOM.len() {
            self.fresh = false;
            (self.line, self.seen) = (known, known);
        }
        !self.fresh
    }

    /// Returns the end of the current line, and sets `seen` to the start of the next one.
    fn line_end(&mut self) -> Option<usize> {
        if self.after_cr && self.line < self.bytes.len() {
            self.after_cr = false;
            if self.bytes[self.line] == b'\n' {
                self.line += 1;
                self.seen = self.line;
            }
        }
        let Some(end) = memchr2(b'\n', b'\r', &self.bytes[self.seen..]).map(|at| self.seen + at) else {
            self.seen = self.bytes.len();
            return None;
        };
        self.after_cr = self.bytes[end] == b'\r';
        self.seen = end + 1;
        Some(end)
    }

    /// Processes a line. Returns false when the event is too long.
    fn read_line(&mut self, start: usize, end: usize) -> bool {
        let line = &self.bytes[start..end];
        let value = match line.strip_prefix(b"data") {
            Some([]) => end..end,
            Some([b':', b' ', ..]) => start + b"data: ".len()..end,
            Some([b':', ..]) => start + b"data:".len()..end,
            _ => return line.len() <= self.max_event,
        };
        let data = match self.data.take() {
            None => Data::Line(value),
            Some(before) => {
                let mut joined = match before {
                    Data::Line(line) => self.bytes[line].to_vec(),
                    Data::Joined(joined) => joined,
                };
                joined.push(b'\n');
                joined.extend_from_slice(&self.bytes[value]);
                Data::Joined(joined)
            }
        };
        let length = match &data {
            Data::Line(line) => line.len(),
            Data::Joined(joined) => joined.len(),
        };
        self.data = Some(data);
        end - start <= self.max_event && length <= self.max_event
    }

    /// Ends the current event. Returns whether it has data.
    fn take(&mut self) -> bool {
        self.taken = !self.event().is_empty();
        if !self.taken {
            self.data = None;
        }
        self.taken
    }

    /// The data of the current event.
    fn event(&self) -> &[u8] {
        match &self.data {
            None => &[],
            Some(Data::Line(line)) => &self.bytes[line.clone()],
            Some(Data::Joined(joined)) => joined,
        }
    }

    fn clear_taken(&mut self) {
        if std::mem::take(&mut self.taken) {
            self.data = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses a stream that arrives in these pieces, including an unterminated last event.
    fn parse<'a>(max: usize, pieces: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<String>, TooLong> {
        let mut parser = SseParser::new(max);
        let mut events = Vec::new();
        let text = |data: &[u8]| String::from_utf8_lossy(data).into_owned();
        for piece in pieces {
            parser.push(piece);
            while let Some(event) = parser.next() {
                events.push(text(event?));
            }
        }
        events.extend(parser.finish().map(text));
        Ok(events)
    }

    fn check(stream: &str, expected: &[&str]) {
        let whole = parse(MAX_EVENT, [stream.as_bytes()]).unwrap();
        assert_eq!(whole, expected, "{stream:?}");
        let bytes = parse(MAX_EVENT, stream.as_bytes().chunks(1)).unwrap();
        assert_eq!(bytes, expected, "{stream:?} byte by byte");
    }

    #[test]
    fn events_end_at_an_empty_line_with_any_line_ending() {
        check("data: a\n\ndata: b\n\n", &["a", "b"]);
        check("data: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"]);
        check("data: a\r\rdata: b\r\r", &["a", "b"]);
        check("data: a\r\n\ndata: b\n\r", &["a", "b"]);
    }

    #[test]
    fn fields_other_than_data_are_ignored() {
        check("event: x\nid: 1\nretry: 5\ndata: a\n: comment\n\n", &["a"]);
        check(": keep alive\n\n: keep alive\n\n", &[]);
        check("database: a\n\ndata\n\n", &[]);
        check("\u{feff}data: a\n\n", &["a"]);
        check("\u{feff}\u{feff}data: a\n\n", &[]);
    }

    #[test]
    fn one_space_after_the_colon_is_dropped_and_lines_are_joined() {
        check("data:a\n\ndata:  b\n\n", &["a", " b"]);
        check("data: a\ndata: b\ndata\ndata: c\n\n", &["a\nb\n\nc"]);
        check("data:\ndata:\n\n", &["\n"]);
    }

    #[test]
    fn the_last_event_needs_no_empty_line() {
        check("data: a\n\ndata: b", &["a", "b"]);
        check("data: a\ndata: b\n", &["a\nb"]);
        check("dat", &[]);
    }

    #[test]
    fn events_beyond_the_limit_are_an_error() {
        assert_eq!(parse(8, [&b"data:abc\n\n"[..]]), Ok(vec!["abc".into()]));
        assert_eq!(parse(8, [&b"data:abcd\n\n"[..]]), Err(TooLong));
        assert_eq!(parse(8, [&b"data:abcd"[..]]), Err(TooLong));
        assert_eq!(parse(8, [&b"data:abc\ndata:def\ndata:ghi\n\n"[..]]), Err(TooLong));
        assert_eq!(parse(8, [&b": a longer comment\n"[..]]), Err(TooLong));
    }

    #[test]
    fn a_large_event_is_buffered_once_and_its_buffer_freed() {
        let (event, piece) = (8 << 20, vec![b'x'; 64 << 10]);
        let mut parser = SseParser::default();
        parser.push(b"data: ");
        for _ in 0..event / piece.len() {
            parser.push(&piece);
            assert!(parser.next().is_none());
        }
        parser.push(b"\n\n");
        assert_eq!(parser.next().unwrap().unwrap().len(), event);
        assert!(matches!(parser.data, Some(Data::Line(_))), "the data is a part of the bytes");
        assert!(parser.bytes.capacity() <= 2 * event + piece.len(), "{}", parser.bytes.capacity());
        assert!(parser.next().is_none());
        parser.push(b"data: y\n\n");
        assert!(parser.bytes.capacity() <= KEPT_BUFFER, "{}", parser.bytes.capacity());
        assert_eq!(parser.next(), Some(Ok(&b"y"[..])));
    }

    proptest! {
        #[test]
        fn events_do_not_depend_on_how_bytes_are_split(
            stream in "(data|event|:|: |x|[äé]|\u{feff}|\r|\n|\r\n|\n\n){0,60}",
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..12),
            max in 3usize..40,
        ) {
            let bytes = stream.as_bytes();
            let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<_> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(parse(max, pieces), parse(max, [bytes]));
        }

        #[test]
        fn any_text_round_trips(texts in proptest::collection::vec("[^\r\n]{1,30}", 0..8)) {
            let stream: String = texts.iter().map(|text| format!("event: e\ndata: {text}\n\n")).collect();
            prop_assert_eq!(parse(MAX_EVENT, [stream.as_bytes()]).unwrap(), texts);
        }
    }
}
