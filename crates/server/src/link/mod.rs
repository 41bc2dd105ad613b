//! The links of one client's connection to other nodes. A request about a thread that another node owns is sent there
//! over a websocket that acts for this client alone, with the client's own handshake; so subscriptions, capabilities and
//! the pace of a slow reader are that node's to keep, as for a client of its own.
//!
//! `session.rs` is one link from its handshake to its end, `relay.rs` what passes through it, `following.rs` which threads
//! come from which link, `follow.rs` what becomes of a subscription when its node is lost.

mod catch_up;
mod follow;
mod followed;
mod following;
mod relay;
mod session;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use loomd_console::Role;
use loomd_ownership::NodeId;
use loomd_protocol::{RequestId, RpcError};
use loomd_store::ThreadId;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::app::App;
use crate::connections::{Client, ConnectionId};
use crate::nodes::Nodes;
use crate::outbound::OutboundQueue;
use followed::{Followed, LinkId};
use following::FollowedThreads;

/// The links of a connection.
pub(crate) struct Links {
    app: Arc<App>,
    nodes: Arc<Nodes>,
    connection: ConnectionId,
    outbound: Arc<OutboundQueue>,
    role: Option<Role>,
    is_remote: bool,
    /// Known after the client's handshake.
    handshake: OnceLock<Handshake>,
    links: Mutex<HashMap<NodeId, Arc<Link>>>,
    next_link: AtomicU64,
    following: Mutex<FollowedThreads>,
    /// The server requests of other nodes, by the id that the client knows.
    asked: Mutex<HashMap<i64, Asked>>,
    /// Held while the node of a request is looked for.
    order: tokio::sync::Mutex<()>,
    ended: CancellationToken,
}

/// What the client has said in its handshake.
struct Handshake {
    params: Box<RawValue>,
    client: Arc<Client>,
}

/// A server request of another node.
struct Asked {
    link: Arc<Link>,
    id: RequestId,
    thread_id: Option<String>,
    /// By this client. It stays known until the node says that it is resolved.
    is_answered: bool,
}

/// A connection to another node for one client.
pub(crate) struct Link {
    id: LinkId,
    node: NodeId,
    queue: mpsc::UnboundedSender<Outgoing>,
    pending: Mutex<HashMap<i64, Pending>>,
    next: AtomicI64,
    /// Why the node does not want this link.
    refused: OnceLock<String>,
}

/// A message to the other node, and the call that it makes.
struct Outgoing {
    call: Option<i64>,
    json: String,
}

/// A call that the other node has not answered.
struct Pending {
    kind: PendingKind,
    is_sent: bool,
    done: oneshot::Sender<Outcome>,
}

enum PendingKind {
    /// Of the client, which is sent the answer.
    Client { id: RequestId, method: String },
    /// To follow a thread that the client is subscribed to.
    Follow { thread: ThreadId },
}

/// What became of a call to another node.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    /// The client has the answer.
    Answered,
    /// Nothing was done: the thread is not that node's.
    NotOwner,
    /// Nothing was done: the node was not reached. With the reason why it never will be.
    Unreached(Option<String>),
    /// It is unknown whether anything was done.
    Lost,
    /// A call to follow a thread was refused.
    Refused(RpcError),
}

impl Links {
    pub fn new(
        app: Arc<App>,
        nodes: Arc<Nodes>,
        connection: ConnectionId,
        outbound: Arc<OutboundQueue>,
        role: Option<Role>,
        is_remote: bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            app,
            nodes,
            connection,
            outbound,
            role,
            is_remote,
            handshake: OnceLock::new(),
            links: Mutex::default(),
            next_link: AtomicU64::new(0),
            following: Mutex::default(),
            asked: Mutex::default(),
            order: tokio::sync::Mutex::default(),
            ended: CancellationToken::new(),
        })
    }

    pub fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// The client has made its handshake with these params.
    pub fn initialized(&self, params: Box<RawValue>, client: Arc<Client>) {
        _ = self.handshake.set(Handshake { params, client });
    }

    /// The turn of a request to find its node. Given in the order in which it is asked for.
    pub async fn order(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.order.lock().await
    }

    /// Sends a request of the client to another node; resolves when the client has its answer, or will not get it from
    /// there. It is queued when this returns its future.
    pub fn forward(
        self: &Arc<Self>,
        node: NodeId,
        id: RequestId,
        method: &str,
        params: Option<&str>,
    ) -> impl Future<Output = Outcome> + Send + use<> {
        let kind = PendingKind::Client { id, method: method.to_owned() };
        let done = self.link(node).call(method, params.unwrap_or("{}"), kind);
        async move { done.await.unwrap_or(Outcome::Lost) }
    }

    /// Passes the client's answer to a server request of another node on. False when it is not one.
    pub fn answer(&self, id: &RequestId, answer: &Result<&RawValue, RpcError>) -> bool {
        let RequestId::Integer(known) = id else { return false };
        let mut asked = self.asked.lock();
        let Some(asked) = asked.get_mut(known) else { return false };
        if std::mem::replace(&mut asked.is_answered, true) {
            return true;
        }
        let id = serde_json::to_string(&asked.id).unwrap_or_default();
        let json = match answer {
            Ok(result) => format!("{{\"id\":{id},\"result\":{result}}}"),
            Err(error) => {
                let error = serde_json::to_string(error).unwrap_or_default();
                format!("{{\"id\":{id},\"error\":{error}}}")
            }
        };
        // Fails when the link has ended: the next owner of the thread asks again.
        _ = asked.link.queue.send(Outgoing { call: None, json });
        true
    }

    /// Whether a thread that the client follows has lost its node.
    pub fn is_moving(&self, thread: ThreadId) -> bool {
        self.following.lock().is_moving(thread)
    }

    /// Resolves when a thread that the client follows has a node again, or none; at once if it never lost it.
    pub async fn settled(&self, thread: ThreadId) {
        let settled = self.following.lock().settled(thread);
        if let Some(settled) = settled {
            tokio::select! {
                () = settled.cancelled() => {}
                () = self.ended.cancelled() => {}
            }
        }
    }

    /// The client follows a thread at no other node any more: it subscribes to it here, or has unsubscribed.
    pub fn unfollow(&self, thread: ThreadId) -> Option<Followed> {
        self.following.lock().unfollow(thread)
    }

    /// The client follows a thread after all.
    pub fn follow_still(self: &Arc<Self>, thread: ThreadId, followed: Followed) {
        let link = followed.link;
        self.following.lock().follow(thread, followed);
        // The link may have ended meanwhile.
        if !self.links.lock().values().any(|live| live.id == link) {
            self.move_thread(link, thread);
        }
    }

    /// The client is gone.
    pub fn end(&self) {
        self.ended.cancel();
    }
}

impl Link {
    /// Queues a call; the receiver gets its outcome.
    fn call(&self, method: &str, params: &str, kind: PendingKind) -> oneshot::Receiver<Outcome> {
        let (done, outcome) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let method = serde_json::Value::from(method);
        let json = format!("{{\"id\":{id},\"method\":{method},\"params\":{params}}}");
        self.pending.lock().insert(id, Pending { kind, is_sent: false, done });
        if self.queue.send(Outgoing { call: Some(id), json }).is_err() {
            self.give_up(id);
        }
        outcome
    }

    fn give_up(&self, id: i64) {
        if let Some(pending) = self.pending.lock().remove(&id) {
            let outcome = match pending.is_sent {
                true => Outcome::Lost,
                false => Outcome::Unreached(self.refused.get().cloned()),
            };
            _ = pending.done.send(outcome);
        }
    }
}
