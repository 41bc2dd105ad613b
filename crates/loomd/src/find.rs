//! Finds threads by id, name, prefix of an id, or `last`.

use std::cmp::Reverse;

use anyhow::{Result, bail};
use loomd_client::Client;
use loomd_client::protocol::{CwdFilter, Thread, ThreadListParams, ThreadSortKey, ThreadSourceKind};

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
    match matches(client, name, cwd).await? {
        Matches::Named(threads) => Ok(threads.into_iter().next().unwrap_or_default()),
        Matches::Other(ids) => only(name, ids),
    }
}

/// As [`find`], but refuses a name that several threads have: for changes that are hard to undo.
pub async fn find_only(client: &Client, name: &str, cwd: Option<&str>) -> Result<String> {
    match matches(client, name, cwd).await? {
        Matches::Named(ids) | Matches::Other(ids) => only(name, ids),
    }
}

/// The ids that a text may mean.
enum Matches {
    /// Of the threads with that name, the last updated first; at least one.
    Named(Vec<String>),
    Other(Vec<String>),
}

async fn matches(client: &Client, name: &str, cwd: Option<&str>) -> Result<Matches> {
    if name == LAST || name == LAST_ANYWHERE {
        let cwd = cwd.filter(|_| name == LAST);
        let query = ThreadListParams { limit: Some(1), ..newest(cwd) };
        return match client.list_threads(query).await?.data.pop() {
            Some(thread) => Ok(Matches::Other(vec![thread.id])),
            None => bail!("no threads in this folder; `loomd threads list --all` shows those of all folders"),
        };
    }
    if is_id(name) {
        return Ok(Matches::Other(vec![name.to_owned()]));
    }
    let mut threads = Vec::new();
    for archived in [false, true] {
        threads.extend(list(client, ThreadListParams { archived: Some(archived), ..newest(None) }, None).await?);
    }
    threads.sort_by_key(|thread| Reverse(thread.updated_at));
    let is_named = |thread: &Thread| thread.name.as_deref() == Some(name);
    let starts = |thread: &Thread| name.len() >= MIN_ID_PREFIX && thread.id.starts_with(name);
    let ids = |is_meant: &dyn Fn(&Thread) -> bool| -> Vec<String> {
        threads.iter().filter(|thread| is_meant(thread)).map(|thread| thread.id.clone()).collect()
    };
    let named = ids(&is_named);
    Ok(if named.is_empty() { Matches::Other(ids(&starts)) } else { Matches::Named(named) })
}

fn only(name: &str, ids: Vec<String>) -> Result<String> {
    match ids.as_slice() {
        [id] => Ok(id.clone()),
        [] => bail!("unknown thread: no id starts with `{name}`, and no thread has that name"),
        several => bail!("ambiguous thread `{name}`: {}", several.join(", ")),
    }
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
