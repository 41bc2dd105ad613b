//! Notes about unfinished turns: a small file of lines for each thread, in a folder of its own, so that a start finds
//! the threads by listing it.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::off_thread;
use crate::ThreadId;
use crate::error::{Error, Result};
use crate::store::{Answer, TurnNotes};

/// The folder, inside the home.
const FOLDER: &str = "loomd/turns";

/// The end of the file names.
const EXTENSION: &str = "jsonl";

/// The most bytes that are written on the calling thread.
const SMALL: usize = 64 * 1024;

/// The most bytes of a file that are read. What a turn notes is far below it.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The notes of the threads of one home. Nothing is created before a turn is noted.
pub(super) struct FileTurnNotes {
    folder: PathBuf,
}

impl FileTurnNotes {
    pub(super) fn new(home: &Path) -> Self {
        Self { folder: home.join(FOLDER) }
    }

    fn path(&self, id: ThreadId) -> PathBuf {
        self.folder.join(format!("{id}.{EXTENSION}"))
    }
}

impl TurnNotes for FileTurnNotes {
    fn replace(&self, id: ThreadId, lines: Vec<u8>) -> Answer<'_, ()> {
        let path = self.path(id);
        Box::pin(written(lines.len(), move || replace(&path, &lines).map_err(Error::io(&path))))
    }

    fn add(&self, id: ThreadId, line: Vec<u8>) -> Answer<'_, ()> {
        let path = self.path(id);
        Box::pin(written(line.len(), move || append(&path, &line).map_err(Error::io(&path))))
    }

    fn read(&self, id: ThreadId) -> Answer<'_, Vec<u8>> {
        let path = self.path(id);
        Box::pin(off_thread(move || read(&path).map_err(Error::io(&path))))
    }

    fn remove(&self, id: ThreadId) -> Answer<'_, ()> {
        let path = self.path(id);
        Box::pin(written(0, move || match fs::remove_file(&path) {
            Err(error) if !is_missing(&error) => Err(Error::io(&path)(error)),
            _ => Ok(()),
        }))
    }

    fn threads(&self) -> Answer<'_, Vec<ThreadId>> {
        let folder = self.folder.clone();
        Box::pin(off_thread(move || list(&folder)))
    }
}

/// Does a small write on the calling thread, as with rollouts: the hop to another thread would take longer.
async fn written(bytes: usize, write: impl FnOnce() -> Result<()> + Send + 'static) -> Result<()> {
    if bytes <= SMALL { write() } else { off_thread(write).await }
}

/// Replaces the file. A process that is killed meanwhile leaves the old or the new one.
fn replace(path: &Path, lines: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let create = || loomd_private::options().write(true).create(true).truncate(true).open(&new);
    let mut file = match create() {
        Err(error) if is_missing(&error) => {
            loomd_private::create_dir_all(path.parent().ok_or(io::ErrorKind::InvalidFilename)?)?;
            create()?
        }
        created => created?,
    };
    file.write_all(lines)?;
    drop(file);
    fs::rename(&new, path)
}

fn append(path: &Path, line: &[u8]) -> io::Result<()> {
    fs::OpenOptions::new().append(true).open(path)?.write_all(line)
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    match loomd_regular::read(path, MAX_BYTES) {
        Err(error) if is_missing(&error) => Ok(Vec::new()),
        read => read,
    }
}

fn list(folder: &Path) -> Result<Vec<ThreadId>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if is_missing(&error) => return Ok(Vec::new()),
        entries => entries.map_err(Error::io(folder))?,
    };
    let mut ids: Vec<ThreadId> = entries
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            if path.extension()? != EXTENSION {
                return None;
            }
            path.file_stem()?.to_str()?.parse().ok()
        })
        .collect();
    ids.sort_unstable();
    Ok(ids)
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
