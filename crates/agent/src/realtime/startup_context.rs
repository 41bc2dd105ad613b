//! What the model of a realtime session is told about the thread at first: its last turns, other threads, and the files
//! around it. Everything in it is bounded.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use loomd_git::Repository;
use loomd_protocol::{ThreadItem, ThreadSortKey, Turn, UserInput};
use loomd_store::{ListQuery, Reader, Store, StoredThread, ThreadId};

use crate::turns::Turns;

/// The end of the rollout that turns are read from.
const REACH: usize = 512 * 1024;
const MAX_TURNS: usize = 6;
/// The most characters of a message.
const MAX_MESSAGE: usize = 1200;
const MAX_THREADS: usize = 40;
const MAX_REPOSITORIES: usize = 8;
const MAX_REQUESTS: usize = 5;
/// The most characters of a request in another thread.
const MAX_REQUEST: usize = 240;
const TREE_DEPTH: usize = 2;
/// The most entries of one folder, and how many are looked at to find them.
const MAX_ENTRIES: usize = 20;
const MAX_LOOKED_AT: usize = 2000;

/// Folders that say nothing about a project.
const NOISE: &[&str] = &["__pycache__", "build", "dist", "node_modules", "out", "target", "venv"];

pub(super) struct StartupContext<'a> {
    pub thread: ThreadId,
    /// `None` for a thread without records.
    pub reader: Option<&'a dyn Reader>,
    pub store: &'a dyn Store,
    pub cwd: &'a str,
    /// The home directory of the user.
    pub home: Option<&'a str>,
}

impl StartupContext<'_> {
    /// `None` when there is nothing to tell. What cannot be read is left out.
    pub async fn text(&self) -> Option<String> {
        let turns = self.turns().await;
        let threads = self.threads().await;
        let (cwd, home) = (PathBuf::from(self.cwd), self.home.map(PathBuf::from));
        let looked = tokio::task::spawn_blocking(move || (work(&threads), workspace(&cwd, home.as_deref())));
        let (work, workspace) = looked.await.unwrap_or_default();
        let sections: Vec<String> = [thread_section(&turns), work, workspace].into_iter().flatten().collect();
        if sections.is_empty() {
            return None;
        }
        Some(format!(
            "# Background\n\nGathered when this conversation started, and possibly incomplete or out of date. Draw on it \
             where it helps; do not recite it.\n\n{}",
            sections.join("\n\n")
        ))
    }

    /// The last turns of the thread.
    async fn turns(&self) -> Vec<Turn> {
        let Some(reader) = self.reader else { return Vec::new() };
        let Ok(window) = reader.records_before(None, REACH).await else { return Vec::new() };
        let mut turns = Turns::new(self.thread);
        for line in window.lines() {
            turns.push_bytes(line.bytes);
        }
        let mut turns = turns.finish();
        turns.drain(..turns.len().saturating_sub(MAX_TURNS));
        turns
    }

    /// The threads that were used last.
    async fn threads(&self) -> Vec<StoredThread> {
        let query = ListQuery {
            sort: ThreadSortKey::UpdatedAt,
            limit: MAX_THREADS,
            providers: None,
            ..ListQuery::new(String::new())
        };
        self.store.list(query).await.map(|page| page.threads).unwrap_or_default()
    }
}

fn thread_section(turns: &[Turn]) -> Option<String> {
    let mut text = String::from("## Current Thread\n\nIts last turns, the latest at the end.");
    let mut any = false;
    for turn in turns {
        let user = messages(turn, |item| match item {
            ThreadItem::UserMessage { content, .. } => Some(said(content)),
            _ => None,
        });
        let agent = messages(turn, |item| match item {
            ThreadItem::AgentMessage { text, .. } => Some(text.clone()),
            _ => None,
        });
        for (speaker, message) in [("User", user), ("Assistant", agent)] {
            if !message.is_empty() {
                any = true;
                _ = write!(text, "\n\n{speaker}:\n{}", cut(&message, MAX_MESSAGE));
            }
        }
    }
    any.then_some(text)
}

fn messages(turn: &Turn, of: impl Fn(&ThreadItem) -> Option<String>) -> String {
    turn.items.iter().filter_map(of).filter(|text| !text.trim().is_empty()).collect::<Vec<_>>().join("\n\n")
}

fn said(content: &[UserInput]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        UserInput::Text { text, .. } => Some(text.as_str()),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

/// What other threads were asked, by repository. Blocks.
fn work(threads: &[StoredThread]) -> Option<String> {
    let mut groups: Vec<(String, Vec<&StoredThread>)> = Vec::new();
    let mut roots: BTreeMap<&str, String> = BTreeMap::new();
    for thread in threads.iter().filter(|thread| thread.preview.is_some()) {
        let cwd = thread.meta.cwd.as_str();
        let root = roots.entry(cwd).or_insert_with(|| match Repository::find(Path::new(cwd)) {
            Some(repository) => format!("Git repository {}", repository.main_work_tree().display()),
            None => format!("Folder {cwd}"),
        });
        match groups.iter_mut().find(|(name, _)| name == root) {
            Some((_, members)) => members.push(thread),
            None => groups.push((root.clone(), vec![thread])),
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut text = String::from("## Recent Work");
    for (name, members) in groups.iter().take(MAX_REPOSITORIES) {
        let latest = members.iter().map(|thread| thread.updated_at).max().unwrap_or_default();
        let latest = Timestamp::from_second(latest).unwrap_or_default();
        _ = write!(text, "\n\n### {name}\nThreads: {}, last used {latest:.0}\nRequests:", members.len());
        for thread in members.iter().take(MAX_REQUESTS) {
            let request =
                thread.preview.as_deref().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
            _ = write!(text, "\n- {}", cut(&request, MAX_REQUEST));
        }
    }
    Some(text)
}

/// The working directory and what is in it. `None` for an empty one outside of a repository. Blocks.
fn workspace(cwd: &Path, home: Option<&Path>) -> Option<String> {
    let mut tree = String::new();
    list(cwd, 0, &mut tree);
    let repository = Repository::find(cwd);
    if tree.is_empty() && repository.is_none() {
        return None;
    }
    let mut text = format!("## Machine / Workspace Map\n\nWorking directory: {}", cwd.display());
    if let Some(repository) = repository {
        _ = write!(text, "\nGit repository: {}", repository.main_work_tree().display());
    }
    if let Some(home) = home {
        _ = write!(text, "\nHome directory: {}", home.display());
    }
    if !tree.is_empty() {
        _ = write!(text, "\n\nFiles:{tree}");
    }
    Some(text)
}

fn list(folder: &Path, depth: usize, tree: &mut String) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut entries: Vec<(String, bool)> = entries
        .take(MAX_LOOKED_AT)
        .flatten()
        .map(|entry| {
            let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            (entry.file_name().to_string_lossy().into_owned(), is_folder)
        })
        .filter(|(name, _)| !name.starts_with('.') && !NOISE.contains(&name.as_str()))
        .collect();
    // Folders first.
    entries.sort_by(|(a, a_folder), (b, b_folder)| b_folder.cmp(a_folder).then_with(|| a.cmp(b)));
    let more = entries.len().saturating_sub(MAX_ENTRIES);
    for (name, is_folder) in entries.into_iter().take(MAX_ENTRIES) {
        let slash = if is_folder { "/" } else { "" };
        _ = write!(tree, "\n{}- {name}{slash}", "  ".repeat(depth));
        if is_folder && depth + 1 < TREE_DEPTH {
            list(&folder.join(name), depth + 1, tree);
        }
    }
    if more > 0 {
        _ = write!(tree, "\n{}- and {more} more", "  ".repeat(depth));
    }
}

/// The beginning of a text.
fn cut(text: &str, max: usize) -> String {
    let text = text.trim();
    match text.char_indices().nth(max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_the_working_directory_are_listed_two_folders_deep_and_bounded() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(workspace(dir.path(), None), None);
        std::fs::create_dir_all(dir.path().join("src/deep/deeper")).unwrap();
        std::fs::create_dir_all(dir.path().join("node_modules/x")).unwrap();
        std::fs::write(dir.path().join(".hidden"), "").unwrap();
        for name in 0..25 {
            std::fs::write(dir.path().join(format!("file{name:02}")), "").unwrap();
        }
        let text = workspace(dir.path(), Some(Path::new("/home/me"))).unwrap();
        let files: Vec<&str> = text.lines().skip_while(|line| *line != "Files:").skip(1).collect();
        assert_eq!(files[..3], ["- src/", "  - deep/", "- file00"]);
        assert_eq!((files.len(), files[files.len() - 1]), (22, "- and 6 more"));
        assert!(text.contains("Home directory: /home/me"), "{text}");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert_eq!(cut("  ümlaut ", 3), "üml…");
        assert_eq!(cut(" ab ", 2), "ab");
    }
}
