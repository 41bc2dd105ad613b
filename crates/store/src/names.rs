//! Names of threads: `session_index.jsonl` in the home, shared with other servers.

use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::side_file::SideFile;
use crate::{StoredThread, ThreadId};

/// The names that were given to threads.
pub(crate) struct Names(SideFile<String>);

#[derive(Serialize, Deserialize)]
struct Entry {
    id: ThreadId,
    thread_name: String,
    #[serde(default)]
    updated_at: String,
}

impl Names {
    pub(crate) fn new(home: &Path) -> Self {
        Self(SideFile::new(home.join("session_index.jsonl"), |line| {
            let entry: Entry = serde_json::from_slice(line).ok()?;
            Some((entry.id, entry.thread_name))
        }))
    }

    /// The thread's name, trimmed. A blank one counts as none.
    pub(crate) fn get(&mut self, id: &ThreadId) -> Result<Option<String>> {
        Ok(self.0.get(id)?.and_then(|name| clean(name)))
    }

    /// Gives each thread its name.
    pub(crate) fn fill(&mut self, threads: &mut [StoredThread]) -> Result<()> {
        let names = self.0.all()?;
        for thread in threads {
            thread.name = names.get(&thread.id()).and_then(|name| clean(name));
        }
        Ok(())
    }

    pub(crate) fn set(&mut self, id: ThreadId, name: &str) -> Result<()> {
        let entry = Entry { id, thread_name: name.to_owned(), updated_at: format!("{:.9}", Timestamp::now()) };
        let mut line = serde_json::to_vec(&entry)?;
        line.push(b'\n');
        self.0.append(line)
    }
}

fn clean(name: &str) -> Option<String> {
    Some(name.trim()).filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "54cbd9a4-eb27-4019-a111-baa1c7c1e4e6";

    fn check(file: &str, name: Option<&str>) {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(home.path().join("session_index.jsonl"), file).unwrap();
        assert_eq!(Names::new(home.path()).get(&ID.parse().unwrap()).unwrap().as_deref(), name, "{file}");
    }

    fn line(name: &str) -> String {
        format!(r#"{{"id":"{ID}","thread_name":"{name}","updated_at":"2030-01-01T00:00:00Z"}}"#)
    }

    #[test]
    fn the_last_readable_line_wins() {
        check("", None);
        check(&format!("{}\n{}\ngarbage\n\n", line("old"), line("new")), Some("new"));
        check(&format!("{}\n{}", line("old"), line("no line break")), Some("no line break"));
        check(&format!("{}\n{}", line("old"), &line("torn")[..40]), Some("old"));
        check(&format!("{}\n", line("  padded ")), Some("padded"));
        check(&format!("{}\n{}\n", line("old"), line(" ")), None);
    }

    #[test]
    fn names_of_other_processes_and_after_a_torn_tail_are_seen() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("session_index.jsonl");
        let (mut ours, mut theirs) = (Names::new(home.path()), Names::new(home.path()));
        let id = ID.parse().unwrap();
        assert_eq!(ours.get(&id).unwrap(), None);
        theirs.set(id, "one").unwrap();
        assert_eq!(ours.get(&id).unwrap().as_deref(), Some("one"));
        std::fs::write(&path, [std::fs::read(&path).unwrap(), b"{\"id\":\"54cb".to_vec()].concat()).unwrap();
        assert_eq!(ours.get(&id).unwrap().as_deref(), Some("one"));
        theirs.set(id, "two").unwrap();
        assert_eq!(ours.get(&id).unwrap().as_deref(), Some("two"));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
    }
}
