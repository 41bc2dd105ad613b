//! The other nodes, as the database lists them, and the threads that they left behind.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use loomd_ownership::{NodeId, Session};
use loomd_store::{NodeRow, ThreadId};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;

use super::Nodes;

/// How often the other nodes are looked up.
const LOOK: Duration = Duration::from_secs(1);

/// The live nodes but this one.
pub(crate) struct KnownNodes {
    nodes: Mutex<HashMap<NodeId, KnownNode>>,
    changed: watch::Sender<()>,
}

impl Default for KnownNodes {
    fn default() -> Self {
        Self { nodes: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

/// A live node.
#[derive(Clone)]
pub(crate) struct KnownNode {
    pub id: NodeId,
    /// Where it is reached; `None` when it takes no requests.
    pub url: Option<String>,
    pub labels: Vec<String>,
    pub draining: bool,
    /// Cancelled when it is live no longer.
    pub gone: CancellationToken,
}

impl KnownNodes {
    pub fn get(&self, id: NodeId) -> Option<KnownNode> {
        self.nodes.lock().get(&id).cloned()
    }

    pub fn all(&self) -> Vec<KnownNode> {
        self.nodes.lock().values().cloned().collect()
    }

    /// Changes whenever a node has come or gone.
    pub fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    fn update(&self, own: NodeId, rows: Vec<NodeRow>) {
        let mut nodes = self.nodes.lock();
        let mut before = std::mem::take(&mut *nodes);
        let mut has_changed = false;
        for row in rows.into_iter().filter(|row| row.expires_in_ms > 0) {
            let id = Session::from_bits(row.session.as_u128()).node;
            if id == own {
                continue;
            }
            let gone = before.remove(&id).map(|known| known.gone);
            has_changed |= gone.is_none();
            let known = KnownNode {
                id,
                url: row.facts.url,
                labels: row.facts.labels,
                draining: row.draining,
                gone: gone.unwrap_or_default(),
            };
            nodes.insert(id, known);
        }
        has_changed |= !before.is_empty();
        drop(nodes);
        for known in before.into_values() {
            known.gone.cancel();
        }
        if has_changed {
            self.changed.send_replace(());
        }
    }
}

impl Nodes {
    /// A node, looked up again if it is not known yet.
    pub async fn find(&self, id: NodeId) -> Option<KnownNode> {
        if let Some(known) = self.known.get(id) {
            return Some(known);
        }
        self.look_up().await;
        self.known.get(id)
    }

    async fn look_up(&self) {
        let Some(shared) = self.shared() else { return };
        match shared.nodes().await {
            Ok(rows) => self.known.update(self.id, rows),
            Err(error) => tracing::debug!(%error, "the other nodes could not be looked up"),
        }
    }
}

/// Looks for other nodes, and for threads with an unfinished turn that no node owns, until this node has drained.
pub(super) async fn look(nodes: Arc<Nodes>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut seen: HashSet<ThreadId> = HashSet::new();
    while !nodes.drained.is_cancelled() {
        ticks.tick().await;
        nodes.look_up().await;
        let Some(shared) = nodes.shared().filter(|_| nodes.live.is_live()) else { continue };
        let left = match shared.abandoned().await {
            Ok(left) => left,
            Err(error) => {
                tracing::debug!(%error, "abandoned threads could not be looked up");
                continue;
            }
        };
        // A node whose clients follow a thread comes first: others take it when they have seen it twice.
        for thread in left.iter().filter(|thread| seen.contains(thread)) {
            if nodes.can_run(*thread).await {
                nodes.abandoned(*thread);
            }
        }
        seen = left.into_iter().collect();
    }
}
