//! The initialized connections, and sending to them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loomd_agent::ClientIdentity;
use parking_lot::{Mutex, MutexGuard};

use crate::outbound::{Notification, OutboundQueue};

/// Counts from 0 for the life of the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub u64);

/// The client of a connection, as it described itself in its handshake.
#[derive(Debug)]
pub(crate) struct Client {
    pub identity: Arc<ClientIdentity>,
    pub version: String,
    pub experimental: bool,
    pub opted_out: HashSet<String>,
}

/// A connection that takes part in broadcasts.
#[derive(Clone)]
pub(crate) struct Recipient {
    pub client: Arc<Client>,
    pub outbound: Arc<OutboundQueue>,
}

impl Recipient {
    pub fn wants(&self, notification: &Notification) -> bool {
        !self.client.opted_out.contains(notification.method)
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

    /// Sends to some connections; skips those that have ended.
    pub async fn send_to(&self, ids: impl IntoIterator<Item = ConnectionId>, notification: &Notification) {
        let recipients = {
            let all = self.lock();
            let there = ids.into_iter().filter_map(|id| all.get(&id));
            there.filter(|recipient| recipient.wants(notification)).cloned().collect()
        };
        send(recipients, notification).await;
    }

    /// Returns the ids of all initialized connections.
    pub fn ids(&self) -> Vec<ConnectionId> {
        self.lock().keys().copied().collect()
    }

    /// Returns the outbound queue of a connection; `None` once it has ended.
    pub fn outbound(&self, id: ConnectionId) -> Option<Arc<OutboundQueue>> {
        self.lock().get(&id).map(|recipient| Arc::clone(&recipient.outbound))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Recipient>> {
        self.recipients.lock()
    }
}
