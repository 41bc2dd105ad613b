//! A database of its own for each test.

#![allow(dead_code, reason = "each test program uses a part of it")]

pub mod many;
pub mod proxy;

use std::sync::Arc;
use std::time::Duration;

use loomd_store::rollout::{Event, Record, UserMessage};
use loomd_store::suite::Harness;
use loomd_store::{Batch, Durability, NodeFacts, Reader, SharedStore, Store, Taking, ThreadId};
use loomd_store_postgres::{Options, PostgresStore};
use loomd_testkit::Postgres;
use uuid::Uuid;

/// An empty database.
pub struct Database {
    pub server: &'static Postgres,
    pub name: String,
}

impl Database {
    /// `None` when PostgreSQL is not installed.
    pub fn new() -> Option<Self> {
        let server = Postgres::shared()?;
        Some(Self { server, name: server.create_database() })
    }

    pub fn options(&self) -> Options {
        let address = self.server.url(&self.name).parse().expect("the server's own URL");
        // A release that a dropped writer has begun may take its time on a busy machine.
        Options { connections: 4, handover: Duration::from_secs(5), ..Options::new(address) }
    }

    pub fn store(&self) -> PostgresStore {
        PostgresStore::new(self.options())
    }

    pub fn sql(&self, statements: &str) -> String {
        self.server.sql(&self.name, statements)
    }
}

/// A node: a store with a registered session.
pub struct Node {
    pub store: PostgresStore,
    pub session: Uuid,
}

impl Node {
    pub async fn new(options: Options) -> Self {
        // Nobody renews the session, however long the test takes.
        let options = Options { session_ttl: Duration::from_secs(600), ..options };
        let (store, session) = (PostgresStore::new(options), Uuid::now_v7());
        store.register(session, NodeFacts::default()).await.unwrap();
        Self { store, session }
    }

    pub fn shared(&self) -> &dyn SharedStore {
        &self.store
    }

    /// Takes a thread, and returns the epoch.
    pub async fn take(&self, thread: ThreadId) -> u64 {
        match self.shared().take(thread, self.session).await.unwrap() {
            Taking::Taken { epoch } => epoch,
            other => panic!("{other:?}"),
        }
    }

    /// Takes a new thread and stores one message in it.
    pub async fn start_thread(&self) -> (ThreadId, Arc<dyn Reader>) {
        let id = ThreadId::new();
        self.take(id).await;
        let reader = self.store.create(id, jiff::Timestamp::UNIX_EPOCH);
        let mut writer = reader.writer().await.unwrap();
        writer.append(Batch::of_lines(lines(id, "hello").into_bytes()), Durability::Flushed).await.unwrap();
        (id, reader)
    }
}

const META: &str = r#"{"timestamp":"2025-03-04T05:06:07.000Z","type":"session_meta","payload":{"id":"ID","timestamp":"2025-03-04T05:06:07.000Z","cwd":"/","originator":"o","cli_version":"1","source":"cli","model_provider":"mock"}}"#;

/// The lines of a thread with a message.
pub fn lines(id: ThreadId, text: &str) -> String {
    let message = serde_json::json!({"timestamp": "x", "type": "event_msg", "payload": {"type": "user_message", "message": text}});
    format!("{}\n{message}\n", META.replace("ID", &id.to_string()))
}

pub fn user(text: &str) -> Batch {
    [Record::EventMsg(Event::UserMessage(UserMessage { message: text.into(), ..Default::default() }))].iter().collect()
}

impl Harness for Database {
    fn open(&self) -> Arc<dyn Store> {
        Arc::new(self.store())
    }

    /// Another process takes the lease, as one may from a session that has expired, and lets it go.
    fn revoke_lease(&self, id: ThreadId) {
        self.sql(&format!(
            "UPDATE loomd.lease SET session = NULL, token = nextval('loomd.lease_token'), epoch = epoch + 1, \
             reader = gen_random_uuid() WHERE thread_id = '{id}'"
        ));
    }
}
