//! Lists: the index answers as a look at every file would, whatever happens to the files.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::fs;

use loomd_protocol::{SubAgentSource, ThreadSortKey, ThreadSourceKind};
use loomd_store::rollout::{SessionMeta, Source};
use loomd_store::{FileStore, ListQuery, Options, Store, StoredThread, ThreadId};
use proptest::prelude::*;

mod support;
use support::*;

async fn ids(store: &FileStore, query: ListQuery) -> Vec<ThreadId> {
    store.list(query).await.unwrap().threads.iter().map(StoredThread::id).collect()
}

async fn previews(store: &FileStore) -> Vec<String> {
    let page = store.list(ListQuery::new("mock")).await.unwrap();
    page.threads.into_iter().filter_map(|thread| thread.preview).collect()
}

#[tokio::test]
async fn files_that_come_go_and_grow_behind_the_store_are_seen() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    assert_eq!(previews(&store).await, Vec::<String>::new());
    thread(home.path(), "stays", BASE);
    let (_, goes) = thread(home.path(), "goes", BASE + 60);
    assert_eq!(previews(&store).await, ["goes", "stays"]);
    fs::remove_file(&goes).unwrap();
    assert_eq!(previews(&store).await, ["stays"]);
    let id = ThreadId::new();
    let late = place(home.path(), id, BASE + 90 * 86400, false);
    write_thread(&late, &meta(id, BASE + 90 * 86400), &[]);
    assert_eq!(previews(&store).await, ["stays"]);
    assert_eq!(store.find(id, None).await.unwrap().preview, None);
    write_thread(&late, &meta(id, BASE + 90 * 86400), &[user("late")]);
    assert_eq!(store.find(id, None).await.unwrap().preview.as_deref(), Some("late"));
    assert_eq!(previews(&store).await, ["late", "stays"]);
    fs::remove_dir_all(late.parent().unwrap()).unwrap();
    assert_eq!(previews(&store).await, ["stays"]);
}

#[tokio::test]
async fn a_thread_is_listed_as_soon_as_it_has_its_first_message() {
    let home = tempfile::tempdir().unwrap();
    let id = ThreadId::new();
    let path = place(home.path(), id, BASE, false);
    write_thread(&path, &meta(id, BASE), &[]);
    assert_eq!(previews(&store(home.path())).await, Vec::<String>::new());
    write_thread(&path, &meta(id, BASE), &[user("hello")]);
    assert_eq!(previews(&store(home.path())).await, ["hello"], "also by another process");
}

#[tokio::test]
async fn a_thread_that_another_program_extends_moves_to_the_top() {
    let home = tempfile::tempdir().unwrap();
    let store = store(home.path());
    let (old, path) = thread(home.path(), "old", BASE);
    let (new, newer) = thread(home.path(), "new", BASE + 60);
    set_mtime(&path, BASE);
    set_mtime(&newer, BASE + 60);
    let query = ListQuery { sort: ThreadSortKey::UpdatedAt, ..ListQuery::new("mock") };
    assert_eq!(ids(&store, query.clone()).await, [new, old]);
    append_raw(&path, b"{}\n");
    assert_eq!(ids(&store, query).await, [old, new]);
}

/// Threads whose times of change are `BASE + 0, 1, 2, ...`, oldest first.
fn threads(home: &std::path::Path, count: i64) -> Vec<(ThreadId, std::path::PathBuf)> {
    let write = |number| {
        let (id, path) = thread(home, &format!("t{number}"), BASE + number);
        set_mtime(&path, BASE + number);
        (id, path)
    };
    (0..count).map(write).collect()
}

#[tokio::test]
async fn threads_that_change_between_pages_do_not_shift_the_others() {
    let home = tempfile::tempdir().unwrap();
    let threads = threads(home.path(), 40);
    let store = store(home.path());
    let mut query = ListQuery { sort: ThreadSortKey::UpdatedAt, limit: 10, ..ListQuery::new("mock") };
    let mut found = Vec::new();
    loop {
        let page = store.list(query.clone()).await.unwrap();
        found.extend(page.threads.iter().map(StoredThread::id));
        match page.next {
            Some(next) => query.after = Some(next),
            None => break,
        }
        // Between any two pages another program extends one thread that was shown and one that was not.
        for at in [39 - found.len() as i64 + 5, 39 - found.len() as i64 - 5] {
            append_raw(&threads[at as usize].1, b"{}\n");
        }
    }
    let changed = [29 + 5, 29 - 5, 19 + 5, 19 - 5, 9 + 5, 9 - 5];
    let unmoved = |ids: &[ThreadId]| -> Vec<ThreadId> {
        let moved = |id: &ThreadId| changed.iter().any(|at| threads[*at].0 == *id);
        ids.iter().filter(|id| !moved(id)).copied().collect()
    };
    let all: Vec<ThreadId> = threads.iter().rev().map(|(id, _)| *id).collect();
    assert_eq!(unmoved(&found), unmoved(&all));
}

#[tokio::test]
async fn a_page_is_the_newest_threads_whatever_time_zone_their_names_are_in() {
    let home = tempfile::tempdir().unwrap();
    let mut want = Vec::new();
    // Names up to half a day off in either direction, in the folders of their local days.
    for (number, hours) in [0, 12, -12, 5, -7, 9, 14, -3].into_iter().cycle().take(200).enumerate() {
        let created = BASE + number as i64 * 1800;
        let id = ThreadId::new();
        let path = place(home.path(), id, created + hours * 3600, false);
        write_thread(&path, &meta(id, created), &[user("x")]);
        want.insert(0, id);
    }
    for limit in [1, 10, 100] {
        let query = ListQuery { limit, ..ListQuery::new("mock") };
        let page = ids(&store(home.path()), query).await;
        assert_eq!(page, want[..limit], "{limit}");
        for suffix in ["", "-wal", "-shm"] {
            let _ = fs::remove_file(home.path().join(format!("loomd.sqlite{suffix}")));
        }
    }
}

#[tokio::test]
async fn files_and_folders_that_are_no_rollouts_are_not_listed() {
    let home = tempfile::tempdir().unwrap();
    let (_, path) = thread(home.path(), "ok", BASE);
    let day = path.parent().unwrap();
    fs::write(day.join("notes.txt"), "x").unwrap();
    fs::write(day.join("rollout-bad-name.jsonl"), "{}\n").unwrap();
    let pipe = place(home.path(), ThreadId::new(), BASE, false);
    assert!(std::process::Command::new("mkfifo").arg(pipe).status().unwrap().success());
    fs::create_dir_all(home.path().join("sessions/tmp/01/01")).unwrap();
    fs::write(home.path().join("sessions/2025/file"), "x").unwrap();
    fs::write(home.path().join("sessions/2025/04"), "x").unwrap();
    assert_eq!(previews(&store(home.path())).await, ["ok"]);
}

#[tokio::test]
async fn a_damaged_or_outdated_index_is_rebuilt() {
    let home = tempfile::tempdir().unwrap();
    let index = home.path().join("loomd.sqlite");
    thread(home.path(), "safe", BASE);
    fs::write(&index, "this is no database, and it is long enough to be one".repeat(100)).unwrap();
    assert_eq!(previews(&store(home.path())).await, ["safe"]);
    {
        let db = rusqlite::Connection::open(&index).unwrap();
        db.pragma_update(None, "user_version", 999).unwrap();
    }
    assert_eq!(previews(&store(home.path())).await, ["safe"]);
    // Damaged while in use.
    let store = store(home.path());
    assert_eq!(previews(&store).await, ["safe"]);
    {
        let db = rusqlite::Connection::open(&index).unwrap();
        db.execute_batch("DROP TABLE rollouts").unwrap();
    }
    assert_eq!(previews(&store).await, ["safe"]);
}

#[tokio::test]
async fn the_index_can_live_elsewhere_and_is_not_named_like_the_references() {
    let (home, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    thread(home.path(), "hello", BASE);
    let sqlite_home = Some(elsewhere.path().join("deep"));
    let store = FileStore::new(Options { home: home.path().to_owned(), sqlite_home });
    assert_eq!(previews(&store).await, ["hello"]);
    assert!(elsewhere.path().join("deep/loomd.sqlite").exists());
    let names: Vec<_> = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["sessions"]);
}

/// Makes a folder and all below it look as if they had not changed for a long time.
fn age_folders(folder: &std::path::Path) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|entry| entry.path().is_dir()) {
        age_folders(&entry.path());
    }
    let long_ago = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    fs::File::open(folder).unwrap().set_modified(long_ago).unwrap();
}

#[tokio::test]
async fn the_background_work_ends_and_a_restart_trusts_what_it_left() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..300 {
        thread(home.path(), &format!("t{number}"), BASE + number * 3600);
    }
    // A folder that changed just now may change again unseen, and is not trusted yet.
    age_folders(&home.path().join("sessions"));
    let query = || ListQuery { limit: 100, ..ListQuery::new("mock") };
    let first = {
        let store = store(home.path());
        store.start_indexing();
        let page = ids(&store, query()).await;
        let db = rusqlite::Connection::open(home.path().join("loomd.sqlite")).unwrap();
        let folders = || db.query_row("SELECT count(*) FROM folders", [], |row| row.get::<_, i64>(0)).unwrap();
        for _ in 0..200 {
            if folders() > 0 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        assert_eq!(folders(), 13);
        page
    };
    assert_eq!(first.len(), 100);
    assert_eq!(ids(&store(home.path()), query()).await, first);
}

#[tokio::test]
async fn what_was_deleted_between_two_runs_leaves_no_rows() {
    let home = tempfile::tempdir().unwrap();
    let (_, day) = thread(home.path(), "day", BASE);
    let (_, month) = thread(home.path(), "month", BASE + 60 * 86400);
    let (_, year) = thread(home.path(), "year", BASE + 600 * 86400);
    thread(home.path(), "stays", BASE + 2 * 86400);
    assert_eq!(previews(&store(home.path())).await, ["year", "month", "stays", "day"]);
    fs::remove_dir_all(day.parent().unwrap()).unwrap();
    fs::remove_dir_all(month.ancestors().nth(2).unwrap()).unwrap();
    fs::remove_dir_all(year.ancestors().nth(3).unwrap()).unwrap();
    assert_eq!(previews(&store(home.path())).await, ["stays"]);
    let db = rusqlite::Connection::open(home.path().join("loomd.sqlite")).unwrap();
    assert_eq!(db.query_row("SELECT count(*) FROM rollouts", [], |row| row.get::<_, i64>(0)).unwrap(), 1);
}

#[tokio::test]
async fn two_processes_can_index_one_home_at_once() {
    let home = tempfile::tempdir().unwrap();
    for number in 0..400 {
        thread(home.path(), &format!("t{number}"), BASE + number);
    }
    let stores = [store(home.path()), store(home.path())];
    let lists = stores.map(|store| {
        tokio::task::spawn_blocking(move || {
            let mut query = ListQuery { limit: 50, ..ListQuery::new("mock") };
            let mut found = Vec::new();
            loop {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let page = runtime.block_on(store.list(query.clone())).unwrap();
                found.extend(page.threads.iter().map(StoredThread::id));
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => return found,
                }
            }
        })
    });
    for list in lists {
        let mut found = list.await.unwrap();
        assert_eq!(found.len(), 400);
        found.dedup();
        assert_eq!(found.len(), 400);
    }
}

/// A stored thread of the model.
#[derive(Clone, Debug)]
struct Fixture {
    id: ThreadId,
    created: i64,
    updated: i64,
    archived: bool,
    provider: Option<&'static str>,
    source: Source,
    cwd: &'static str,
    text: &'static str,
}

impl Fixture {
    fn write(&self, home: &std::path::Path) {
        let meta = SessionMeta {
            cwd: self.cwd.into(),
            source: self.source.clone(),
            model_provider: self.provider.map(str::to_owned),
            ..meta(self.id, self.created)
        };
        let path = self.path(home);
        write_thread(&path, &meta, &[user(self.text)]);
        set_mtime(&path, self.updated);
    }

    fn path(&self, home: &std::path::Path) -> std::path::PathBuf {
        place(home, self.id, self.created, self.archived)
    }

    fn matches(&self, query: &ListQuery) -> bool {
        let provider = self.provider.unwrap_or(&query.default_provider).to_owned();
        self.archived == query.archived
            && !self.text.trim().is_empty()
            && query.providers.as_ref().is_none_or(|providers| providers.contains(&provider))
            && query.cwds.as_ref().is_none_or(|cwds| cwds.iter().any(|cwd| cwd == self.cwd))
            && query.search.as_ref().is_none_or(|term| self.text.contains(term))
            && match &query.kinds {
                None => {
                    matches!(self.source, Source::Cli | Source::Vscode) || self.source == Source::Custom("atlas".into())
                }
                Some(kinds) => kinds.iter().any(|kind| match kind {
                    ThreadSourceKind::Cli => self.source == Source::Cli,
                    ThreadSourceKind::Exec => self.source == Source::Exec,
                    ThreadSourceKind::AppServer => self.source == Source::Mcp,
                    ThreadSourceKind::SubAgent => matches!(self.source, Source::SubAgent(_)),
                    ThreadSourceKind::SubAgentReview => self.source == Source::SubAgent(SubAgentSource::Review),
                    ThreadSourceKind::SubAgentOther => {
                        matches!(self.source, Source::SubAgent(SubAgentSource::Other(_)))
                    }
                    ThreadSourceKind::Unknown => self.source == Source::Unknown,
                    other => panic!("not asked for: {other:?}"),
                }),
            }
    }
}

fn naive(threads: &[Fixture], query: &ListQuery) -> Vec<ThreadId> {
    let time = |thread: &Fixture| if query.sort == ThreadSortKey::CreatedAt { thread.created } else { thread.updated };
    let mut found: Vec<_> = threads.iter().filter(|thread| thread.matches(query)).collect();
    found.sort_by_key(|thread| std::cmp::Reverse((time(thread), thread.id)));
    found.into_iter().map(|thread| thread.id).collect()
}

fn fixture() -> impl Strategy<Value = Fixture> {
    let sources = prop::sample::select(vec![
        Source::Cli,
        Source::Vscode,
        Source::Exec,
        Source::Mcp,
        Source::Unknown,
        Source::Custom("atlas".into()),
        Source::Custom("mine".into()),
        Source::SubAgent(SubAgentSource::Review),
        Source::SubAgent(SubAgentSource::Other("x".into())),
    ]);
    // Few different times, so that many are equal; some far apart, so that folders matter.
    let times = (prop::sample::select(vec![0, 1, 2, 86_400, 40 * 86_400]), 0i64..4);
    let provider = prop::sample::select(vec![None, Some("mock"), Some("mock"), Some("other")]);
    let cwd = prop::sample::select(vec!["/", "/nowhere", "/nowhere/below"]);
    let text = prop::sample::select(vec!["Fix the Parser", "fix docs", "parser", " ", "[x%_]"]);
    (times, prop::bool::weighted(0.2), provider, sources, cwd, text).prop_map(
        |((day, step), archived, provider, source, cwd, text)| Fixture {
            id: ThreadId::new(),
            created: BASE + day + step / 2,
            updated: BASE + 50 * 86_400 - day * (step % 2) - step,
            archived,
            provider,
            source,
            cwd,
            text,
        },
    )
}

fn query() -> impl Strategy<Value = ListQuery> {
    use ThreadSourceKind::*;
    let sort = prop::sample::select(vec![ThreadSortKey::CreatedAt, ThreadSortKey::UpdatedAt]);
    let providers =
        prop::sample::select(vec![None, Some(vec!["mock"]), Some(vec!["other"]), Some(vec!["mock", "other"])]);
    let kinds =
        prop::sample::subsequence(vec![Cli, Exec, AppServer, SubAgent, SubAgentReview, SubAgentOther, Unknown], 1..5);
    let cwds =
        prop::sample::select(vec![vec!["/"], vec!["/nowhere"], vec!["/nowhere", "/nowhere/below"], vec!["/none"]]);
    let search = prop::sample::select(vec!["arser", "fix", "%", "x"]);
    let filters = (
        prop::bool::weighted(0.2),
        providers,
        prop::option::weighted(0.4, kinds),
        prop::option::weighted(0.3, cwds),
        prop::option::weighted(0.3, search),
    );
    (sort, 1usize..12, filters).prop_map(|(sort, limit, (archived, providers, kinds, cwds, search))| ListQuery {
        sort,
        limit,
        archived,
        providers: providers.map(|list| list.into_iter().map(str::to_owned).collect()),
        kinds,
        cwds: cwds.map(|list| list.into_iter().map(str::to_owned).collect()),
        search: search.map(str::to_owned),
        ..ListQuery::new("mock")
    })
}

async fn check_pages(store: &FileStore, threads: &[Fixture], query: &ListQuery) {
    let want = naive(threads, query);
    let mut query = query.clone();
    let mut found = Vec::new();
    loop {
        let page = store.list(query.clone()).await.unwrap();
        found.extend(page.threads.iter().map(StoredThread::id));
        let Some(next) = page.next else { break };
        assert_eq!(page.threads.len(), query.limit);
        // As clients hand it back.
        query.after = Some(next.to_string().parse().unwrap());
    }
    assert_eq!(found, want, "{query:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    #[test]
    fn lists_equal_a_look_at_every_file(
        threads in prop::collection::vec(fixture(), 0..30),
        queries in prop::collection::vec(query(), 1..6),
        more in prop::collection::vec(fixture(), 0..4),
        gone in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
        changed in prop::collection::vec(any::<prop::sample::Index>(), 0..4),
    ) {
        let home = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        threads.iter().for_each(|thread| thread.write(home.path()));
        let store = store(home.path());
        let mut threads = threads;
        runtime.block_on(async {
            for query in &queries {
                check_pages(&store, &threads, query).await;
            }
            for index in gone {
                if !threads.is_empty() {
                    let thread = threads.remove(index.index(threads.len()));
                    fs::remove_file(thread.path(home.path())).unwrap();
                }
            }
            for index in changed {
                if !threads.is_empty() {
                    let at = index.index(threads.len());
                    let thread = &mut threads[at];
                    thread.updated += 1_000_000;
                    append_raw(&thread.path(home.path()), b"{}\n");
                    set_mtime(&thread.path(home.path()), thread.updated);
                }
            }
            more.iter().for_each(|thread| thread.write(home.path()));
            threads.extend(more);
            for query in &queries {
                check_pages(&store, &threads, query).await;
            }
            for query in &queries {
                check_pages(&support::store(home.path()), &threads, query).await;
            }
        });
    }
}
