//! Reading a part of a rollout file in whole lines, forwards or backwards, so that a long thread is never held in memory
//! at once. Positions are byte offsets. Damage stays in its line: bytes are not interpreted here.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::rollout::Line;
use crate::{Position, Window};

/// The lines after an offset: at most `limit` bytes, but at least one line.
pub(super) fn forward(file: &mut File, from: Position, limit: usize) -> io::Result<Window> {
    let len = file.metadata()?.len();
    let start = from.get().min(len);
    let mut bytes = Vec::new();
    let mut want = limit.max(1);
    file.seek(SeekFrom::Start(start))?;
    loop {
        let had = bytes.len();
        bytes.reserve_exact(want.min((len - start) as usize).saturating_sub(had));
        Read::by_ref(file).take((want - had) as u64).read_to_end(&mut bytes)?;
        let at_end = bytes.len() < want || start + bytes.len() as u64 >= len;
        if at_end && complete_tail(&bytes) {
            break;
        }
        if let Some(last) = memchr::memrchr(b'\n', &bytes[had.min(bytes.len())..]) {
            bytes.truncate(had + last + 1);
            break;
        }
        if at_end {
            bytes.clear();
            break;
        }
        want = bytes.len() * 2;
    }
    Ok(Window::of_bytes(start, len, bytes))
}

/// The lines that end at or before an offset (the end of the file when `None`): at most `limit` bytes, but at least one
/// line.
pub(super) fn backward(file: &mut File, to: Option<Position>, limit: usize) -> io::Result<Window> {
    let len = file.metadata()?.len();
    let mut end = to.map_or(len, Position::get).min(len);
    let mut want = (limit.max(1) as u64).min(end);
    loop {
        let from = end - want;
        // One byte more shows whether a line begins at `from`.
        let first = from.saturating_sub(1);
        let mut bytes = vec![0; (end - first) as usize];
        file.seek(SeekFrom::Start(first))?;
        file.read_exact(&mut bytes)?;
        let skip = if from == 0 { Some(0) } else { memchr::memchr(b'\n', &bytes).map(|at| at + 1) };
        let tail = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        // A torn line at the end is not part of the answer.
        let keep = if end == len && !complete_tail(&bytes[tail..]) { tail } else { bytes.len() };
        match skip {
            Some(skip) if skip < keep || from == 0 => {
                let skip = skip.min(keep);
                bytes.truncate(keep);
                bytes.drain(..skip);
                return Ok(Window::of_bytes(first + skip as u64, len, bytes));
            }
            // Nothing but the torn line so far: start over before it.
            Some(_) if keep < bytes.len() && first + (keep as u64) < end => {
                end = first + keep as u64;
                want = (limit.max(1) as u64).min(end);
            }
            _ => want = (want * 2).min(end),
        }
        if end == 0 {
            return Ok(Window::of_bytes(0, len, Vec::new()));
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
        let (mut forwards, mut at) = (Vec::new(), Position::START);
        loop {
            let window = forward(&mut file, at, limit).unwrap();
            assert_eq!(window.start(), at);
            if window.is_empty() {
                break;
            }
            at = window.end();
            forwards.extend(window.bytes());
        }
        let (mut backwards, mut to) = (Vec::new(), None);
        loop {
            let window = backward(&mut file, to, limit).unwrap();
            if window.is_empty() {
                break;
            }
            assert!(window.end() <= to.unwrap_or(window.thread_end()));
            to = Some(window.start());
            backwards.splice(0..0, window.bytes().to_vec());
        }
        (forwards, backwards)
    }

    #[test]
    fn windows_hold_whole_lines() {
        let mut file = file(b"one\ntwo\nthree\n");
        let text = |window: Window| (window.start().get(), String::from_utf8(window.bytes().to_vec()).unwrap());
        assert_eq!(text(forward(&mut file, Position::new(0), 9).unwrap()), (0, "one\ntwo\n".into()));
        assert_eq!(text(forward(&mut file, Position::new(8), 1).unwrap()), (8, "three\n".into()));
        assert_eq!(text(forward(&mut file, Position::new(14), 9).unwrap()), (14, String::new()));
        assert_eq!(text(forward(&mut file, Position::new(99), 9).unwrap()), (14, String::new()));
        assert_eq!(text(backward(&mut file, None, 11).unwrap()), (4, "two\nthree\n".into()));
        assert_eq!(text(backward(&mut file, None, 10).unwrap()), (4, "two\nthree\n".into()));
        assert_eq!(text(backward(&mut file, None, 9).unwrap()), (8, "three\n".into()));
        assert_eq!(text(backward(&mut file, Some(Position::new(8)), 1).unwrap()), (4, "two\n".into()));
        assert_eq!(text(backward(&mut file, Some(Position::new(0)), 5).unwrap()), (0, String::new()));
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
