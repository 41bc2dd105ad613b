//! What survives: writers that are killed, writers that take turns, and a disk that is full. The writers are
//! this test program, started again in another role.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

use std::collections::HashSet;
use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use loomd_store::rollout::{Event, Line, Record, whole_lines};
use loomd_store::{Batch, Durability, Error, FileBacked, FileStore, Position, Store, ThreadId};

mod support;
use support::*;

const ROLE: &str = "STORE_TEST_ROLE";
const HOME: &str = "STORE_TEST_HOME";
const THREAD: &str = "STORE_TEST_THREAD";
const NUMBER: &str = "STORE_TEST_NUMBER";

/// Not a test by itself: what the other tests start in another process.
#[test]
fn role() {
    let Ok(role) = env::var(ROLE) else { return };
    let home = PathBuf::from(env::var(HOME).unwrap());
    let id: ThreadId = env::var(THREAD).unwrap().parse().unwrap();
    let number: u64 = env::var(NUMBER).unwrap().parse().unwrap();
    let store = store(&home);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        match &*role {
            "write" => write_for_ever(&store, id, number).await,
            "turns" => take_turns(&store, id, number).await,
            "fill" => fill_the_disk(&store, id).await,
            "place" => {
                let _reader = store.create(id, Timestamp::UNIX_EPOCH);
                report(&store.path(id).unwrap().display().to_string());
            }
            other => panic!("{other}"),
        }
    });
}

fn start(role: &str, home: &Path, id: ThreadId, number: u64, shell: Option<&str>) -> (Child, BufReader<ChildStderr>) {
    let program = env::current_exe().unwrap();
    let mut command = match shell {
        None => Command::new(program),
        Some(script) => {
            let mut command = Command::new("sh");
            command.args(["-c", &format!("{script}; exec \"$0\" \"$@\"")]).arg(program);
            command
        }
    };
    let mut child = command
        .args(["role", "--exact", "--nocapture", "--test-threads=1"])
        .env(ROLE, role)
        .env(HOME, home)
        .env(THREAD, id.to_string())
        .env(NUMBER, number.to_string())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let reported = BufReader::new(child.stderr.take().unwrap());
    (child, reported)
}

fn report(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

/// A small source of numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }
}

async fn write_for_ever(store: &FileStore, id: ThreadId, number: u64) {
    let mut dice = Dice(number + 1);
    let (reader, is_new) = match store.open(id).await {
        Ok(reader) => (reader, false),
        Err(_) => (store.create(id, Timestamp::now()), true),
    };
    let mut writer = reader.writer().await.unwrap();
    if is_new {
        let meta = Record::SessionMeta(Box::new(meta(id, BASE)));
        writer.append(batch(&[meta, user("hello")]), Durability::Flushed).await.unwrap();
    }
    for count in 0.. {
        let size = if dice.roll(10) == 0 { 300_000 } else { 200 };
        let record = agent(&format!("{number}-{count} {}", "x".repeat(dice.roll(size) as usize)));
        let durability = if dice.roll(50) == 0 { Durability::Synced } else { Durability::Flushed };
        writer.append(batch(&[record]), durability).await.unwrap();
        report(&format!("{number}-{count}"));
    }
}

/// The first word of every agent message.
fn stored(home: &Path, id: ThreadId) -> Vec<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = store(home);
    let reader = runtime.block_on(store.open(id)).unwrap();
    let (mut from, mut found) = (Position::START, Vec::new());
    loop {
        let window = runtime.block_on(reader.records_after(from, 1 << 20)).unwrap();
        if window.is_empty() {
            return found;
        }
        from = window.end();
        for line in window.lines() {
            if let Some(Record::EventMsg(Event::AgentMessage(message))) =
                Line::parse(line.bytes).and_then(|line| line.decode())
            {
                found.push(message.message.split(' ').next().unwrap().to_owned());
            }
        }
    }
}

#[test]
fn killing_the_writer_loses_nothing_that_was_acknowledged() {
    let home = tempfile::tempdir().unwrap();
    let mut dice = Dice(42);
    let mut acknowledged = 0;
    for _ in 0..20 {
        let id = ThreadId::new();
        let mut reported = Vec::new();
        for number in 0..10 {
            let (mut child, mut lines) = start("write", home.path(), id, number, None);
            let mut first = String::new();
            lines.read_line(&mut first).unwrap();
            std::thread::sleep(Duration::from_micros(dice.roll(6000)));
            child.kill().unwrap();
            child.wait().unwrap();
            reported.push(first.trim().to_owned());
            reported.extend(lines.lines().map(|line| line.unwrap()));
            assert!(
                reported.iter().all(|line| line.contains('-') && line.len() < 20),
                "the writer failed: {reported:?}"
            );
        }
        acknowledged += reported.len();
        let found = stored(home.path(), id);
        let unique: HashSet<_> = found.iter().collect();
        assert_eq!(unique.len(), found.len(), "nothing is there twice");
        for line in &reported {
            assert!(unique.contains(line), "{line} of {id} was acknowledged and is gone");
        }
        // One record per kill may be torn; the next writer closes its line.
        let path = find(home.path(), id);
        let file = fs::read(path).unwrap();
        let torn = whole_lines(&file).filter(|(_, line)| Line::parse(line).is_none()).count();
        assert!(torn <= 10, "{torn}");
    }
    assert!(acknowledged >= 200, "{acknowledged}");
}

fn find(home: &Path, id: ThreadId) -> PathBuf {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(store(home).find(id, None)).unwrap().path.unwrap()
}

const TURNS: u64 = 200;

/// Adds one to the last number in the thread, `TURNS` times.
async fn take_turns(store: &FileStore, id: ThreadId, number: u64) {
    let reader = store.open(id).await.unwrap();
    let mut known: Option<Position> = None;
    let mut foreign = 0;
    for _ in 0..TURNS {
        let started = Instant::now();
        let mut writer = loop {
            match reader.writer().await {
                Ok(writer) => break writer,
                Err(Error::Held { .. }) if started.elapsed() < Duration::from_secs(20) => {
                    std::thread::sleep(Duration::from_micros(200));
                }
                Err(error) => panic!("{error}"),
            }
        };
        let window = reader.records_before(None, 1).await.unwrap();
        let last = window.lines().last().and_then(|line| Line::parse(line.bytes)?.decode());
        let count: u64 = match last {
            Some(Record::EventMsg(Event::AgentMessage(message))) => message.message.parse().unwrap(),
            _ => 0,
        };
        let appended = writer.append(batch(&[agent(&(count + 1).to_string())]), Durability::Flushed).await.unwrap();
        foreign += u64::from(known.is_some_and(|known| known != appended.start));
        assert!(known.is_none_or(|known| known < appended.end));
        known = Some(appended.end);
        drop(writer);
        std::thread::sleep(Duration::from_micros(100));
    }
    report(&format!("{number} {foreign}"));
}

#[test]
fn two_processes_take_turns_on_one_thread() {
    let home = tempfile::tempdir().unwrap();
    let (id, path) = thread(home.path(), "hello", BASE);
    write_thread(&path, &meta(id, BASE), &[user("hello")]);
    let writers = [1, 2].map(|number| start("turns", home.path(), id, number, None));
    for (mut child, reported) in writers {
        let reported: Vec<_> = reported.lines().map(|line| line.unwrap()).collect();
        assert!(child.wait().unwrap().success(), "{reported:?}");
        let (_, foreign) = reported.last().unwrap().split_once(' ').unwrap();
        assert!(foreign.parse::<u64>().unwrap() > 0, "each saw the other's turns");
    }
    let counted: Vec<String> = (1..=2 * TURNS).map(|number| number.to_string()).collect();
    assert_eq!(stored(home.path(), id), counted);
}

async fn fill_the_disk(store: &FileStore, id: ThreadId) {
    let reader = store.open(id).await.unwrap();
    let mut writer = reader.writer().await.unwrap();
    let mut last = reader.end().await.unwrap();
    let error = loop {
        let records: Vec<_> = (0..3).map(|_| agent(&"x".repeat(700))).collect();
        match writer.append(records.iter().collect::<Batch>(), Durability::Flushed).await {
            Ok(appended) => last = appended.end,
            Err(error) => break error,
        }
    };
    assert_eq!(reader.end().await.unwrap(), last, "nothing half-written is left");
    report(&format!("{} {error}", last.to_bits()));
}

#[test]
fn a_full_disk_is_a_clear_error_and_leaves_whole_lines() {
    let home = tempfile::tempdir().unwrap();
    let (id, path) = thread(home.path(), "hello", BASE);
    // The index must fit: it is made before the limit holds.
    find(home.path(), id);
    // A limit on the size of files stands in for a full disk: a write is cut short, then refused.
    let (mut child, reported) = start("fill", home.path(), id, 0, Some("trap '' 25; ulimit -f 200"));
    let reported: Vec<_> = reported.lines().map(|line| line.unwrap()).collect();
    assert!(child.wait().unwrap().success(), "{reported:?}");
    let (len, error) = reported.last().unwrap().split_once(' ').unwrap();
    assert!(error.contains("File too large") && error.contains("rollout-"), "{error}");
    let file = fs::read(path).unwrap();
    assert_eq!(file.len().to_string(), len);
    assert!(whole_lines(&file).all(|(_, line)| Line::parse(line).is_some()) && file.ends_with(b"\n"));
}

#[test]
fn names_and_folders_hold_local_time() {
    let home = tempfile::tempdir().unwrap();
    for (zone, place) in [
        ("JST-9", "sessions/1970/01/01/rollout-1970-01-01T09-00-00"),
        ("EST5", "sessions/1969/12/31/rollout-1969-12-31T19-00-00"),
    ] {
        let id = ThreadId::new();
        let (mut child, reported) = start("place", home.path(), id, 0, Some(&format!("export TZ={zone}")));
        let reported: Vec<_> = reported.lines().map(|line| line.unwrap()).collect();
        assert!(child.wait().unwrap().success(), "{reported:?}");
        assert_eq!(reported, [home.path().join(format!("{place}-{id}.jsonl")).display().to_string()]);
    }
}
