//! Appending whole lines to a file that others may append to as well. A batch is one write, so that it is
//! with the operating system before the call returns and another writer cannot split it; what does not fit
//! on the disk is taken back. No descriptor is kept between calls.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use crate::batch::Batch;
use crate::descriptors;
use crate::error::{Error, Result};

/// How far a file has come, as this process knows it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// Bytes of whole lines.
    pub len: u64,
}

/// What an append did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The file after the append.
    pub extent: Extent,
    /// Where the batch's first line begins.
    pub start: u64,
    /// What others appended since this process last wrote or looked.
    pub foreign: Option<Range<u64>>,
}

/// How safe a batch is when the append returns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// With the operating system: survives the end of this process.
    #[default]
    Flushed,
    /// On the disk: survives the end of the machine.
    Synced,
}

/// Whether the file has to be there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expect {
    /// Made, with its folder, when missing.
    Any,
    /// A missing file is an error: it was moved or deleted behind our back.
    Existing,
}

/// Appends a batch. `known` is what this process knew of the file.
pub(crate) fn append(
    path: &Path,
    batch: &Batch,
    known: Option<Extent>,
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

fn append_to(file: &mut File, batch: &Batch, known: Option<Extent>, durability: Durability) -> io::Result<Appended> {
    let Measured { whole, len } = measure(file, known)?;
    let foreign = known.filter(|known| known.len != len).map(|known| {
        // A file that became shorter was rewritten: all of it is news.
        if known.len < len { known.len..len } else { 0..len }
    });
    let torn = whole.len < len;
    let start = len + u64::from(torn);
    if torn {
        // The broken record becomes a line of its own, which every reader skips, in the same write.
        let mut bytes = Vec::with_capacity(batch.bytes().len() + 1);
        bytes.push(b'\n');
        bytes.extend_from_slice(batch.bytes());
        put(file, len, &bytes)?;
    } else {
        put(file, len, batch.bytes())?;
    }
    if durability == Durability::Synced {
        file.sync_data()?;
    }
    let extent = Extent { len: start + batch.bytes().len() as u64 };
    Ok(Appended { extent, start, foreign })
}

/// Writes all of `bytes` or, as far as that is possible, nothing.
fn put(file: &mut File, len: u64, bytes: &[u8]) -> io::Result<()> {
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

/// Cuts a half-written batch off again, unless somebody has appended to it in the meantime.
fn take_back(file: &mut File, len: u64, written: usize, error: io::Error) -> io::Error {
    if written > 0 && file.metadata().is_ok_and(|meta| meta.len() == len + written as u64) {
        let _ = file.set_len(len);
    }
    error
}

/// How far a file has come.
pub(crate) struct Measured {
    /// Up to the end of the last whole line.
    pub whole: Extent,
    /// All of it: more when the last line lacks its end.
    pub len: u64,
}

/// Looks at the end of a file. One that `known` still describes is not read at all.
pub(crate) fn measure(file: &mut File, known: Option<Extent>) -> io::Result<Measured> {
    let len = file.metadata()?.len();
    if known == Some(Extent { len }) {
        return Ok(Measured { whole: Extent { len }, len });
    }
    let mut buffer = Vec::new();
    let mut end = len;
    while end > 0 {
        // Mostly the last byte ends a line; else the line is looked for from its end.
        let start = end.saturating_sub(if end == len { 1 } else { PIECE });
        buffer.resize(usize::try_from(end - start).unwrap_or_default(), 0);
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut buffer)?;
        if let Some(last) = memchr::memrchr(b'\n', &buffer) {
            return Ok(Measured { whole: Extent { len: start + last as u64 + 1 }, len });
        }
        end = start;
    }
    Ok(Measured { whole: Extent::default(), len })
}

/// How much of a torn line is looked at at a time.
const PIECE: u64 = 64 * 1024;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{Line, whole_lines};

    const LINE: &[u8] = br#"{"type":"event_msg","payload":{"type":"context_compacted"}}"#;

    fn batch() -> Batch {
        Batch::of_line([LINE, b"\n"].concat())
    }

    fn add(path: &Path, known: Option<Extent>) -> Appended {
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
            assert_eq!(appended.extent, Extent { len: file.len() as u64 }, "{torn}");
            assert_eq!(&file[appended.start as usize..], batch().bytes());
        }
    }

    #[test]
    fn foreign_records_are_noticed() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/r.jsonl");
        let first = add(&path, None);
        let step = batch().bytes().len() as u64;
        assert_eq!(first, Appended { extent: Extent { len: step }, start: 0, foreign: None });
        let second = add(&path, Some(first.extent));
        assert_eq!((second.start, second.foreign), (step, None));
        let stranger = add(&path, None);
        assert_eq!((stranger.start, stranger.foreign), (2 * step, None));
        let third = add(&path, Some(second.extent));
        assert_eq!((third.start, third.foreign), (3 * step, Some(2 * step..3 * step)));
        // Another writer was cut off in the middle of a line.
        std::fs::write(&path, [std::fs::read(&path).unwrap(), LINE[..9].to_vec()].concat()).unwrap();
        let fourth = add(&path, Some(third.extent));
        assert_eq!((fourth.start, fourth.foreign), (4 * step + 10, Some(4 * step..4 * step + 9)));
        // Rewritten by hand.
        std::fs::write(&path, b"").unwrap();
        assert_eq!(add(&path, Some(fourth.extent)).foreign, Some(0..0));
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
            assert_eq!((measured.whole.len, measured.len), (whole, text.len() as u64), "{}", text.len());
        }
    }

    #[test]
    fn a_file_that_vanished_is_not_made_anew() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("r.jsonl");
        let error = append(&path, &batch(), None, Expect::Existing, Durability::Flushed).unwrap_err();
        assert!(matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound));
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
        assert!(matches!(&error, Error::Io { .. }) && error.to_string().contains("file/sessions"), "{error}");
    }
}
