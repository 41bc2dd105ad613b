//! `thread/list` on homes with many threads: pages and filters from a complete index, the first page
//! without one, and the first page after a restart. With `-- percentiles`, how long the slowest of a
//! thousand pages take for every filter; with `-- start`, what a start costs with few threads and with many.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails may stop")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use divan::{Bencher, black_box};
use jiff::Timestamp;
use loomd_protocol::{ThreadSortKey, ThreadSourceKind};
use loomd_store::rollout::{Event, Record, SessionMeta, Source, UserMessage, write_line};
use loomd_store::{FileStore, ListQuery, Options, Page, Store, ThreadId};
use tokio::runtime::Runtime;

fn main() {
    if std::env::args().any(|argument| argument == "percentiles") {
        percentiles();
    } else if std::env::args().any(|argument| argument == "start") {
        start();
    } else {
        divan::main();
    }
}

fn percentiles() {
    let runtime = runtime();
    for size in SIZES {
        let store = warm(&runtime, size);
        store.start_indexing();
        std::thread::sleep(Duration::from_secs(3));
        println!("{size} threads{:14}median       p99   slowest, ms", "");
        for filter in FILTERS {
            let query = filter.query(size);
            let mut times: Vec<f64> = (0..1000)
                .map(|_| {
                    let start = Instant::now();
                    black_box(list(&runtime, &store, &query));
                    start.elapsed().as_secs_f64() * 1e3
                })
                .collect();
            times.sort_by(f64::total_cmp);
            println!("  {:22}{:8.3}  {:8.3}  {:8.3}", format!("{filter:?}"), times[500], times[990], times[999]);
        }
    }
}

/// A start on a complete index: the first page, and the processor time until half a second later.
fn start() {
    let runtime = runtime();
    println!("threads   first page, ms   processor, ms");
    for size in [1_000, 50_000] {
        let store = warm(&runtime, size);
        store.start_indexing();
        std::thread::sleep(Duration::from_secs(3));
        drop(store);
        let mut starts: Vec<(f64, f64)> = (0..15)
            .map(|_| {
                let (begun, cpu) = (Instant::now(), processor());
                let store = open(size);
                store.start_indexing();
                black_box(list(&runtime, &store, &query()));
                let page = begun.elapsed().as_secs_f64() * 1e3;
                std::thread::sleep(Duration::from_millis(500));
                (page, (processor() - cpu).as_secs_f64() * 1e3)
            })
            .collect();
        let mut median = |key: fn(&(f64, f64)) -> f64| {
            starts.sort_by(|a, b| key(a).total_cmp(&key(b)));
            key(&starts[7])
        };
        println!("{size:7}   {:14.2}   {:13.2}", median(|start| start.0), median(|start| start.1));
    }
}

fn processor() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap())
}

const SIZES: [usize; 2] = [10_000, 100_000];
const START: i64 = 1_767_225_600;

/// Made once and kept between runs, because making it takes longer than everything else.
fn home(size: usize) -> PathBuf {
    let home = std::env::temp_dir().join(format!("loomd-store-bench-{size}"));
    if home.join("complete").exists() {
        return home;
    }
    for number in 0..size {
        write_thread(&home, number, size);
    }
    fs::write(home.join("complete"), "").unwrap();
    home
}

fn write_thread(home: &Path, number: usize, size: usize) {
    let created = START + (number * 300 * 86_400 / size) as i64;
    let id = ThreadId::from(uuid::Uuid::from_u128(((created as u128) << 80) | (7 << 76) | (2 << 62) | number as u128));
    let meta = SessionMeta {
        id,
        forked_from_id: None,
        attached_to: None,
        session_id: None,
        thread_source: None,
        timestamp: Timestamp::from_second(created).unwrap().to_string(),
        cwd: format!("/projects/{}", number % 500),
        originator: "bench".into(),
        cli_version: "0.118.0".into(),
        source: if number.is_multiple_of(100) { Source::Exec } else { Source::Vscode },
        agent_nickname: None,
        agent_role: None,
        agent_path: None,
        model_provider: Some(if number.is_multiple_of(50) { "other".into() } else { "mock".into() }),
        base_instructions: None,
        dynamic_tools: None,
        memory_mode: None,
        preview: None,
        git: None,
        budget: None,
        placement: Vec::new(),
    };
    let message = format!("please look at number {number} and {}", "say what is wrong with it ".repeat(8));
    let mut bytes = Vec::new();
    for record in [
        Record::SessionMeta(Box::new(meta)),
        Record::EventMsg(Event::UserMessage(UserMessage { message, ..Default::default() })),
    ] {
        write_line(&mut bytes, "2026-01-01T00:00:00.000Z", &record).unwrap();
    }
    let time = Timestamp::from_second(created).unwrap();
    let day = home.join("sessions").join(time.strftime("%Y/%m/%d").to_string());
    fs::create_dir_all(&day).unwrap();
    fs::write(day.join(format!("rollout-{}-{id}.jsonl", time.strftime("%Y-%m-%dT%H-%M-%S"))), bytes).unwrap();
}

fn open(size: usize) -> FileStore {
    FileStore::new(Options { home: home(size), sqlite_home: None })
}

fn forget_index(size: usize) {
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(home(size).join(format!("loomd.sqlite{suffix}")));
    }
}

fn query() -> ListQuery {
    ListQuery { limit: 50, ..ListQuery::new("mock") }
}

fn list(runtime: &Runtime, store: &FileStore, query: &ListQuery) -> Page {
    runtime.block_on(store.list(query.clone())).unwrap()
}

fn runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

/// A store whose index is complete.
fn warm(runtime: &Runtime, size: usize) -> FileStore {
    let store = open(size);
    list(runtime, &store, &ListQuery { search: Some("not to be found".into()), ..query() });
    store
}

#[derive(Clone, Copy, Debug)]
enum Filter {
    Nothing,
    UpdatedAt,
    LastPage,
    RareProvider,
    NoProvider,
    RareSource,
    NoSource,
    Cwd,
    NoCwd,
    Search,
    NoSearch,
    NoSearchUpdatedAt,
    NoSearchInCwd,
    Archived,
}

use Filter::*;

impl Filter {
    fn query(self, size: usize) -> ListQuery {
        let at = START + (size / 100) as i64 * 300 * 86_400 / size as i64;
        match self {
            Nothing => query(),
            UpdatedAt => ListQuery { sort: ThreadSortKey::UpdatedAt, ..query() },
            LastPage => ListQuery {
                after: format!("{}|{}", Timestamp::from_second(at).unwrap(), uuid::Uuid::nil()).parse().ok(),
                ..query()
            },
            RareProvider => ListQuery { providers: Some(vec!["other".into()]), ..query() },
            NoProvider => ListQuery { providers: Some(vec!["nobody".into()]), ..query() },
            RareSource => ListQuery { kinds: Some(vec![ThreadSourceKind::Exec]), ..query() },
            NoSource => ListQuery { kinds: Some(vec![ThreadSourceKind::SubAgent]), ..query() },
            Cwd => ListQuery { cwds: Some(vec!["/projects/77".into()]), ..query() },
            NoCwd => ListQuery { cwds: Some(vec!["/none".into()]), ..query() },
            Search => ListQuery { search: Some("number 77".into()), ..query() },
            NoSearch => ListQuery { search: Some("not to be found".into()), ..query() },
            NoSearchUpdatedAt => ListQuery { sort: ThreadSortKey::UpdatedAt, ..NoSearch.query(size) },
            NoSearchInCwd => ListQuery { cwds: Some(vec!["/projects/77".into()]), ..NoSearch.query(size) },
            Archived => ListQuery { archived: true, ..query() },
        }
    }
}

const FILTERS: [Filter; 14] = [
    Nothing,
    UpdatedAt,
    LastPage,
    RareProvider,
    NoProvider,
    RareSource,
    NoSource,
    Cwd,
    NoCwd,
    Search,
    NoSearch,
    NoSearchUpdatedAt,
    NoSearchInCwd,
    Archived,
];

#[divan::bench(args = FILTERS, consts = SIZES, sample_count = 200)]
fn warm_page<const SIZE: usize>(bencher: Bencher, filter: Filter) {
    let runtime = runtime();
    let store = warm(&runtime, SIZE);
    let query = filter.query(SIZE);
    bencher.bench_local(|| black_box(list(&runtime, &store, &query)));
}

#[divan::bench(consts = SIZES, sample_count = 5)]
fn all_pages<const SIZE: usize>(bencher: Bencher) {
    let runtime = runtime();
    let store = warm(&runtime, SIZE);
    bencher.bench_local(|| {
        let mut query = ListQuery { limit: 100, ..query() };
        while let Some(next) = list(&runtime, &store, &query).next {
            query.after = Some(next);
        }
    });
}

#[divan::bench(consts = SIZES, sample_count = 5)]
fn first_page_without_an_index<const SIZE: usize>(bencher: Bencher) {
    let runtime = runtime();
    home(SIZE);
    bencher.with_inputs(|| forget_index(SIZE)).bench_local_values(|()| list(&runtime, &open(SIZE), &query()));
}

#[divan::bench(consts = SIZES, sample_count = 3)]
fn building_the_whole_index<const SIZE: usize>(bencher: Bencher) {
    let runtime = runtime();
    home(SIZE);
    bencher.with_inputs(|| forget_index(SIZE)).bench_local_values(|()| drop(warm(&runtime, SIZE)));
}

#[divan::bench(consts = SIZES, sample_count = 20)]
fn first_page_after_a_restart<const SIZE: usize>(bencher: Bencher) {
    let runtime = runtime();
    let store = warm(&runtime, SIZE);
    store.start_indexing();
    std::thread::sleep(Duration::from_secs(2));
    bencher.bench_local(|| list(&runtime, &open(SIZE), &query()));
}

/// A home of few threads with so many lines in its names file, most of them about threads that are gone.
fn home_with_names(lines: usize) -> PathBuf {
    let home = std::env::temp_dir().join(format!("loomd-store-bench-names-{lines}"));
    if !home.join("complete").exists() {
        (0..200).for_each(|number| write_thread(&home, number, 200));
        let line = |number: usize| {
            let id = uuid::Uuid::from_u128(number as u128);
            format!(r#"{{"id":"{id}","thread_name":"name {number}","updated_at":"2026-01-01T00:00:00Z"}}"#) + "\n"
        };
        fs::write(home.join("session_index.jsonl"), (0..lines).map(line).collect::<String>()).unwrap();
        fs::write(home.join("complete"), "").unwrap();
    }
    home
}

#[divan::bench(args = [200, 20_000], sample_count = 50)]
fn first_page_after_a_restart_with_names(bencher: Bencher, lines: usize) {
    let (runtime, home) = (runtime(), home_with_names(lines));
    let open = || FileStore::new(Options { home: home.clone(), sqlite_home: None });
    list(&runtime, &open(), &query());
    bencher.with_inputs(open).bench_local_refs(|store| list(&runtime, store, &query()).threads.len());
}
