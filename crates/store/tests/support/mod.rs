//! Stored threads, written by hand as another program would.

#![allow(dead_code, reason = "not every test file uses everything")]
#![allow(clippy::unwrap_used, reason = "only tests use it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use loomd_store::rollout::{AgentMessage, Event, Record, SessionMeta, Source, StoredGit, UserMessage, write_line};
use loomd_store::{Batch, FileStore, Options, ThreadId};

pub const BASE: i64 = 1741064767;

pub fn store(home: &Path) -> FileStore {
    FileStore::new(Options { home: home.to_owned(), sqlite_home: None })
}

pub fn meta(id: ThreadId, created: i64) -> SessionMeta {
    SessionMeta {
        id,
        forked_from_id: None,
        attached_to: None,
        timestamp: Timestamp::from_second(created).unwrap().to_string(),
        cwd: "/".into(),
        originator: "fixture".into(),
        cli_version: "0.0.1".into(),
        source: Source::Cli,
        agent_nickname: None,
        agent_role: None,
        agent_path: None,
        model_provider: Some("mock".into()),
        base_instructions: None,
        dynamic_tools: None,
        memory_mode: None,
        budget: None,
        placement: Vec::new(),
        preview: None,
        session_id: None,
        thread_source: None,
        git: None,
    }
}

pub fn user(text: &str) -> Record {
    Record::EventMsg(Event::UserMessage(UserMessage { message: text.into(), ..Default::default() }))
}

pub fn agent(text: &str) -> Record {
    Record::EventMsg(Event::AgentMessage(AgentMessage { message: text.into(), ..Default::default() }))
}

pub fn batch(records: &[Record]) -> Batch {
    records.iter().collect()
}

pub fn git(branch: &str) -> StoredGit {
    StoredGit { branch: Some(branch.into()), ..Default::default() }
}

/// Where a thread of that time is stored (names in these fixtures hold UTC).
pub fn place(home: &Path, id: ThreadId, created: i64, archived: bool) -> PathBuf {
    let time = Timestamp::from_second(created).unwrap();
    let name = format!("rollout-{}-{id}.jsonl", time.strftime("%Y-%m-%dT%H-%M-%S"));
    if archived {
        home.join("archived_sessions").join(name)
    } else {
        home.join("sessions").join(time.strftime("%Y/%m/%d").to_string()).join(name)
    }
}

pub fn write_thread(path: &Path, meta: &SessionMeta, records: &[Record]) {
    let mut bytes = Vec::new();
    write_line(&mut bytes, "x", &Record::SessionMeta(Box::new(meta.clone()))).unwrap();
    for record in records {
        write_line(&mut bytes, "x", record).unwrap();
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

/// One thread with one message.
pub fn thread(home: &Path, text: &str, created: i64) -> (ThreadId, PathBuf) {
    let id = ThreadId::new();
    let path = place(home, id, created, false);
    write_thread(&path, &meta(id, created), &[user(text), agent("answer")]);
    (id, path)
}

pub fn set_mtime(path: &Path, seconds: i64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds.unsigned_abs());
    fs::File::options().append(true).open(path).unwrap().set_modified(time).unwrap();
}

pub fn append_raw(path: &Path, bytes: &[u8]) {
    use std::io::Write;
    fs::File::options().append(true).open(path).unwrap().write_all(bytes).unwrap();
}
