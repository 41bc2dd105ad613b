//! `kills`: the owner of turns is killed at a random moment, over and over, and the time is measured until another node
//! goes on with them.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use loomd_testkit::ClusterNode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::connection::{Connection, Observer};
use crate::options::Options;
use crate::percentiles::Percentiles;
use crate::plan;
use crate::world::{self, World};

/// How long a turn may take to end after the kill, beyond the lifetime of a session.
const END: Duration = Duration::from_secs(60);
/// Longer than any turn takes that nobody disturbs.
const MAX_DELAY_MS: u64 = 400;

/// Times of all rounds.
#[derive(Default)]
pub struct Times {
    /// From the kill to the first event of the next owner.
    pub taken: Vec<Duration>,
    /// From the kill to the end of the turn.
    pub ended: Vec<Duration>,
}

/// Whether every turn ended in every round, and no command ran twice.
pub async fn run(options: &Options, rounds: usize) -> Result<bool> {
    println!("seed {}, {rounds} kills, sessions live {:?}", options.seed, options.session_ttl);
    let (times, violations) = measure(options, rounds).await?;
    println!("{} turns taken over in {rounds} kills", times.taken.len());
    println!("until the next owner's first event, p50 / p99 / max: {}", Percentiles::of(times.taken).text());
    println!("until the end of the turn, p50 / p99 / max: {}", Percentiles::of(times.ended).text());
    for violation in &violations {
        println!("VIOLATION {violation}; seed {}", options.seed);
    }
    Ok(violations.is_empty())
}

pub async fn measure(options: &Options, rounds: usize) -> Result<(Times, Vec<String>)> {
    let world = World::start(options, 3, false).await?;
    let mut random = Rng::with_seed(options.seed);
    let (mut times, mut violations) = (Times::default(), Vec::new());
    for number in 0..rounds {
        let owner = random.usize(..3);
        let other = (owner + random.usize(1..3)) % 3;
        let (owner, other) = (Arc::clone(&world.nodes()[owner]), Arc::clone(&world.nodes()[other]));
        let round = Round { world: &world, number, owner: &owner, other: &other };
        if let Err(error) = round.run(&mut random, &mut times, options.session_ttl).await {
            violations.push(format!("round {number}: {error:#}"));
        }
        let runs = world.command_runs();
        let unique: std::collections::HashSet<&String> = runs.iter().collect();
        if unique.len() < runs.len() {
            violations.push(format!("round {number}: a command ran twice"));
            break;
        }
        if owner.port().is_none() {
            world::start(&owner, END).await?;
        }
        if (number + 1) % 20 == 0 {
            println!("{} rounds", number + 1);
        }
    }
    for (pid, line) in world.end().await {
        violations.push(format!("process {pid} is left: {line}"));
    }
    Ok((times, violations))
}

struct Round<'a> {
    world: &'a World,
    number: usize,
    owner: &'a ClusterNode,
    other: &'a ClusterNode,
}

/// Events of the watching client with the time at which they came.
#[derive(Default)]
struct Watcher {
    events: Mutex<Vec<(Instant, Value)>>,
    approvals: Mutex<Option<mpsc::UnboundedSender<Value>>>,
}

impl Observer for Watcher {
    fn received(&self, message: &Value) {
        if let Some(id) = message.get("id")
            && let Some(approvals) = &*self.approvals.lock()
        {
            _ = approvals.send(id.clone());
        }
        self.events.lock().push((Instant::now(), message.clone()));
    }

    fn answered(&self, _: &str, _: &Value, _: &Value) {}
}

/// Nobody looks at what this client gets.
struct Blind;

impl Observer for Blind {
    fn received(&self, _: &Value) {}
    fn answered(&self, _: &str, _: &Value, _: &Value) {}
}

impl Round<'_> {
    async fn run(&self, random: &mut Rng, times: &mut Times, session_ttl: Duration) -> Result<()> {
        let starter = Connection::open(self.owner.port().context("a running node")?, Arc::new(Blind)).await;
        let starter = starter.context("a connection to the owner")?;
        let watcher = Arc::new(Watcher::default());
        let watching = Connection::open(self.other.port().context("a running node")?, watcher.clone()).await;
        let watching = Arc::new(watching.context("a connection to the other node")?);
        let mut turns = Vec::new();
        // A text, a command, and a command that needs an approval.
        for (place, (policy, steps)) in [("never", ""), ("never", "cc"), ("untrusted", "sc")].into_iter().enumerate() {
            turns.push(start(&starter, self.world, policy, &format!("r{}p{place}", self.number), steps).await?);
        }
        for (thread, _) in &turns {
            let resumed = watching.request("thread/resume", json!({ "threadId": thread })).await;
            resumed.map_err(|error| anyhow::anyhow!("thread/resume at another node: {error:?}"))?;
        }
        self.approve(&watcher, &watching);
        tokio::time::sleep(Duration::from_millis(random.u64(0..MAX_DELAY_MS))).await;
        let killed = Instant::now();
        self.owner.kill().await;
        for (thread, turn) in &turns {
            self.until_ended(&watching, thread, turn, session_ttl).await?;
            let events = watcher.events.lock();
            let of_thread: Vec<_> =
                events.iter().filter(|(_, event)| event["params"]["threadId"] == **thread).collect();
            let is_end = |event: &Value| event["method"] == "turn/completed" && event["params"]["turn"]["id"] == **turn;
            let end = of_thread.iter().find(|(_, event)| is_end(event)).map(|(at, _)| *at);
            // Turns that had ended before are not taken over.
            let Some(end) = end.filter(|end| *end > killed) else { continue };
            let epoch =
                |event: &Value| event["eventId"].as_str().and_then(|id| id.parse::<u128>().ok()).map(|id| id >> 64);
            let before = of_thread.iter().filter(|(at, _)| *at <= killed).filter_map(|(_, event)| epoch(event)).max();
            // What was missed is sent without ids.
            let is_of_next = |event: &Value| {
                let is_progress = event["method"]
                    .as_str()
                    .is_some_and(|method| method.starts_with("item/") || method.starts_with("turn/"));
                is_progress && epoch(event).is_none_or(|epoch| Some(epoch) > before)
            };
            let taken = of_thread.iter().find(|(at, event)| *at > killed && is_of_next(event)).map(|(at, _)| *at);
            times.taken.extend(taken.map(|taken| taken - killed));
            times.ended.push(end - killed);
        }
        Ok(())
    }

    /// Accepts what is requested, after a while.
    fn approve(&self, watcher: &Watcher, watching: &Arc<Connection>) {
        let (approvals, mut asked) = mpsc::unbounded_channel::<Value>();
        let open: Vec<Value> = watcher.events.lock().iter().filter_map(|(_, event)| event.get("id").cloned()).collect();
        *watcher.approvals.lock() = Some(approvals.clone());
        for id in open {
            _ = approvals.send(id);
        }
        let answering = Arc::downgrade(watching);
        tokio::spawn(async move {
            while let Some(id) = asked.recv().await {
                tokio::time::sleep(Duration::from_millis(150)).await;
                let Some(connection) = answering.upgrade() else { return };
                connection.respond(&id, json!({ "decision": "accept" })).await;
            }
        });
    }

    /// Waits until the turn is stored as completed.
    async fn until_ended(&self, client: &Connection, thread: &str, turn: &str, session_ttl: Duration) -> Result<()> {
        let ended = async {
            loop {
                let params = json!({ "threadId": thread, "includeTurns": true });
                if let Ok(read) = client.request("thread/read", params).await {
                    let turns = read["thread"]["turns"].as_array().cloned().unwrap_or_default();
                    let stored =
                        turns.iter().find(|stored| stored["id"] == *turn).map(|stored| stored["status"].clone());
                    if stored.as_ref().is_none_or(|status| status != "inProgress") {
                        return stored;
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        let status = tokio::time::timeout(session_ttl + END, ended).await.context("a turn has not ended")?;
        ensure!(status == Some(json!("completed")), "turn {turn} of {thread} is stored as {status:?}");
        // The end is stored before it is shown.
        tokio::time::sleep(Duration::from_millis(50)).await;
        Ok(())
    }
}

/// Starts a thread and a turn in it, and returns their ids.
pub async fn start(
    client: &Connection,
    world: &World,
    policy: &str,
    key: &str,
    steps: &str,
) -> Result<(String, String)> {
    let refused = |error| anyhow::anyhow!("{error:?}");
    let params = json!({ "cwd": world.cluster.work(), "approvalPolicy": policy });
    let started = client.request("thread/start", params).await.map_err(refused)?;
    let thread = started["thread"]["id"].as_str().context("a thread")?.to_owned();
    let input = json!([{ "type": "text", "text": plan::text(key, steps) }]);
    let params = json!({ "threadId": thread, "input": input, "clientUserMessageId": key });
    let started = client.request("turn/start", params).await.map_err(refused)?;
    Ok((thread, started["turn"]["id"].as_str().context("a turn")?.to_owned()))
}
