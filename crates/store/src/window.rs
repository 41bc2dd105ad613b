//! Reading a part of a rollout in whole lines, forwards or backwards, so that a long thread is never held
//! in memory at once. Damage stays in its line: bytes are not interpreted here.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::rollout::{Line, whole_lines};

/// Whole lines of a rollout. Only the last line of a file may lack its line break, and is then left out
/// unless it reads as a record.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Where the bytes begin in the file.
    pub start: u64,
    /// The length of the file when it was read.
    pub file_len: u64,
    pub bytes: Vec<u8>,
}

impl Window {
    /// Where the bytes end in the file: the place to read on from.
    pub fn end(&self) -> u64 {
        self.start + self.bytes.len() as u64
    }

    /// The lines with their offsets in the file, line breaks left out.
    pub fn lines(&self) -> impl Iterator<Item = (u64, &[u8])> {
        whole_lines(&self.bytes).map(|(offset, line)| (self.start + offset as u64, line))
    }
}

/// Lines from the one that begins at `from`: at most `limit` bytes, but at least one line.
pub(crate) fn forward(file: &mut File, from: u64, limit: usize) -> io::Result<Window> {
    let file_len = file.metadata()?.len();
    let mut window = Window { start: from.min(file_len), file_len, bytes: Vec::new() };
    let mut want = limit.max(1);
    file.seek(SeekFrom::Start(window.start))?;
    loop {
        let had = window.bytes.len();
        window.bytes.reserve_exact(want.min((file_len - window.start) as usize).saturating_sub(had));
        Read::by_ref(file).take((want - had) as u64).read_to_end(&mut window.bytes)?;
        let at_end = window.bytes.len() < want || window.end() >= file_len;
        if at_end && complete_tail(&window.bytes) {
            return Ok(window);
        }
        if let Some(last) = memchr::memrchr(b'\n', &window.bytes[had.min(window.bytes.len())..]) {
            window.bytes.truncate(had + last + 1);
            return Ok(window);
        }
        if at_end {
            window.bytes.clear();
            return Ok(window);
        }
        want = window.bytes.len() * 2;
    }
}

/// The lines that end at or before `to` (the end of the file when `None`): at most `limit` bytes, but at
/// least one line.
pub(crate) fn backward(file: &mut File, to: Option<u64>, limit: usize) -> io::Result<Window> {
    let file_len = file.metadata()?.len();
    let mut end = to.unwrap_or(file_len).min(file_len);
    let mut want = (limit.max(1) as u64).min(end);
    loop {
        let from = end - want;
        // One byte more tells whether a line begins at `from`.
        let first = from.saturating_sub(1);
        let mut bytes = vec![0; (end - first) as usize];
        file.seek(SeekFrom::Start(first))?;
        file.read_exact(&mut bytes)?;
        let skip = if from == 0 { Some(0) } else { memchr::memchr(b'\n', &bytes).map(|at| at + 1) };
        let tail = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        // A torn line at the end is not part of the answer.
        let keep = if end == file_len && !complete_tail(&bytes[tail..]) { tail } else { bytes.len() };
        match skip {
            Some(skip) if skip < keep || from == 0 => {
                let skip = skip.min(keep);
                bytes.truncate(keep);
                bytes.drain(..skip);
                return Ok(Window { start: first + skip as u64, file_len, bytes });
            }
            // Nothing but the torn line so far: start over before it.
            Some(_) if keep < bytes.len() && first + (keep as u64) < end => {
                end = first + keep as u64;
                want = (limit.max(1) as u64).min(end);
            }
            _ => want = (want * 2).min(end),
        }
        if end == 0 {
            return Ok(Window { start: 0, file_len, bytes: Vec::new() });
        }
    }
}

/// Whether the bytes after the last line break are nothing, or a record that only lacks its line break.
fn complete_tail(bytes: &[u8]) -> bool {
    let tail = memchr::memrchr(b'\n', bytes).map_or(bytes, |at| &bytes[at + 1..]);
    tail.is_empty() || Line::parse(tail).is_some()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn file(bytes: &[u8]) -> File {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        file
    }

    /// All windows of a file, one after the other.
    fn all(bytes: &[u8], limit: usize) -> (Vec<u8>, Vec<u8>) {
        let mut file = file(bytes);
        let (mut forwards, mut at) = (Vec::new(), 0);
        loop {
            let window = forward(&mut file, at, limit).unwrap();
            assert_eq!(window.start, at);
            if window.bytes.is_empty() {
                break;
            }
            at = window.end();
            forwards.extend(window.bytes);
        }
        let (mut backwards, mut to) = (Vec::new(), None);
        loop {
            let window = backward(&mut file, to, limit).unwrap();
            if window.bytes.is_empty() {
                break;
            }
            assert!(window.end() <= to.unwrap_or(window.file_len));
            to = Some(window.start);
            backwards.splice(0..0, window.bytes);
        }
        (forwards, backwards)
    }

    #[test]
    fn windows_hold_whole_lines() {
        let mut file = file(b"one\ntwo\nthree\n");
        let text = |window: Window| (window.start, String::from_utf8(window.bytes).unwrap());
        assert_eq!(text(forward(&mut file, 0, 9).unwrap()), (0, "one\ntwo\n".into()));
        assert_eq!(text(forward(&mut file, 8, 1).unwrap()), (8, "three\n".into()));
        assert_eq!(text(forward(&mut file, 14, 9).unwrap()), (14, String::new()));
        assert_eq!(text(forward(&mut file, 99, 9).unwrap()), (14, String::new()));
        assert_eq!(text(backward(&mut file, None, 11).unwrap()), (4, "two\nthree\n".into()));
        assert_eq!(text(backward(&mut file, None, 10).unwrap()), (4, "two\nthree\n".into()));
        assert_eq!(text(backward(&mut file, None, 9).unwrap()), (8, "three\n".into()));
        assert_eq!(text(backward(&mut file, Some(8), 1).unwrap()), (4, "two\n".into()));
        assert_eq!(text(backward(&mut file, Some(0), 5).unwrap()), (0, String::new()));
    }

    #[test]
    fn a_torn_tail_is_left_out_unless_it_is_a_record() {
        let record = r#"{"type":"event_msg","payload":{}}"#;
        for limit in [1, 5, 1000] {
            for torn in 1..record.len() {
                let bytes = format!("one\n{}", &record[..torn]);
                assert_eq!(all(bytes.as_bytes(), limit), (b"one\n".to_vec(), b"one\n".to_vec()), "{limit} {torn}");
            }
            let bytes = format!("one\n{record}").into_bytes();
            assert_eq!(all(&bytes, limit), (bytes.clone(), bytes));
            assert_eq!(all(b"{\"ty", limit), (vec![], vec![]));
        }
    }

    proptest! {
        #[test]
        fn windows_make_up_the_file(lines in prop::collection::vec("[a-c]{0,9}", 0..9), torn in "x{0,12}", limit in 1usize..20) {
            let whole: String = lines.iter().map(|line| format!("{line}\n")).collect();
            let (forwards, backwards) = all(format!("{whole}{torn}").as_bytes(), limit);
            prop_assert_eq!(String::from_utf8(forwards).unwrap(), whole.clone());
            prop_assert_eq!(String::from_utf8(backwards).unwrap(), whole);
        }
    }
}
