//! The history test: clients and faults for a while, then healing, then the checks.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use fastrand::Rng;
use serde_json::json;
use tokio::task::JoinSet;

use crate::checks::{self, Violation};
use crate::client::{Approve, Board, Client, LastEvents};
use crate::faults::Schedule;
use crate::history::{Entry, History, What};
use crate::options::Options;
use crate::stored::{self, StoredThread};
use crate::world::World;

/// How long turns may take to end once everything is healed.
const SETTLING: Duration = Duration::from_secs(120);
/// How many violations are printed with the history of their thread.
const SHOWN: usize = 3;

/// Whether no violation was found.
pub async fn history(options: &Options) -> Result<bool> {
    println!("seed {}, {} nodes, {} clients, {:?}", options.seed, options.nodes, options.clients, options.time);
    let world = World::start(options, options.nodes, false).await?;
    if world.postgres.is_some() {
        stored::watch(&world.cluster);
    }
    let history = Arc::new(History::new());
    let board = Arc::new(Board::new(Arc::clone(&history), world.nodes().to_vec(), world.cluster.work().to_path_buf()));
    disturb(options, &world, &board).await?;
    history.fault("everything is healed");
    world.heal().await?;
    let threads = board.threads();
    let settled = settle(&board, &threads).await;
    let mut found: Vec<Violation> = Vec::new();
    let stored = match settled {
        Ok(stored) => stored,
        Err(error) => {
            found.push(Violation { thread: None, what: format!("{error:#}") });
            Vec::new()
        }
    };
    let entries = history.entries();
    if !stored.is_empty() {
        found.extend(checks::check(&entries, &stored, &world.command_runs()));
    }
    if world.postgres.is_some() {
        let in_tables = stored::violations(&world.cluster).into_iter();
        found.extend(in_tables.map(|(thread, what)| Violation { thread: Some(thread), what }));
        if stored::records(&world.cluster) == 0 {
            found.push(Violation { thread: None, what: "nothing is stored in the database".into() });
        }
    }
    let runs = world.command_runs().len();
    for (pid, line) in world.end().await {
        found.push(Violation { thread: None, what: format!("process {pid} is left: {line}") });
    }
    summarize(&entries, &stored, runs);
    report(options, &history, &found);
    Ok(found.is_empty())
}

/// Runs clients and faults for the time of the run, and waits for their end.
async fn disturb(options: &Options, world: &World, board: &Arc<Board>) -> Result<()> {
    let mut random = Rng::with_seed(options.seed);
    let mut tasks = JoinSet::new();
    for number in 0..options.clients {
        tasks.spawn(Client::new(Arc::clone(board), number, random.u64(..)).run());
    }
    let mut schedule = || Schedule {
        history: Arc::clone(&board.history),
        random: random.fork(),
        session_ttl: options.session_ttl,
        stopping: board.stopping.subscribe(),
    };
    for (number, node) in world.nodes().iter().enumerate() {
        tasks.spawn(schedule().of_node(number, Arc::clone(node), world.postgres.is_some()));
    }
    if let Some(postgres) = &world.postgres {
        tasks.spawn(schedule().of_database(Arc::clone(postgres)));
    }
    let ended = async {
        while let Some(ended) = tasks.join_next().await {
            ended?;
        }
        Ok(())
    };
    let timed = async {
        tokio::time::sleep(options.time).await;
        board.stopping.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        ended = ended => ended,
        () = timed => unreachable!("it waits for the others"),
    }
}

/// Waits until all turns have ended, and returns the threads. All nodes must show them alike.
async fn settle(board: &Board, threads: &[String]) -> Result<Vec<StoredThread>> {
    let last = LastEvents::default();
    let node = &board.nodes[0];
    let waited = async {
        let live = loop {
            if let Some(live) = board.connect(node, Approve::Always, &last).await {
                break live;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        };
        for thread in threads {
            // The owner may have been killed a moment ago.
            while live.connection.request("thread/resume", json!({ "threadId": thread })).await.is_err() {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        }
        loop {
            let stored = read(&live.connection, threads).await;
            match stored {
                Ok(stored) if stored.iter().all(StoredThread::has_ended) => return (live, stored),
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    };
    let settled = tokio::time::timeout(SETTLING, waited).await;
    let (_live, stored) =
        settled.with_context(|| format!("turns have not ended {SETTLING:?} after everything was healed"))?;
    for (number, node) in board.nodes.iter().enumerate().skip(1) {
        let other = board.connect(node, Approve::Always, &last).await.context("a node that was healed")?;
        for (here, there) in stored.iter().zip(read(&other.connection, threads).await?) {
            anyhow::ensure!(*here == there, "nodes 0 and {number} show another thread: {here:#?} {there:#?}");
        }
    }
    Ok(stored)
}

async fn read(connection: &crate::connection::Connection, threads: &[String]) -> Result<Vec<StoredThread>> {
    let mut stored = Vec::new();
    for thread in threads {
        let params = json!({ "threadId": thread, "includeTurns": true });
        let answer = connection.request("thread/read", params).await;
        stored.push(StoredThread::of(&answer.map_err(|error| anyhow::anyhow!("thread/read of {thread}: {error:?}"))?)?);
    }
    Ok(stored)
}

/// What happened, in numbers: a run in which nothing happens proves nothing.
fn summarize(entries: &[Entry], stored: &[StoredThread], runs: usize) {
    let (mut events, mut faults, mut starts) = (0, 0, 0);
    let mut failures: BTreeMap<String, usize> = BTreeMap::new();
    for entry in entries {
        match &entry.what {
            What::Event(_) => events += 1,
            What::Fault(_) => faults += 1,
            What::Started { .. } => starts += 1,
            What::Failed { method, reason, .. } => {
                let reason: String = reason.chars().take(120).collect();
                *failures.entry(format!("{method}: {reason}")).or_default() += 1;
            }
            What::Shown { .. } => {}
        }
    }
    let mut states: BTreeMap<&str, usize> = BTreeMap::new();
    for turn in stored.iter().flat_map(|thread| &thread.turns) {
        *states.entry(&turn.status).or_default() += 1;
    }
    println!("{} threads, turns {states:?}, {starts} acknowledged starts, {runs} commands", stored.len());
    println!("{events} events seen, {faults} faults; requests without an answer or refused:");
    let mut failures: Vec<_> = failures.into_iter().collect();
    failures.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    for (reason, times) in failures.iter().take(12) {
        println!("  {times:5} {reason}");
    }
}

fn report(options: &Options, history: &History, found: &[Violation]) {
    if found.is_empty() {
        println!("no violation; seed {}", options.seed);
        return;
    }
    println!("{} violations; seed {}", found.len(), options.seed);
    for Violation { thread, what } in found {
        println!("VIOLATION {}: {what}", thread.as_deref().unwrap_or("-"));
    }
    let mut threads: Vec<&String> = found.iter().filter_map(|violation| violation.thread.as_ref()).collect();
    threads.dedup();
    for thread in threads.into_iter().take(SHOWN) {
        println!("\nhistory of {thread}:\n{}", history.of_thread(thread));
    }
}
