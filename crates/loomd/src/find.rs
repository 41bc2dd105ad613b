//! Finds threads by id, prefix of an id, name, or `last`.

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

/// Returns the id of the thread with this id, prefix or name. `last` is the last used one, in `cwd` if given.
pub async fn find(client: &Client, name: &str, cwd: Option<&str>) -> Result<String> {
    if name == LAST || name == LAST_ANYWHERE {
        let cwd = cwd.filter(|_| name == LAST);
        let query = ThreadListParams { limit: Some(1), ..newest(cwd) };
        return match client.list_threads(query).await?.data.pop() {
            Some(thread) => Ok(thread.id),
            None => bail!("no threads in this folder; `loomd threads list --all` shows those of all folders"),
        };
    }
    if is_id(name) {
        return Ok(name.to_owned());
    }
    let mut found = Vec::new();
    for archived in [false, true] {
        let all = list(client, ThreadListParams { archived: Some(archived), ..newest(None) }, None).await?;
        found.extend(all.into_iter().filter(|thread| is_called(thread, name)).map(|thread| thread.id));
    }
    match found.as_slice() {
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

fn is_called(thread: &Thread, name: &str) -> bool {
    thread.name.as_deref() == Some(name) || name.len() >= MIN_ID_PREFIX && thread.id.starts_with(name)
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
