//! This process as one of the nodes that share a store. [`loomd_ownership::Node`] decides where a request about a thread
//! is carried out; this module gives it its inputs and does what it returns.
//!
//! A request gets a [`Ticket`], whose [`Verdict`]s say what to do with it. `link` carries requests to other nodes,
//! `routing` carries them out.

mod actions;
mod clock;
mod elsewhere;
mod known;
mod placement;
mod start;
mod token;

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use loomd_agent::{Ownership, Owning, Refusal, Subscriber};
use loomd_ownership::{Answer, Input, Need, Node, NodeId, PeerMessage, RequestKey, Settings, Thread};
use loomd_protocol::ThreadStatus;
use loomd_store::{NodeFacts, PoolFigures, SharedStore, Store, ThreadId};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub(crate) use clock::LiveUntil;
use clock::now_ms;
pub(crate) use elsewhere::Elsewhere;
pub(crate) use known::{KnownNode, KnownNodes};
pub use token::{BadToken, NodeToken};

/// The notification between nodes that a thread is no longer the sender's.
pub(crate) const RELEASED: &str = "node/released";

/// The reason in the data of an error that says that a thread is not the node's.
pub(crate) const NOT_OWNER: &str = "notOwner";

/// What a process is as a node.
#[derive(Clone, Default)]
pub struct NodeOptions {
    /// Where other nodes reach it; `None`: where it listens.
    pub url: Option<String>,
    pub labels: Vec<String>,
    /// What nodes authenticate to each other with. Without it this node takes no requests of others and sends none.
    pub token: Option<NodeToken>,
}

/// What the rest of the server does for the node.
pub(crate) trait NodeHost: Send + Sync {
    /// Stops a thread at once: it may be another node's.
    fn stop(&self, id: ThreadId);

    /// A thread has stopped. Notifies its subscribers.
    fn stopped(&self, id: ThreadId, subscribers: &[Subscriber]);

    /// Gives a thread up after its running step. It is reported as unloaded then.
    fn let_go(self: Arc<Self>, id: ThreadId);

    /// Loads a thread that was taken over and goes on with its turn.
    fn take_up(self: Arc<Self>, id: ThreadId);
}

/// This process as a node.
pub(crate) struct Nodes {
    pub id: NodeId,
    pub options: NodeOptions,
    pub known: KnownNodes,
    /// What is known of threads that other nodes have loaded.
    pub elsewhere: Elsewhere,
    pub live: Arc<LiveUntil>,
    store: Arc<dyn Store>,
    facts: OnceLock<NodeFacts>,
    /// The last session that was registered.
    session: Mutex<Option<Uuid>>,
    node: Mutex<Node>,
    verdicts: Mutex<HashMap<RequestKey, mpsc::UnboundedSender<Verdict>>>,
    next_key: AtomicU64,
    /// The clients' connections that have a link to a node.
    linked: Mutex<HashSet<(u64, NodeId)>>,
    host: OnceLock<Weak<dyn NodeHost>>,
    drained: CancellationToken,
    counters: Counters,
}

/// What has happened on this node.
#[derive(Default)]
struct Counters {
    forwarded: AtomicU64,
    taken_over: AtomicU64,
    stopped: AtomicU64,
}

/// The figures of a node.
pub(crate) struct Counted {
    pub owned: usize,
    pub links: usize,
    pub requests: usize,
    pub forwarded: u64,
    pub taken_over: u64,
    pub stopped: u64,
}

/// What becomes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is carried out here. The epoch is that of the thread if this node owns it.
    Run { epoch: Option<u64> },
    /// It is sent to another node.
    Forward(NodeId),
    /// Another node has sent it, and is told that the thread is not this node's.
    NotOwner,
    /// It is not carried out.
    Refused(Answer),
}

/// Who makes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Requester {
    Client,
    Node(NodeId),
}

/// A request on its way. It counts as answered when this is dropped.
pub(crate) struct Ticket {
    nodes: Arc<Nodes>,
    key: RequestKey,
    verdicts: mpsc::UnboundedReceiver<Verdict>,
}

impl Nodes {
    /// A node that has not joined the others. `store` is a shared one.
    pub fn new(store: Arc<dyn Store>, options: NodeOptions) -> Arc<Self> {
        let id = NodeId(Uuid::new_v4().as_u64_pair().0);
        let ttl = store.shared().map_or(15_000, |shared| millis(shared.session_ttl()));
        let settings =
            Settings { session_ttl: ttl, renewal: ttl / 3, db_timeout: (ttl / 3).min(3_000), ..Settings::default() };
        Arc::new(Self {
            id,
            options,
            known: KnownNodes::default(),
            elsewhere: Elsewhere::default(),
            live: Arc::default(),
            store,
            facts: OnceLock::new(),
            session: Mutex::default(),
            node: Mutex::new(Node::new(id, settings)),
            verdicts: Mutex::default(),
            next_key: AtomicU64::new(0),
            linked: Mutex::default(),
            host: OnceLock::new(),
            drained: CancellationToken::new(),
            counters: Counters::default(),
        })
    }

    pub(crate) fn shared(&self) -> Option<&dyn SharedStore> {
        self.store.shared()
    }

    /// The figures of this node.
    pub fn counted(&self) -> Counted {
        let (owned, requests) = {
            let node = self.node.lock();
            (node.running(now_ms()).len(), node.unanswered())
        };
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counted {
            owned,
            links: self.linked.lock().len(),
            requests,
            forwarded: count(&self.counters.forwarded),
            taken_over: count(&self.counters.taken_over),
            stopped: count(&self.counters.stopped),
        }
    }

    /// The connections to the database.
    pub fn pool(&self) -> PoolFigures {
        self.shared().map(SharedStore::pool).unwrap_or_default()
    }

    /// A thread that a client follows was taken over.
    pub fn note_taken_over(&self) {
        self.counters.taken_over.fetch_add(1, Ordering::Relaxed);
    }

    /// A thread that was loaded had to be stopped.
    pub fn note_stopped(&self) {
        self.counters.stopped.fetch_add(1, Ordering::Relaxed);
    }

    /// How long a node that does not answer may take to be replaced.
    pub fn patience(&self) -> Duration {
        const SLACK: Duration = Duration::from_secs(5);
        self.shared().map_or(SLACK, |shared| shared.session_ttl() + SLACK)
    }

    /// A request about a thread. `repeatable`: carrying it out twice has the effect of carrying it out once.
    pub fn request(self: &Arc<Self>, by: Requester, thread: ThreadId, need: Need, repeatable: bool) -> Ticket {
        let counter = self.next_key.fetch_add(1, Ordering::Relaxed);
        let key = RequestKey(u128::from(self.id.0) << 64 | u128::from(counter));
        let (sender, verdicts) = mpsc::unbounded_channel();
        self.verdicts.lock().insert(key, sender);
        let thread = bits(thread);
        self.input(match by {
            Requester::Client => Input::Request { key, thread, need, repeatable },
            Requester::Node(from) => {
                Input::Peer { from, message: PeerMessage::Forward { key, thread, need, repeatable } }
            }
        });
        Ticket { nodes: Arc::clone(self), key, verdicts }
    }

    /// The epoch of a thread that this node owns.
    pub fn owned(&self, thread: ThreadId) -> Option<u64> {
        self.node.lock().owned(bits(thread))
    }

    /// A thread has an unfinished turn and no owner.
    pub fn abandoned(self: &Arc<Self>, thread: ThreadId) {
        self.input(Input::Abandoned { thread: bits(thread) });
    }

    /// Lets all threads go; resolves when this node owns none and its session has ended.
    pub async fn drain(self: &Arc<Self>) {
        if self.facts.get().is_none() {
            return;
        }
        let session = *self.session.lock();
        self.input(Input::Drain);
        if let (Some(shared), Some(session)) = (self.shared(), session)
            && let Err(error) = shared.drain(session).await
        {
            tracing::debug!(%error, "the other nodes are not told that this one drains");
        }
        self.drained.cancelled().await;
    }

    /// The connection of a client has a link to a node, or none any more.
    pub fn set_linked(&self, connection: u64, node: NodeId, is_linked: bool) {
        let mut linked = self.linked.lock();
        match is_linked {
            true => linked.insert((connection, node)),
            false => linked.remove(&(connection, node)),
        };
    }

    pub fn is_linked(&self, connection: u64, node: NodeId) -> bool {
        self.linked.lock().contains(&(connection, node))
    }

    fn input(self: &Arc<Self>, input: Input) {
        let mut node = self.node.lock();
        let actions = node.handle(now_ms(), input);
        self.live.set(node.live_until());
        // Under the lock, so that they are done in their order. None of them gives an input itself.
        for action in actions {
            self.act(action);
        }
    }

    fn decide(&self, key: RequestKey, verdict: Verdict) {
        if let Some(request) = self.verdicts.lock().get(&key) {
            // Fails when the request was dropped.
            _ = request.send(verdict);
        }
    }
}

impl Ticket {
    /// The next verdict. After [`Verdict::Forward`] there is another one only if the outcome was reported. Cancel-safe.
    pub async fn next(&mut self) -> Verdict {
        self.verdicts.recv().await.unwrap_or(Verdict::Refused(Answer::Unavailable))
    }

    /// The node that it was sent to has answered it.
    pub fn answered(&self, by: NodeId) {
        self.nodes.input(Input::Peer { from: by, message: PeerMessage::Answered { key: self.key } });
    }

    /// The node that it was sent to did nothing: the thread is not its own.
    pub fn not_owner(&self, node: NodeId) {
        self.nodes.input(Input::Peer { from: node, message: PeerMessage::NotOwner { key: self.key } });
    }

    /// The node that it was sent to was lost before it answered.
    pub fn lost(&self) {
        self.nodes.input(Input::LostRequest { key: self.key });
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.nodes.verdicts.lock().remove(&self.key);
        self.nodes.input(Input::Finished { key: self.key });
        // One that was not run here is not waited for any longer.
        self.answered(self.nodes.id);
    }
}

/// Held by the agent.
pub(crate) struct NodeOwnership(pub Arc<Nodes>);

impl Ownership for NodeOwnership {
    fn own(&self, id: ThreadId) -> Owning<'_> {
        Box::pin(async move {
            let mut ticket = self.0.request(Requester::Client, id, Need::Owner, true);
            match ticket.next().await {
                Verdict::Run { epoch: Some(epoch) } => {
                    self.0.input(Input::Loaded { thread: bits(id) });
                    Ok(epoch)
                }
                Verdict::Forward(node) => {
                    ticket.answered(node);
                    Err(Refusal::LeaseLost(format!("thread {id} is loaded by another node")))
                }
                // The request is sent on, or refused as any other.
                Verdict::Refused(Answer::Moved) => Err(Refusal::LeaseLost(refusal(Answer::Moved).to_owned())),
                Verdict::Refused(answer) => Err(Refusal::failed(refusal(answer))),
                Verdict::Run { epoch: None } | Verdict::NotOwner => Err(Refusal::failed(refusal(Answer::Unavailable))),
            }
        })
    }

    fn is_live(&self) -> bool {
        self.0.live.is_live()
    }

    fn gave_up(&self, id: ThreadId, subscribers: Vec<Subscriber>) {
        if let Some(host) = self.0.host() {
            host.stopped(id, &subscribers);
        }
    }

    fn unloaded(&self, id: ThreadId) {
        self.0.input(Input::Unloaded { thread: bits(id) });
    }

    fn status_elsewhere(&self, id: ThreadId) -> Option<ThreadStatus> {
        self.0.elsewhere.status(id)
    }
}

/// Why a request was not carried out, for people.
pub(crate) fn refusal(answer: Answer) -> &'static str {
    match answer {
        Answer::Moved => "this node is draining: connect to another one",
        Answer::Unavailable => "no node could take the thread in time; nothing was done",
        Answer::Unknown => "the node that has the thread was lost; it is unknown whether the request was carried out",
        Answer::Busy => "Server overloaded; retry later.",
    }
}

fn bits(id: ThreadId) -> Thread {
    Thread(id.as_uuid().as_u128())
}

fn thread_id(thread: Thread) -> ThreadId {
    Uuid::from_u128(thread.0).into()
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
