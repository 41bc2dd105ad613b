//! [`Client`]: starts threads and turns, watches them, interrupts them, and goes from node to node, at random. A request
//! whose outcome it does not know is sent again with its key, wherever it is connected by then.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use fastrand::Rng;
use loomd_testkit::ClusterNode;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};

use crate::connection::{Connection, Observer, Unanswered};
use crate::history::{ConnectionId, History, What};
use crate::plan;
use crate::stored::labels;

/// Threads of a run at most; turns are added to those that there are.
const MAX_THREADS: usize = 40;
/// How often a request is sent before the client gives up.
const ATTEMPTS: usize = 12;

/// What all clients know.
pub struct Board {
    pub history: Arc<History>,
    pub nodes: Vec<Arc<ClusterNode>>,
    pub work: PathBuf,
    threads: Mutex<Vec<Known>>,
    connections: AtomicUsize,
    pub stopping: watch::Sender<bool>,
}

#[derive(Clone)]
struct Known {
    id: String,
    /// The turn that was started last, as far as that was answered. Threads without a turn are not stored.
    turn: Option<String>,
}

impl Board {
    pub fn new(history: Arc<History>, nodes: Vec<Arc<ClusterNode>>, work: PathBuf) -> Self {
        let (threads, connections) = (Mutex::default(), AtomicUsize::new(0));
        Self { history, nodes, work, threads, connections, stopping: watch::channel(false).0 }
    }

    /// The threads that have a turn.
    pub fn threads(&self) -> Vec<String> {
        self.threads.lock().iter().filter(|known| known.turn.is_some()).map(|known| known.id.clone()).collect()
    }

    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// A connection to a node, whose messages are recorded.
    pub async fn connect(&self, node: &ClusterNode, approve: Approve, last: &LastEvents) -> Option<Live> {
        let port = node.port()?;
        let id = self.connections.fetch_add(1, Ordering::Relaxed);
        let (approvals, mut asked) = mpsc::unbounded_channel();
        let recorder = Recorder {
            id,
            history: Arc::clone(&self.history),
            last: Arc::clone(last),
            shown: Mutex::default(),
            approvals,
        };
        let connection = Arc::new(Connection::open(port, Arc::new(recorder)).await?);
        let answering = Arc::downgrade(&connection);
        tokio::spawn(async move {
            let mut approve = approve;
            while let Some(request) = asked.recv().await {
                if let Some(decision) = approve.decide().await {
                    let Some(connection) = answering.upgrade() else { return };
                    connection.respond(&request, json!({ "decision": decision })).await;
                }
            }
        });
        Some(Live { connection, subscribed: HashSet::new() })
    }
}

/// The last event of each thread that a client has.
pub type LastEvents = Arc<Mutex<HashMap<String, u128>>>;

/// How a client answers approvals.
pub enum Approve {
    Always,
    AtRandom(Rng),
}

impl Approve {
    async fn decide(&mut self) -> Option<&'static str> {
        let Self::AtRandom(random) = self else { return Some("accept") };
        let pause = Duration::from_millis(random.u64(0..200));
        tokio::time::sleep(pause).await;
        match random.u8(0..10) {
            0 => Some("decline"),
            1 | 2 => None,
            _ => Some("accept"),
        }
    }
}

/// An open connection.
pub struct Live {
    pub connection: Arc<Connection>,
    subscribed: HashSet<String>,
}

struct Recorder {
    id: ConnectionId,
    history: Arc<History>,
    last: LastEvents,
    /// Threads that this connection is subscribed to. Events of others are not in order.
    shown: Mutex<HashSet<String>>,
    /// The ids of server requests.
    approvals: mpsc::UnboundedSender<Value>,
}

impl Observer for Recorder {
    fn received(&self, message: &Value) {
        let params = &message["params"];
        let Some(thread) = params["threadId"].as_str().or(params["thread"]["id"].as_str()) else { return };
        if !self.shown.lock().contains(thread) {
            return;
        }
        if let Some(event) = message["eventId"].as_str().and_then(|id| id.parse::<u128>().ok()) {
            let mut last = self.last.lock();
            let last = last.entry(thread.to_owned()).or_default();
            *last = event.max(*last);
        }
        self.history.received(self.id, message);
        if let Some(id) = message.get("id")
            && message["method"].as_str().is_some_and(|method| method.ends_with("/requestApproval"))
        {
            _ = self.approvals.send(id.clone());
        }
    }

    fn answered(&self, method: &str, params: &Value, result: &Value) {
        let (thread, event) = match method {
            "thread/start" => (&result["thread"]["id"], &result["eventId"]),
            "thread/resume" if result["replay"] == "complete" => (&params["threadId"], &params["afterEvent"]),
            "thread/resume" => (&params["threadId"], &result["eventId"]),
            _ => return,
        };
        let Some(thread) = thread.as_str() else { return };
        let after = event.as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
        self.shown.lock().insert(thread.to_owned());
        if result["replay"] == "reset" || after > 0 {
            self.last.lock().insert(thread.to_owned(), after);
        }
        let is_whole = method == "thread/resume" && result["replay"] != "complete" && params["excludeTurns"] != true;
        let items = is_whole.then(|| labels(&result["thread"]["turns"]));
        self.history.add(What::Shown { connection: self.id, thread: thread.to_owned(), after, items });
    }
}

pub struct Client {
    board: Arc<Board>,
    number: usize,
    random: Rng,
    live: Option<Live>,
    last: LastEvents,
    keys: usize,
}

impl Client {
    pub fn new(board: Arc<Board>, number: usize, seed: u64) -> Self {
        Self { board, number, random: Rng::with_seed(seed), live: None, last: LastEvents::default(), keys: 0 }
    }

    /// Does something at random until the run stops.
    pub async fn run(mut self) {
        while !self.board.is_stopping() {
            let threads = self.board.threads.lock().clone();
            let chosen = (!threads.is_empty()).then(|| threads[self.random.usize(..threads.len())].clone());
            match (self.random.u8(0..100), chosen) {
                (0..8, _) | (_, None) if threads.len() < MAX_THREADS => self.start_thread().await,
                (0..45, Some(thread)) => self.start_turn(&thread.id).await,
                (45..60, Some(thread)) => _ = self.resume(&thread.id).await,
                (60..68, Some(Known { id, turn: Some(turn) })) => self.interrupt(&id, &turn).await,
                (68..76, Some(thread)) => self.look(&thread.id).await,
                (76..84, _) => self.live = None,
                _ => tokio::time::sleep(Duration::from_millis(self.random.u64(10..300))).await,
            }
        }
    }

    async fn live(&mut self) -> Option<&mut Live> {
        if self.live.as_ref().is_none_or(|live| !live.connection.is_open()) {
            let node = Arc::clone(&self.board.nodes[self.random.usize(..self.board.nodes.len())]);
            let approve = Approve::AtRandom(self.random.fork());
            self.live = self.board.connect(&node, approve, &self.last).await;
            if self.live.is_none() {
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
        self.live.as_mut()
    }

    /// Sends a request on the present connection, or on a new one. `None` when there was no answer, or a refusal.
    async fn request(&mut self, thread: Option<&str>, method: &str, params: Value) -> Option<Value> {
        let connection = Arc::clone(&self.live().await?.connection);
        let reason = match connection.request(method, params).await {
            Ok(result) => return Some(result),
            Err(Unanswered::Lost) => {
                self.live = None;
                "no answer".to_owned()
            }
            Err(Unanswered::Refused(error)) => error.to_string(),
        };
        let (thread, method) = (thread.map(str::to_owned), method.to_owned());
        self.board.history.add(What::Failed { thread, method, reason });
        None
    }

    fn key(&mut self) -> String {
        self.keys += 1;
        format!("c{}k{}", self.number, self.keys)
    }

    /// Starts a thread and its first turn.
    async fn start_thread(&mut self) {
        let policy = if self.random.bool() { "never" } else { "untrusted" };
        let params = json!({ "cwd": self.board.work, "approvalPolicy": policy, "idempotencyKey": self.key() });
        for _ in 0..ATTEMPTS {
            if let Some(result) = self.request(None, "thread/start", params.clone()).await {
                let Some(id) = result["thread"]["id"].as_str().map(str::to_owned) else { return };
                if let Some(live) = &mut self.live {
                    live.subscribed.insert(id.clone());
                }
                self.board.threads.lock().push(Known { id: id.clone(), turn: None });
                return self.start_turn(&id).await;
            }
            if self.board.is_stopping() {
                return;
            }
            self.pause().await;
        }
    }

    /// Subscribes to a thread; whether that succeeded.
    async fn resume(&mut self, thread: &str) -> bool {
        let mut params = json!({ "threadId": thread, "excludeTurns": self.random.bool() });
        let last = self.last.lock().get(thread).copied();
        if let Some(last) = last
            && self.random.u8(0..10) < 8
        {
            params["afterEvent"] = last.to_string().into();
        }
        let resumed = self.request(Some(thread), "thread/resume", params).await.is_some();
        if resumed && let Some(live) = &mut self.live {
            live.subscribed.insert(thread.to_owned());
        }
        resumed
    }

    async fn start_turn(&mut self, thread: &str) {
        let key = self.key();
        let text = plan::text(&key, &plan::steps(&mut self.random));
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": thread, "input": input, "clientUserMessageId": key });
        // Some are sent again although they were answered.
        let mut wanted = if self.random.u8(0..5) == 0 { 2 } else { 1 };
        for _ in 0..ATTEMPTS {
            let is_subscribed = self.live().await.is_some_and(|live| live.subscribed.contains(thread));
            if is_subscribed || self.resume(thread).await {
                if let Some(result) = self.request(Some(thread), "turn/start", params.clone()).await {
                    let turn = result["turn"]["id"].as_str().unwrap_or_default().to_owned();
                    self.note_started(thread, &key, &text, &turn);
                    wanted -= 1;
                    if wanted == 0 {
                        return;
                    }
                    self.live = None;
                } else if let Some(live) = &mut self.live {
                    // It may have been unloaded, or moved.
                    live.subscribed.remove(thread);
                }
            }
            if self.board.is_stopping() {
                return;
            }
            self.pause().await;
        }
    }

    fn note_started(&self, thread: &str, key: &str, text: &str, turn: &str) {
        if let Some(known) = self.board.threads.lock().iter_mut().find(|known| known.id == thread) {
            known.turn = Some(turn.to_owned());
        }
        let (thread, key, text, turn) = (thread.to_owned(), key.to_owned(), text.to_owned(), turn.to_owned());
        self.board.history.add(What::Started { thread, key, text, turn });
    }

    async fn interrupt(&mut self, thread: &str, turn: &str) {
        self.request(Some(thread), "turn/interrupt", json!({ "threadId": thread, "turnId": turn })).await;
    }

    /// Asks for something that any node answers.
    async fn look(&mut self, thread: &str) {
        match self.random.u8(0..3) {
            0 => self.request(None, "thread/list", json!({})).await,
            1 => self.request(None, "thread/loaded/list", json!({})).await,
            _ => self.request(Some(thread), "thread/read", json!({ "threadId": thread, "includeTurns": true })).await,
        };
    }

    async fn pause(&mut self) {
        let pause = Duration::from_millis(self.random.u64(50..500));
        tokio::time::sleep(pause).await;
    }
}
