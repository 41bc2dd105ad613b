//! The threads that other nodes have loaded, as these say.

use std::collections::BTreeMap;

use loomd_ownership::NodeId;
use loomd_protocol::ThreadStatus;
use loomd_store::ThreadId;
use parking_lot::Mutex;

#[derive(Default)]
pub(crate) struct Elsewhere(Mutex<BTreeMap<ThreadId, (NodeId, ThreadStatus)>>);

impl Elsewhere {
    /// What a node says about a thread of its own.
    pub fn set(&self, node: NodeId, id: ThreadId, status: ThreadStatus) {
        let mut threads = self.0.lock();
        match status {
            ThreadStatus::NotLoaded => {
                if threads.get(&id).is_some_and(|(of, _)| *of == node) {
                    threads.remove(&id);
                }
            }
            status => _ = threads.insert(id, (node, status)),
        }
    }

    /// Forgets the threads of a node that is no longer heard.
    pub fn forget(&self, node: NodeId) {
        self.0.lock().retain(|_, (of, _)| *of != node);
    }

    pub fn status(&self, id: ThreadId) -> Option<ThreadStatus> {
        self.0.lock().get(&id).map(|(_, status)| status.clone())
    }

    pub fn ids(&self) -> Vec<ThreadId> {
        self.0.lock().keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_moved_is_not_forgotten_with_its_former_node() {
        let (elsewhere, id) = (Elsewhere::default(), ThreadId::new());
        elsewhere.set(NodeId(1), id, ThreadStatus::Idle);
        elsewhere.set(NodeId(2), id, ThreadStatus::SystemError);
        elsewhere.set(NodeId(1), id, ThreadStatus::NotLoaded);
        elsewhere.forget(NodeId(1));
        assert_eq!(elsewhere.status(id), Some(ThreadStatus::SystemError));
        elsewhere.forget(NodeId(2));
        assert_eq!((elsewhere.status(id), elsewhere.ids()), (None, Vec::new()));
    }
}
