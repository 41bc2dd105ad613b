//! How long lists take in a database with many threads: `cargo run --release -p loomd-store-postgres --example
//! list_threads [THREADS]`. Starts a PostgreSQL of its own.

#![allow(clippy::unwrap_used, reason = "a measurement that fails may stop")]

#[path = "../tests/support/many.rs"]
mod many;

use std::time::{Duration, Instant};

use loomd_store::{Batch, Durability, Store, ThreadId};
use loomd_store_postgres::{Options, PostgresStore};
use loomd_testkit::Postgres;

const LISTS: usize = 300;

#[tokio::main]
async fn main() {
    let count = std::env::args().nth(1).map_or(100_000, |count| count.parse().unwrap());
    let server = Postgres::private().expect("PostgreSQL");
    let name = server.create_database();
    let store = PostgresStore::new(Options::new(server.url(&name).parse().unwrap()));
    let first = ThreadId::new();
    let meta = format!(
        r#"{{"timestamp":"2025-03-04T05:06:07.000Z","type":"session_meta","payload":{{"id":"{first}","timestamp":"2025-03-04T05:06:07.000Z","cwd":"/","originator":"o","cli_version":"1","source":"cli","model_provider":"mock"}}}}"#
    );
    let message = r#"{"timestamp":"x","type":"event_msg","payload":{"type":"user_message","message":"hello"}}"#;
    let reader = store.create(first, jiff::Timestamp::UNIX_EPOCH);
    let mut writer = reader.writer().await.unwrap();
    writer.append(Batch::of_lines(format!("{meta}\n{message}\n").into_bytes()), Durability::Flushed).await.unwrap();
    server.sql(&name, &many::fill(count));
    println!("{count} threads, {LISTS} lists of 25 each, in milliseconds");
    println!("{:36} {:>8} {:>8} {:>8}", "", "p50", "p99", "max");
    for (name, query) in many::queries(first) {
        let mut times: Vec<Duration> = Vec::new();
        for _ in 0..LISTS {
            let began = Instant::now();
            store.list(query.clone()).await.unwrap();
            times.push(began.elapsed());
        }
        times.sort_unstable();
        let at = |share: usize| times[(LISTS * share / 100).min(LISTS - 1)].as_secs_f64() * 1000.0;
        println!("{name:36} {:8.2} {:8.2} {:8.2}", at(50), at(99), at(100));
    }
}
