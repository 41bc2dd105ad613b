//! Names of threads: `session_index.jsonl` in the home, shared with other servers. Each line names one thread, and the
//! last line of a thread counts. The index keeps a copy (`index/names.rs`), from which names are looked up.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::error::Result;
use crate::file::journal::{self, Expect};
use crate::{Durability, ThreadId};

#[derive(Serialize, Deserialize)]
struct NameLine {
    id: ThreadId,
    thread_name: String,
    #[serde(default)]
    updated_at: String,
}

/// The names file of a home.
pub(crate) fn path(home: &Path) -> PathBuf {
    home.join("session_index.jsonl")
}

/// The thread that a line names, and its name. `None` for any other line.
pub(crate) fn parse(line: &[u8]) -> Option<(ThreadId, String)> {
    let line: NameLine = serde_json::from_slice(line).ok()?;
    Some((line.id, line.thread_name))
}

/// Names a thread. The line is on the disk when this returns.
pub(crate) fn append(home: &Path, id: ThreadId, name: &str) -> Result<()> {
    let line = NameLine { id, thread_name: name.to_owned(), updated_at: format!("{:.9}", Timestamp::now()) };
    let mut line = serde_json::to_vec(&line)?;
    line.push(b'\n');
    journal::append(&path(home), &Batch::of_lines(line), None, Expect::Any, Durability::Synced)?;
    Ok(())
}
