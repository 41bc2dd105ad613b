//! The initialized connections, and sending to them.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use loomd_agent::ClientIdentity;
use parking_lot::{Mutex, MutexGuard};

use crate::outbox::{Notification, Outbox};

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
pub(crate) struct Member {
    pub client: Arc<Client>,
    pub outbox: Arc<Outbox>,
}

impl Member {
    pub fn wants(&self, notification: &Notification) -> bool {
        !self.client.opted_out.contains(notification.method)
    }
}

#[derive(Default)]
pub(crate) struct Connections {
    next_id: AtomicU64,
    members: Mutex<BTreeMap<ConnectionId, Member>>,
}

async fn send(members: Vec<Member>, notification: &Notification) {
    for member in members {
        member.outbox.send(notification).await;
    }
}

impl Connections {
    pub fn next_id(&self) -> ConnectionId {
        ConnectionId(self.next_id.fetch_add(1, Ordering::Relaxed))
    }

    pub fn join(&self, id: ConnectionId, member: Member) {
        self.lock().insert(id, member);
    }

    pub fn leave(&self, id: ConnectionId) {
        self.lock().remove(&id);
    }

    /// Sends to all members, each waited for or not as its outbox says.
    pub async fn broadcast(&self, notification: &Notification) {
        self.broadcast_but(|_| false, notification).await;
    }

    /// Sends to all members but some.
    pub async fn broadcast_but(&self, is_left_out: impl Fn(ConnectionId) -> bool, notification: &Notification) {
        let members = {
            let all = self.lock();
            let wanted = all.iter().filter(|(id, member)| !is_left_out(**id) && member.wants(notification));
            wanted.map(|(_, member)| member.clone()).collect()
        };
        send(members, notification).await;
    }

    /// Sends to some members; those who are gone miss it.
    pub async fn send_to(&self, ids: impl IntoIterator<Item = ConnectionId>, notification: &Notification) {
        let members = {
            let all = self.lock();
            let there = ids.into_iter().filter_map(|id| all.get(&id));
            there.filter(|member| member.wants(notification)).cloned().collect()
        };
        send(members, notification).await;
    }

    /// Those who are there.
    pub fn ids(&self) -> Vec<ConnectionId> {
        self.lock().keys().copied().collect()
    }

    /// The outbox of a member, if it is still there.
    pub fn outbox(&self, id: ConnectionId) -> Option<Arc<Outbox>> {
        self.lock().get(&id).map(|member| Arc::clone(&member.outbox))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ConnectionId, Member>> {
        self.members.lock()
    }
}
