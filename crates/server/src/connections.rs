//! The initialized connections, and sending to them.

use std::cell::LazyCell;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loomd_agent::{ClientIdentity, EventId};
use loomd_protocol::Level;
use parking_lot::{Mutex, MutexGuard};

use crate::encoded_request::EncodedRequest;
use crate::outbound::{Notification, OutboundQueue};

/// Counts from 0 for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub u64);

/// The client of a connection, as it described itself in its handshake.
#[derive(Debug)]
pub(crate) struct Client {
    pub identity: Arc<ClientIdentity>,
    pub version: String,
    /// The release of the protocol that it is served.
    pub level: Level,
    pub experimental: bool,
    pub opted_out: HashSet<String>,
    /// Whether it is sent the ids of events.
    pub event_ids: bool,
    /// Whether another node acts for the client.
    pub is_node: bool,
}

/// A connection that takes part in broadcasts.
#[derive(Clone)]
pub(crate) struct Recipient {
    pub client: Arc<Client>,
    pub outbound: Arc<OutboundQueue>,
}

impl Client {
    /// Whether the client is sent a notification.
    pub fn wants(&self, notification: &Notification) -> bool {
        let message = notification.message();
        !self.opted_out.contains(message.method())
            && self.level.has(message)
            && (self.experimental || !message.is_experimental())
    }
}

impl Recipient {
    pub fn wants(&self, notification: &Notification) -> bool {
        self.client.wants(notification)
    }
}

#[derive(Default)]
pub(crate) struct Connections {
    next_id: AtomicU64,
    recipients: Mutex<BTreeMap<ConnectionId, Recipient>>,
}

async fn send(recipients: Vec<Recipient>, notification: &Notification) {
    for recipient in recipients {
        recipient.outbound.send(notification).await;
    }
}

impl Connections {
    pub fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    pub fn join(&self, id: ConnectionId, recipient: Recipient) {
        self.lock().insert(id, recipient);
    }

    pub fn leave(&self, id: ConnectionId) {
        self.lock().remove(&id);
    }

    /// Sends to all initialized connections; waits for those whose outbound queue makes senders wait.
    pub async fn broadcast(&self, notification: &Notification) {
        self.broadcast_but(|_| false, notification).await;
    }

    /// Sends to all recipients but some.
    pub async fn broadcast_but(&self, is_left_out: impl Fn(ConnectionId) -> bool, notification: &Notification) {
        let recipients = {
            let all = self.lock();
            let wanted = all.iter().filter(|(id, recipient)| !is_left_out(**id) && recipient.wants(notification));
            wanted.map(|(_, recipient)| recipient.clone()).collect()
        };
        send(recipients, notification).await;
    }

    /// Sends to the connections that `is_meant` returns true for, by their id and whether another node acts for them.
    pub async fn broadcast_to(&self, is_meant: impl Fn(ConnectionId, bool) -> bool, notification: &Notification) {
        let recipients = {
            let all = self.lock();
            let meant = all.iter().filter(|(id, recipient)| is_meant(**id, recipient.client.is_node));
            meant.filter(|(_, recipient)| recipient.wants(notification)).map(|(_, to)| to.clone()).collect()
        };
        send(recipients, notification).await;
    }

    /// Sends other nodes that act for some connections a message of theirs; the other connections.
    pub fn send_to_nodes(&self, to: &[ConnectionId], message: &bytes::Bytes) -> Vec<ConnectionId> {
        let all = self.lock();
        let mut others = Vec::new();
        for id in to {
            match all.get(id) {
                Some(recipient) if recipient.client.is_node => recipient.outbound.request(message.clone()),
                Some(_) => others.push(*id),
                None => {}
            }
        }
        others
    }

    /// Sends to some connections; skips those that have ended.
    pub async fn send_to(&self, ids: impl IntoIterator<Item = ConnectionId>, notification: &Notification) {
        let recipients = {
            let all = self.lock();
            let there = ids.into_iter().filter_map(|id| all.get(&id));
            there.filter(|recipient| recipient.wants(notification)).cloned().collect()
        };
        send(recipients, notification).await;
    }

    /// Queues a server request for some connections, each in its form; skips those that have ended.
    pub fn request(&self, to: &[ConnectionId], request: &EncodedRequest) {
        let all = self.lock();
        for recipient in to.iter().filter_map(|id| all.get(id)) {
            recipient.outbound.request(request.json(recipient.client.experimental).clone());
        }
    }

    /// Queues a server request of a thread, with the id of its event for those that asked for ids. One that is no longer
    /// open is sent to these only: it is one of the events that they missed.
    pub fn request_event(&self, to: &[ConnectionId], request: &EncodedRequest, event_id: EventId, is_open: bool) {
        let marked = LazyCell::new(|| request.with_event_id(event_id));
        let all = self.lock();
        for recipient in to.iter().filter_map(|id| all.get(id)) {
            let client = &recipient.client;
            match client.event_ids {
                true => recipient.outbound.request(marked.json(client.experimental).clone()),
                false if is_open => recipient.outbound.request(request.json(client.experimental).clone()),
                false => {}
            }
        }
    }

    /// How many messages and bytes wait to be sent.
    pub fn queued(&self) -> (usize, usize) {
        let queues: Vec<_> = self.lock().values().map(|recipient| Arc::clone(&recipient.outbound)).collect();
        queues.iter().map(|queue| queue.queued()).fold((0, 0), |sum, queue| (sum.0 + queue.0, sum.1 + queue.1))
    }

    /// Returns the ids of all initialized connections.
    pub fn ids(&self) -> Vec<ConnectionId> {
        self.lock().keys().copied().collect()
    }

    /// Whether a connection is initialized and has not ended.
    pub fn contains(&self, id: ConnectionId) -> bool {
        self.lock().contains_key(&id)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Recipient>> {
        self.recipients.lock()
    }
}
