//! Which nodes can run a thread: those that have its labels and reach its working directory.

use std::path::PathBuf;

use loomd_ownership::NodeId;
use loomd_store::ThreadId;

use super::Nodes;

impl Nodes {
    /// Whether this node can run a thread. A thread that is not stored yet runs where it was started.
    pub async fn can_run(&self, thread: ThreadId) -> bool {
        let Ok(stored) = self.store.find(thread, None).await else { return true };
        if !has_all(&self.options.labels, &stored.meta.placement) {
            tracing::info!(%thread, placement = ?stored.meta.placement, "this node lacks labels of a thread");
            return false;
        }
        let cwd = PathBuf::from(&stored.meta.cwd);
        let is_there = {
            let cwd = cwd.clone();
            tokio::task::spawn_blocking(move || cwd.is_dir()).await.unwrap_or(false)
        };
        if !is_there {
            tracing::info!(%thread, cwd = %cwd.display(), "this node does not reach the working directory of a thread");
        }
        is_there
    }

    /// Whether this node has all labels of a placement.
    pub fn has_labels(&self, placement: &[String]) -> bool {
        has_all(&self.options.labels, placement)
    }

    /// Another node that has the labels of a stored thread.
    pub async fn other_for(&self, thread: ThreadId) -> Option<NodeId> {
        let stored = self.store.find(thread, None).await.ok()?;
        self.other_with(&stored.meta.placement)
    }

    /// Another node with these labels that takes requests.
    pub fn other_with(&self, placement: &[String]) -> Option<NodeId> {
        let all = self.known.all();
        let takes = |node: &&super::KnownNode| node.url.is_some() && !node.draining;
        all.iter().filter(takes).find(|node| has_all(&node.labels, placement)).map(|node| node.id)
    }
}

fn has_all(labels: &[String], wanted: &[String]) -> bool {
    wanted.iter().all(|label| labels.contains(label))
}
