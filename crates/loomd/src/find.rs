//! Finds threads by id, name, prefix of an id, or `last`.

use std::cmp::Reverse;

use anyhow::{Result, bail};
use loomd_client::Client;
use loomd_client::protocol::{CwdFilter, Thread, ThreadListParams, ThreadSortKey, ThreadSourceKind};

use crate::show::lines;

/// The last used thread in the current folder.
pub const LAST: &str = "last";

/// The last used thread in any folder. Contains a slash, which no id has, and few names.
pub const LAST_ANYWHERE: &str = "last/anywhere";

/// The server's largest page.
const PAGE: u32 = 100;

/// How many pages are searched for a name.
const MAX_PAGES: usize = 100;

/// The shortest prefix of an id that is searched for.
const MIN_ID_PREFIX: usize = 4;

/// Sources of threads that people start, as opposed to child agents.
const USER_SOURCES: [ThreadSourceKind; 5] = [
    ThreadSourceKind::Cli,
    ThreadSourceKind::Vscode,
    ThreadSourceKind::Exec,
    ThreadSourceKind::AppServer,
    ThreadSourceKind::Unknown,
];

/// Returns the id of the thread with this id, name or prefix of an id. Of several threads with the same name it is the
/// one that was updated last. `last` is the last used thread, in `cwd` if given.
pub async fn find(client: &Client, name: &str, cwd: Option<&str>) -> Result<String> {
    if is_id(name) {
        return Ok(name.to_owned());
    }
    match matches(client, name, cwd).await? {
        Matches::Named(threads) => Ok(threads.into_iter().next().map(|thread| thread.id).unwrap_or_default()),
        Matches::Other(threads) => only(name, &threads),
    }
}

/// As [`find`], but refuses a name that several threads have: for changes that are hard to undo.
pub async fn find_only(client: &Client, name: &str, cwd: Option<&str>) -> Result<String> {
    if is_id(name) {
        return Ok(name.to_owned());
    }
    match matches(client, name, cwd).await? {
        Matches::Named(threads) | Matches::Other(threads) => only(name, &threads),
    }
}

/// The threads that a text may mean.
enum Matches {
    /// Of the threads with that name, the last updated first; at least one.
    Named(Vec<Thread>),
    Other(Vec<Thread>),
}

async fn matches(client: &Client, name: &str, cwd: Option<&str>) -> Result<Matches> {
    if name == LAST || name == LAST_ANYWHERE {
        let cwd = cwd.filter(|_| name == LAST);
        let query = ThreadListParams { limit: Some(1), ..newest(cwd) };
        return match client.list_threads(query).await?.data.pop() {
            Some(thread) => Ok(Matches::Other(vec![thread])),
            None => bail!("no threads in this folder; `loomd threads list --all` lists those of all folders"),
        };
    }
    let mut threads = Vec::new();
    for archived in [false, true] {
        threads.extend(list(client, ThreadListParams { archived: Some(archived), ..newest(None) }, None).await?);
    }
    threads.sort_by_key(|thread| Reverse(thread.updated_at));
    if threads.iter().any(|thread| thread.name.as_deref() == Some(name)) {
        threads.retain(|thread| thread.name.as_deref() == Some(name));
        return Ok(Matches::Named(threads));
    }
    threads.retain(|thread| name.len() >= MIN_ID_PREFIX && thread.id.starts_with(name));
    Ok(Matches::Other(threads))
}

fn only(name: &str, threads: &[Thread]) -> Result<String> {
    match threads {
        [thread] => Ok(thread.id.clone()),
        [] => bail!(
            "unknown thread `{name}`: no id starts with it, and no thread has that name; `loomd threads list --all` \
             lists all threads"
        ),
        several => bail!("{}", ambiguous(name, several)),
    }
}

/// How many of the threads that a name may mean are listed.
const LISTED: usize = 5;

/// Lists the first threads that a name may mean, with their names or first prompts.
fn ambiguous(name: &str, threads: &[Thread]) -> String {
    let mut text = format!("`{name}` may mean {} threads; give a longer id:", threads.len());
    for thread in threads.iter().take(LISTED) {
        let about = thread.name.as_deref().unwrap_or(&thread.preview);
        let about: String = lines(about).join(" ").chars().take(60).collect();
        text += &format!("\n  {}  {}", thread.id, about.trim());
    }
    if threads.len() > LISTED {
        text += &format!("\n  and {} more", threads.len() - LISTED);
    }
    text
}

/// Params that list threads of every provider, the last used first.
pub fn newest(cwd: Option<&str>) -> ThreadListParams {
    ThreadListParams {
        sort_key: Some(ThreadSortKey::UpdatedAt),
        model_providers: Some(Vec::new()),
        source_kinds: Some(USER_SOURCES.into()),
        cwd: cwd.map(|cwd| CwdFilter::One(cwd.to_owned())),
        ..ThreadListParams::default()
    }
}

/// Lists up to `limit` threads, page by page.
pub async fn list(client: &Client, query: ThreadListParams, limit: Option<usize>) -> Result<Vec<Thread>> {
    let mut query = ThreadListParams { limit: Some(PAGE), ..query };
    let mut threads = Vec::new();
    for _ in 0..MAX_PAGES {
        let page = client.list_threads(query.clone()).await?;
        threads.extend(page.data);
        query.cursor = page.next_cursor;
        if query.cursor.is_none() || limit.is_some_and(|limit| threads.len() >= limit) {
            break;
        }
    }
    threads.truncate(limit.unwrap_or(usize::MAX));
    Ok(threads)
}

fn is_id(text: &str) -> bool {
    let groups: Vec<usize> = text.split('-').map(str::len).collect();
    groups == [8, 4, 4, 4, 12] && text.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_ids_are_recognised_by_their_form() {
        for (text, is) in [
            ("01a1df78-4c7d-70f3-8685-bec5007dd5b0", true),
            ("01a1df78", false),
            ("01a1df78-4c7d-70f3-8685-bec5007dd5bz", false),
            ("my thread", false),
            ("", false),
        ] {
            assert_eq!(is_id(text), is, "{text}");
        }
    }
}
