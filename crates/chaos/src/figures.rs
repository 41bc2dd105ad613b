//! `figures`: what nodes use and do, measured, as a table for docs/scale-out.md. Nothing is asserted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use loomd_testkit::soak;
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::connection::{Connection, Observer};
use crate::kills;
use crate::options::Options;
use crate::percentiles::Percentiles;
use crate::plan;
use crate::stored;
use crate::world::World;

/// Clients of each node that start turns, each in a thread of its own.
const CLIENTS: usize = 8;
/// Kills for the times of take-over.
const KILLS: usize = 20;

/// Reports the end of turns.
#[derive(Default)]
struct Ends(Notify);

impl Observer for Ends {
    fn received(&self, message: &Value) {
        if message["method"] == "turn/completed" {
            self.0.notify_one();
        }
    }

    fn answered(&self, _: &str, _: &Value, _: &Value) {}
}

pub async fn run(options: &Options, threads: usize, seconds: u64) -> Result<bool> {
    let mut rows = Vec::new();
    for nodes in [1, 2, 4] {
        let (rate, appends) = throughput(options, nodes, Duration::from_secs(seconds)).await?;
        rows.push((format!("turns per second, {nodes} nodes, {CLIENTS} clients each"), format!("{rate:.0}")));
        if nodes == 1 {
            rows.push(("statements that append records, per turn of one message".into(), format!("{appends:.1}")));
        }
        println!("{nodes} nodes: {rate:.0} turns per second, {appends:.1} appends per turn");
    }
    rows.push((format!("memory of 2 nodes with {threads} idle threads, loaded"), idle(options, threads).await?));
    let (times, violations) = kills::measure(options, KILLS).await?;
    let lifetime = options.session_ttl.as_secs_f64();
    let what = format!("take-over after kill -9, p50 / p99 / max, sessions live {lifetime} s");
    rows.push((what, Percentiles::of(times.taken).text()));
    println!("\n| | |\n|---|---|");
    for (what, figure) in rows {
        println!("| {what} | {figure} |");
    }
    for violation in &violations {
        println!("VIOLATION {violation}");
    }
    Ok(violations.is_empty())
}

/// Turns per second of some nodes on one database, and appends per turn.
async fn throughput(options: &Options, nodes: usize, time: Duration) -> Result<(f64, f64)> {
    let world = Arc::new(World::start(options, nodes, true).await?);
    stored::watch(&world.cluster);
    let turns = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    let began = Instant::now();
    for number in 0..nodes * CLIENTS {
        let (world, turns) = (Arc::clone(&world), Arc::clone(&turns));
        clients.spawn(async move {
            let ends = Arc::new(Ends::default());
            let port = world.nodes()[number % nodes].port().context("a running node")?;
            let client = Connection::open(port, ends.clone()).await.context("a connection")?;
            let (thread, _) = kills::start(&client, &world, "never", &format!("t{number}k0"), "").await?;
            for count in 1.. {
                ends.0.notified().await;
                turns.fetch_add(1, Ordering::Relaxed);
                if began.elapsed() >= time {
                    break;
                }
                let input = json!([{ "type": "text", "text": plan::text(&format!("t{number}k{count}"), "") }]);
                let started = client.request("turn/start", json!({ "threadId": thread, "input": input })).await;
                started.map_err(|error| anyhow::anyhow!("turn/start: {error:?}"))?;
            }
            Ok::<(), anyhow::Error>(())
        });
    }
    while let Some(ended) = clients.join_next().await {
        ended??;
    }
    let count = turns.load(Ordering::Relaxed) as f64;
    let rate = count / began.elapsed().as_secs_f64();
    let appends = stored::appends(&world.cluster) as f64 / count;
    if let Ok(world) = Arc::try_unwrap(world) {
        world.end().await;
    }
    Ok((rate, appends))
}

/// The memory of two nodes that have loaded threads, each with one turn.
async fn idle(options: &Options, threads: usize) -> Result<String> {
    let world = Arc::new(World::start(options, 2, true).await?);
    let before = memory(&world).await;
    let ends = Arc::new(Ends::default());
    let mut clients = Vec::new();
    for node in world.nodes() {
        let client = Connection::open(node.port().context("a running node")?, ends.clone()).await;
        clients.push(client.context("a connection")?);
    }
    for number in 0..threads {
        kills::start(&clients[number % clients.len()], &world, "never", &format!("i{number}"), "").await?;
        ends.0.notified().await;
        if (number + 1) % 1000 == 0 {
            println!("{} idle threads", number + 1);
        }
    }
    // What is released a moment after a turn.
    tokio::time::sleep(Duration::from_secs(10)).await;
    let (after, megabytes) = (memory(&world).await, |bytes: u64| bytes / (1 << 20));
    drop(clients);
    if let Ok(world) = Arc::try_unwrap(world) {
        world.end().await;
    }
    Ok(format!("{} MB (without threads {} MB)", megabytes(after), megabytes(before)))
}

/// The resident memory of all nodes together.
async fn memory(world: &World) -> u64 {
    let mut sum = 0;
    for node in world.nodes() {
        sum += node.pid().await.map_or(0, |pid| soak::memory(pid).rss);
    }
    sum
}
