//! A database of its own for each test.

use std::sync::Arc;
use std::time::Duration;

use loomd_store::suite::Harness;
use loomd_store::{Store, ThreadId};
use loomd_store_postgres::{Options, PostgresStore};
use loomd_testkit::Postgres;

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
