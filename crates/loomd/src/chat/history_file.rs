//! [`HistoryFile`]: earlier inputs of all chats, `history.jsonl` in the home, one JSON object per line. Another process
//! may append to it at the same time.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use loomd_config::config_toml::{History as HistoryConfig, HistoryPersistence};
use serde::{Deserialize, Serialize};

/// How much of the end of the file is read.
const READ: u64 = 1024 * 1024;

/// A longer input is not stored.
const MAX_ENTRY: usize = 100 * 1024;

pub struct HistoryFile {
    /// `None` if the user wants no history.
    path: Option<PathBuf>,
    max_bytes: Option<u64>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    session_id: String,
    ts: u64,
    text: String,
}

impl HistoryFile {
    pub fn new(home: &Path, config: Option<&HistoryConfig>) -> Self {
        let wanted = config.is_none_or(|config| config.persistence == HistoryPersistence::SaveAll);
        Self {
            path: wanted.then(|| home.join("history.jsonl")),
            max_bytes: config.and_then(|config| config.max_bytes).and_then(|bytes| u64::try_from(bytes).ok()),
        }
    }

    /// The stored inputs, the oldest first. A line that is none is skipped.
    pub fn read(&self) -> Vec<String> {
        let Some(bytes) = self.path.as_deref().and_then(|path| read_end(path, READ)) else { return Vec::new() };
        let entries = bytes.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice::<Entry>(line).ok());
        entries.map(|entry| entry.text).collect()
    }

    /// Appends an input. A chat goes on without its history, so failures are ignored.
    pub fn append(&self, thread_id: &str, text: &str) {
        let Some(path) = self.path.as_deref().filter(|_| text.len() <= MAX_ENTRY) else { return };
        let ts = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let entry = Entry { session_id: thread_id.to_owned(), ts, text: text.to_owned() };
        let Ok(mut line) = serde_json::to_vec(&entry) else { return };
        line.push(b'\n');
        let opened = loomd_private::options().append(true).create(true).open(path);
        let Ok(size) = opened.and_then(|mut file| {
            file.write_all(&line)?;
            Ok(file.metadata()?.len())
        }) else {
            return;
        };
        if let Some(max) = self.max_bytes.filter(|max| size > *max)
            // Four fifths stay, so that not every input rewrites the file.
            && let Some(end) = read_end(path, max / 5 * 4)
        {
            _ = loomd_private::replace(path, end);
        }
    }
}

/// The last whole lines of a file, up to `limit` bytes.
fn read_end(path: &Path, limit: u64) -> Option<Vec<u8>> {
    let (mut file, metadata) = loomd_regular::open(path).ok()?;
    let skipped = metadata.len().saturating_sub(limit);
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(skipped)).ok()?;
    File::take(file, limit).read_to_end(&mut bytes).ok()?;
    if skipped > 0 {
        let first = bytes.iter().position(|byte| *byte == b'\n').map_or(bytes.len(), |at| at + 1);
        bytes.drain(..first);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_stored_in_order_and_lines_that_are_none_are_skipped() {
        let home = tempfile::tempdir().unwrap();
        let file = HistoryFile::new(home.path(), None);
        assert!(file.read().is_empty());
        file.append("t", "one\ntwo");
        std::fs::OpenOptions::new()
            .append(true)
            .open(home.path().join("history.jsonl"))
            .unwrap()
            .write_all(b"not json\n")
            .unwrap();
        file.append("t", "three");
        assert_eq!(file.read(), ["one\ntwo", "three"]);
    }

    #[test]
    fn the_file_is_bounded_and_nothing_is_stored_if_it_is_not_wanted() {
        let home = tempfile::tempdir().unwrap();
        let config = HistoryConfig { max_bytes: Some(500), ..HistoryConfig::default() };
        let file = HistoryFile::new(home.path(), Some(&config));
        (0..100).for_each(|number| file.append("t", &format!("input {number}")));
        let stored = file.read();
        assert_eq!(stored.last().map(String::as_str), Some("input 99"));
        assert!(std::fs::metadata(home.path().join("history.jsonl")).unwrap().len() <= 500, "{stored:?}");
        let other = tempfile::tempdir().unwrap();
        let config = HistoryConfig { persistence: HistoryPersistence::None, ..HistoryConfig::default() };
        HistoryFile::new(other.path(), Some(&config)).append("t", "secret");
        assert!(!other.path().join("history.jsonl").exists());
    }
}
