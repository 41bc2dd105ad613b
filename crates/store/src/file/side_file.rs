//! A small append-only file of JSON lines beside the rollouts, where the last line of an id wins. It is
//! read once and then only as far as it has grown; a torn tail is terminated before the next append.

use std::collections::HashMap;
use std::fs;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;

use crate::batch::Batch;
use crate::error::{Error, Result};
use crate::file::descriptors;
use crate::file::journal::{self, Expect};
use crate::rollout::whole_lines;
use crate::{Durability, ThreadId};

/// The lines of one side file, folded. `V` is a line's value for its thread.
pub(crate) struct SideFile<V> {
    path: PathBuf,
    parse: fn(&[u8]) -> Option<(ThreadId, V)>,
    values: HashMap<ThreadId, V>,
    /// How much of the file `values` stands for: whole lines only.
    read: u64,
    /// The file's length and time at the last look. Equal means that nothing has changed.
    seen: Option<(u64, std::time::SystemTime)>,
}

impl<V> SideFile<V> {
    pub(crate) fn new(path: PathBuf, parse: fn(&[u8]) -> Option<(ThreadId, V)>) -> Self {
        Self { path, parse, values: HashMap::new(), read: 0, seen: None }
    }

    /// The value in the last line of a thread.
    pub(crate) fn get(&mut self, id: &ThreadId) -> Result<Option<&V>> {
        self.catch_up().map_err(Error::io(&self.path))?;
        Ok(self.values.get(id))
    }

    /// Every thread's last line.
    pub(crate) fn all(&mut self) -> Result<&HashMap<ThreadId, V>> {
        self.catch_up().map_err(Error::io(&self.path))?;
        Ok(&self.values)
    }

    /// Appends one line (with its line break).
    pub(crate) fn append(&mut self, line: Vec<u8>) -> Result<()> {
        journal::append(&self.path, &Batch::of_lines(line), None, Expect::Any, Durability::Synced)?;
        Ok(())
    }

    fn catch_up(&mut self) -> io::Result<()> {
        let meta = match fs::metadata(&self.path) {
            Ok(meta) => meta,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                self.values.clear();
                (self.read, self.seen) = (0, None);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let state = (meta.len(), meta.modified()?);
        if self.seen == Some(state) {
            return Ok(());
        }
        if self.seen.is_some_and(|(len, _)| state.0 <= len) {
            // Not longer, yet changed: rewritten by hand.
            self.values.clear();
            self.read = 0;
        }
        let mut bytes = Vec::new();
        let mut file = descriptors::open_file(&self.path)?;
        file.seek(SeekFrom::Start(self.read))?;
        file.read_to_end(&mut bytes)?;
        for (_, line) in whole_lines(&bytes) {
            if let Some((id, value)) = (self.parse)(line) {
                self.values.insert(id, value);
            }
        }
        // A line without its end is read again when it has grown.
        self.read += memchr::memrchr(b'\n', &bytes).map_or(0, |at| at as u64 + 1);
        self.seen = Some(state);
        Ok(())
    }
}
