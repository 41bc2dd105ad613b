//! Reading a thread of 5,000 turns (about 10 MB) in bounded windows, as `thread/read` does.

#![allow(clippy::unwrap_used, reason = "a benchmark that fails may stop")]

use std::fs;

use divan::counter::BytesCount;
use divan::{AllocProfiler, Bencher};
use loomd_store::rollout::{Line, Record};
use loomd_store::{FileBacked, FileStore, Options, Position, ThreadId};

#[global_allocator]
static ALLOC: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

const WINDOW: usize = 256 * 1024;

fn rollout(id: ThreadId) -> String {
    let mut file = format!(
        r#"{{"timestamp":"x","type":"session_meta","payload":{{"id":"{id}","timestamp":"2026-02-01T00:00:00.000Z","cwd":"/","originator":"bench","cli_version":"0.118.0","source":"vscode","model_provider":"mock"}}}}"#
    );
    file.push('\n');
    for turn in 0..5000 {
        let text = format!("{} {turn}", "lorem ipsum ".repeat(40));
        for (kind, payload) in [
            ("event_msg", format!(r#"{{"type":"task_started","turn_id":"t{turn}","model_context_window":100000}}"#)),
            (
                "response_item",
                format!(r#"{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}"#),
            ),
            (
                "event_msg",
                format!(
                    r#"{{"type":"user_message","message":"{text}","images":[],"local_images":[],"text_elements":[]}}"#
                ),
            ),
            ("event_msg", format!(r#"{{"type":"agent_message","message":"answer {text}"}}"#)),
            (
                "response_item",
                format!(
                    r#"{{"type":"message","role":"assistant","content":[{{"type":"output_text","text":"answer {text}"}}]}}"#
                ),
            ),
            ("event_msg", format!(r#"{{"type":"task_complete","turn_id":"t{turn}","last_agent_message":"answer"}}"#)),
        ] {
            file.push_str(&format!(
                r#"{{"timestamp":"2026-02-01T00:00:00.000Z","type":"{kind}","payload":{payload}}}"#
            ));
            file.push('\n');
        }
    }
    file
}

fn read(bencher: Bencher, look: impl Fn(&Line) -> Option<Record>) {
    let home = tempfile::tempdir().unwrap();
    let id = ThreadId::new();
    let path = home.path().join("rollout");
    let file = rollout(id);
    fs::write(&path, &file).unwrap();
    let store = FileStore::new(Options { home: home.path().to_owned(), sqlite_home: None });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (_, reader) = runtime.block_on(store.adopt(&path)).unwrap();
    bencher.counter(BytesCount::of_str(&file)).bench_local(|| {
        let (mut from, mut seen) = (Position::START, 0);
        loop {
            let window = runtime.block_on(reader.records_after(from, WINDOW)).unwrap();
            if window.is_empty() {
                return seen;
            }
            from = window.end();
            seen += window.lines().filter_map(|line| look(&Line::parse(line.bytes)?)).count();
        }
    });
}

#[divan::bench]
fn parsed(bencher: Bencher) {
    read(bencher, |_| None);
}

#[divan::bench]
fn events_decoded(bencher: Bencher) {
    read(bencher, |line| (line.kind == "event_msg").then(|| line.decode())?);
}

#[divan::bench]
fn all_decoded(bencher: Bencher) {
    read(bencher, |line| line.decode());
}
