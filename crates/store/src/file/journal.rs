//! Appending whole lines to a file that other programs may append to as well. A batch is one write, so that it is with
//! the operating system before the call returns and another writer cannot split it; what does not fit on the disk is
//! taken back. No descriptor is kept between calls, so that a file that was moved or deleted meanwhile is noticed.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::file::descriptors;
use crate::{Appended, Durability, Position};

/// Whether the file has to be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Made, with its folder, when missing.
    Any,
    /// A missing file is an error: another program has moved or deleted it.
    Existing,
}

/// Appends a batch. `known` is the length of the file's whole lines as this process knows it.
pub(crate) fn append(
    path: &Path,
    batch: &Batch,
    known: Option<u64>,
    expect: Expect,
    durability: Durability,
) -> Result<Appended> {
    let mut file = open(path, expect).map_err(Error::io(path))?;
    append_to(&mut file, batch, known, durability).map_err(Error::io(path))
}

/// Opens the file to append to it. Never waits, as for the reader of a FIFO, and refuses what is no regular file.
fn open(path: &Path, expect: Expect) -> io::Result<File> {
    let mut options = loomd_private::options();
    options.read(true).append(true).create(expect == Expect::Any);
    options.custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits() as i32);
    let file = match descriptors::open(|| options.open(path)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound && expect == Expect::Any => {
            if let Some(folder) = path.parent() {
                loomd_private::create_dir_all(folder)?;
            }
            options.open(path)
        }
        opened => opened,
    }?;
    loomd_regular::check(&file)?;
    Ok(file)
}

fn append_to(file: &mut File, batch: &Batch, known: Option<u64>, durability: Durability) -> io::Result<Appended> {
    let Length { whole, all } = measure(file, known)?;
    let torn = whole < all;
    let start = all + u64::from(torn);
    if torn {
        // The broken record becomes a line of its own, which every reader skips, in the same write.
        let mut bytes = Vec::with_capacity(batch.bytes().len() + 1);
        bytes.push(b'\n');
        bytes.extend_from_slice(batch.bytes());
        write_whole(file, all, &bytes)?;
    } else {
        write_whole(file, all, batch.bytes())?;
    }
    if durability == Durability::Synced {
        file.sync_data()?;
    }
    Ok(Appended { start: Position::new(start), end: Position::new(start + batch.bytes().len() as u64) })
}

/// Writes all of `bytes` or, as far as that is possible, nothing.
fn write_whole(file: &mut File, len: u64, bytes: &[u8]) -> io::Result<()> {
    let mut written = 0;
    while written < bytes.len() {
        match file.write(&bytes[written..]) {
            Ok(0) => return Err(take_back(file, len, written, io::ErrorKind::WriteZero.into())),
            Ok(count) => written += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(take_back(file, len, written, error)),
        }
    }
    Ok(())
}

/// Cuts a half-written batch off again, unless another program has appended to it in the meantime.
fn take_back(file: &mut File, len: u64, written: usize, error: io::Error) -> io::Error {
    if written > 0 && file.metadata().is_ok_and(|meta| meta.len() == len + written as u64) {
        let _ = file.set_len(len);
    }
    error
}

/// The length of a rollout file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Length {
    /// Up to the end of the last whole line.
    pub whole: u64,
    /// All of it: more when the last line is torn.
    pub all: u64,
}

/// Measures a file by its end. One whose whole lines are still `known` bytes long is not read at all.
pub(crate) fn measure(file: &mut File, known: Option<u64>) -> io::Result<Length> {
    let all = file.metadata()?.len();
    if known == Some(all) {
        return Ok(Length { whole: all, all });
    }
    let mut buffer = Vec::new();
    let mut end = all;
    while end > 0 {
        // Mostly the last byte ends a line; else the line is looked for from its end.
        let start = end.saturating_sub(if end == all { 1 } else { PIECE });
        buffer.resize(usize::try_from(end - start).unwrap_or_default(), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut buffer)?;
        if let Some(last) = memchr::memrchr(b'\n', &buffer) {
            return Ok(Length { whole: start + last as u64 + 1, all });
        }
        end = start;
    }
    Ok(Length { whole: 0, all })
}

/// How much of a torn line is looked at at a time.
const PIECE: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Failure;
    use crate::rollout::{Line, whole_lines};

    const LINE: &[u8] = br#"{"type":"event_msg","payload":{"type":"context_compacted"}}"#;

    fn batch() -> Batch {
        Batch::of_lines([LINE, b"\n"].concat())
    }

    fn add(path: &Path, known: Option<u64>) -> Appended {
        append(path, &batch(), known, Expect::Any, Durability::Flushed).unwrap()
    }

    #[test]
    fn a_torn_tail_at_any_byte_costs_no_whole_record() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        for torn in 0..=LINE.len() + 1 {
            let last = &[LINE, b"\n"].concat()[..torn];
            std::fs::write(&path, [LINE, b"\n", last].concat()).unwrap();
            let appended = add(&path, None);
            let file = std::fs::read(&path).unwrap();
            let readable = whole_lines(&file).filter(|(_, line)| Line::parse(line).is_some()).count();
            assert_eq!(readable, if torn >= LINE.len() { 3 } else { 2 }, "{torn}");
            assert!(file.ends_with(b"\n"));
            assert_eq!(appended.end.get(), file.len() as u64, "{torn}");
            assert_eq!(&file[appended.start.get() as usize..], batch().bytes());
        }
    }

    #[test]
    fn an_append_starts_after_what_other_programs_appended() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/r.jsonl");
        let step = batch().bytes().len() as u64;
        let start = |known: Option<Appended>| add(&path, known.map(|known| known.end.get()));
        let first = start(None);
        assert_eq!((first.start.get(), first.end.get()), (0, step));
        let second = start(Some(first));
        assert_eq!(second.start, first.end);
        let foreign = start(None);
        assert_eq!(foreign.start, second.end);
        let third = start(Some(second));
        assert_eq!(third.start, foreign.end);
        // Another writer was cut off in the middle of a line.
        std::fs::write(&path, [std::fs::read(&path).unwrap(), LINE[..9].to_vec()].concat()).unwrap();
        let fourth = start(Some(third));
        assert_eq!(fourth.start.get(), third.end.get() + 10);
        // Rewritten by hand.
        std::fs::write(&path, b"").unwrap();
        assert_eq!(start(Some(fourth)).start, Position::START);
    }

    #[test]
    fn whole_lines_end_before_a_torn_one_however_long_it_is() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        for (text, whole) in [
            (String::new(), 0),
            ("torn".into(), 0),
            ("line\n".into(), 5),
            ("line\ntorn".into(), 5),
            (format!("line\n{}", "x".repeat(200_000)), 5),
            ("x".repeat(200_000), 0),
        ] {
            std::fs::write(&path, &text).unwrap();
            let measured = measure(&mut File::open(&path).unwrap(), None).unwrap();
            assert_eq!((measured.whole, measured.all), (whole, text.len() as u64), "{}", text.len());
        }
    }

    #[test]
    fn an_append_does_not_create_a_thread_that_was_deleted() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        let error = append(&path, &batch(), None, Expect::Existing, Durability::Flushed).unwrap_err();
        assert!(matches!(error, Error::Storage { failure: Failure::Missing, .. }));
        assert!(!path.exists());
    }

    #[test]
    fn an_append_to_a_fifo_is_refused_and_does_not_wait() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RWXU).unwrap();
        for expect in [Expect::Any, Expect::Existing] {
            let error = append(&path, &batch(), None, expect, Durability::Flushed).unwrap_err();
            assert!(error.to_string().contains("regular file"), "{error}");
        }
    }

    #[test]
    fn a_home_that_cannot_be_written_to_is_a_clear_error() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("file"), "").unwrap();
        let path = home.path().join("file/sessions/r.jsonl");
        let error = append(&path, &batch(), None, Expect::Any, Durability::Synced).unwrap_err();
        assert!(matches!(&error, Error::Storage { .. }) && error.to_string().contains("file/sessions"), "{error}");
    }
}
