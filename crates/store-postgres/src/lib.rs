//! Threads in PostgreSQL: the store that several nodes share. It does what the file store does, under the same suite.
//!
//! Every change of a thread's records is one statement that checks the lease's token, so a holder whose lease was taken
//! over writes nothing, however late it comes. The database's clock decides which sessions have expired; the clocks of
//! the nodes are never compared.
//!
//! Where to start: [`PostgresStore`] for the store, `schema.rs` for the tables, `shared.rs` for nodes and what they own,
//! `lease.rs` for who may write, `writer.rs` for the append, `retry.rs` for a database that is away.

mod address;
mod answered;
mod append;
mod approvals;
mod database;
mod error;
mod facts;
mod lease;
mod list;
mod nodes;
mod notes;
mod ownership;
mod passfile;
mod reader;
mod retry;
mod schema;
mod search;
mod shared;
mod store;
mod text;
mod tls;
mod transfer;
mod wake;
mod work;
mod writer;

pub use address::{Address, BadAddress};
pub use database::{StoreCheck, StoreProbe};
pub use nodes::SESSION_TTL;
pub use passfile::{find_password, password_of};
pub use schema::VERSION as SCHEMA_VERSION;
pub use store::{Options, PostgresStore};
pub use transfer::{Transferred, export, import};
pub use wake::Wakeups;
