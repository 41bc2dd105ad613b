//! The tree of agents: that of a thread which a client started, and its descendants. The status of an agent is kept also
//! after it has been closed.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use loomd_exec::sandbox::Roots;
use loomd_protocol::ResponseItem;
use loomd_store::ThreadId;
use loomd_store::rollout::{AgentStatus, CompletedItem};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::inbox::{Inbox, Input};
use crate::metering::ThreadSpending;

/// Nicknames of child agents.
const NICKNAMES: &[&str] = &[
    "Aspen", "Birch", "Cedar", "Dahlia", "Elder", "Fern", "Ginkgo", "Hazel", "Iris", "Juniper", "Kale", "Laurel",
    "Maple", "Nettle", "Olive", "Poppy", "Quince", "Rowan", "Sage", "Thyme", "Umber", "Violet", "Willow", "Yarrow",
];

/// The path of the thread that a client started.
pub(crate) const ROOT: &str = "/root";

#[derive(Default)]
pub(crate) struct AgentTree {
    table: Mutex<AgentTable>,
    changed: Notify,
    /// What the roots of their sandboxes resolved to when one of them first used them.
    pub roots: Arc<Roots>,
    /// What all of them have spent.
    pub spending: Arc<ThreadSpending>,
}

#[derive(Default)]
struct AgentTable {
    agents: BTreeMap<ThreadId, AgentEntry>,
    /// How many agents have been added.
    added: usize,
    /// Inboxes of the running turns.
    inboxes: HashMap<ThreadId, Arc<Inbox>>,
    /// Notifications for agents whose inbox takes none: no turn is running, or it is about to end.
    pending: HashMap<ThreadId, Vec<ResponseItem>>,
}

impl AgentTable {
    fn notify(&mut self, id: ThreadId, notice: Notice) {
        let Notice { item, activity } = notice;
        let input = match activity {
            Some(activity) => Input::Agent { item, activity: Box::new(activity) },
            None => Input::Injected(item),
        };
        let refused = match self.inboxes.get(&id) {
            Some(inbox) => inbox.put(input),
            None => Err(input),
        };
        if let Err(Input::Injected(item) | Input::Agent { item, .. }) = refused {
            self.pending.entry(id).or_default().push(*item);
        }
    }
}

/// What an agent is told about another one.
pub(crate) struct Notice {
    /// For the conversation.
    pub item: Box<ResponseItem>,
    /// Shown in its running turn, if there is one.
    pub activity: Option<CompletedItem>,
}

#[derive(Clone, Debug)]
pub(crate) struct AgentEntry {
    pub parent: ThreadId,
    pub nickname: String,
    pub role: Option<String>,
    /// The path by which it is addressed, if it is.
    pub path: Option<String>,
    pub status: AgentStatus,
    /// Its parent has been notified of its first final status.
    notified: bool,
}

impl AgentEntry {
    pub fn is_open(&self) -> bool {
        !matches!(self.status, AgentStatus::Shutdown)
    }
}

/// Whether an agent with this status stays idle until it gets new input.
pub(crate) fn is_final(status: &AgentStatus) -> bool {
    !matches!(status, AgentStatus::PendingInit | AgentStatus::Running | AgentStatus::Interrupted)
}

impl AgentTree {
    /// Adds an agent; its nickname. Fails when `max` agents are open.
    pub fn join(
        &self,
        id: ThreadId,
        parent: ThreadId,
        role: Option<String>,
        path: Option<String>,
        max: usize,
    ) -> Result<String, ()> {
        let mut table = self.lock();
        if table.agents.values().filter(|agent| agent.is_open()).count() >= max {
            return Err(());
        }
        let (round, at) = (table.added / NICKNAMES.len(), table.added % NICKNAMES.len());
        table.added += 1;
        let nickname = match round {
            0 => NICKNAMES[at].to_owned(),
            round => format!("{} {}", NICKNAMES[at], round + 1),
        };
        let agent = AgentEntry {
            parent,
            nickname: nickname.clone(),
            role,
            path,
            status: AgentStatus::PendingInit,
            notified: false,
        };
        table.agents.insert(id, agent);
        Ok(nickname)
    }

    pub fn find(&self, id: ThreadId) -> Option<AgentEntry> {
        self.lock().agents.get(&id).cloned()
    }

    pub fn status(&self, id: ThreadId) -> AgentStatus {
        self.find(id).map_or(AgentStatus::NotFound, |agent| agent.status)
    }

    pub fn set(&self, id: ThreadId, status: AgentStatus) {
        if let Some(agent) = self.lock().agents.get_mut(&id) {
            agent.status = status;
        }
        self.changed.notify_waiters();
    }

    /// Sets the status in which an agent's turn ended. The first final one is notified to its parent: the
    /// notification is in the parent's inbox, or pending, before waiters see the status. Returns
    /// the parent that was notified.
    pub fn turn_ended(&self, id: ThreadId, status: AgentStatus, notification: Notice) -> Option<ThreadId> {
        let mut table = self.lock();
        let agent = table.agents.get_mut(&id)?;
        // An agent that is addressed by a path answers every task.
        let notifies = is_final(&status) && (!agent.notified || agent.path.is_some());
        agent.notified |= notifies;
        agent.status = status;
        let parent = agent.parent;
        if notifies {
            table.notify(parent, notification);
        }
        drop(table);
        self.changed.notify_waiters();
        notifies.then_some(parent)
    }

    /// Sets the inbox of an agent's running turn, which takes its notifications; `None` when no turn is running.
    pub fn set_inbox(&self, id: ThreadId, inbox: Option<Arc<Inbox>>) {
        let mut table = self.lock();
        match inbox {
            Some(inbox) => table.inboxes.insert(id, inbox),
            None => table.inboxes.remove(&id),
        };
    }

    /// Takes the notifications that no inbox has taken.
    pub fn take_pending(&self, id: ThreadId) -> Vec<ResponseItem> {
        self.lock().pending.remove(&id).unwrap_or_default()
    }

    pub fn forget(&self, id: ThreadId) {
        self.lock().agents.remove(&id);
    }

    /// The open children of an agent, with their nicknames.
    pub fn children(&self, parent: ThreadId) -> Vec<(ThreadId, String)> {
        let table = self.lock();
        let children = table.agents.iter().filter(|(_, agent)| agent.parent == parent && agent.is_open());
        children.map(|(id, agent)| (*id, agent.nickname.clone())).collect()
    }

    /// The path of an agent; that of the thread which a client started is `/root`.
    pub fn path(&self, id: ThreadId) -> String {
        self.find(id).and_then(|agent| agent.path).unwrap_or_else(|| ROOT.into())
    }

    /// The thread at the root of the tree, above an agent.
    pub fn root(&self, id: ThreadId) -> ThreadId {
        let table = self.lock();
        let mut root = id;
        while let Some(agent) = table.agents.get(&root) {
            root = agent.parent;
        }
        root
    }

    /// The agent with a path.
    pub fn by_path(&self, path: &str) -> Option<ThreadId> {
        let table = self.lock();
        let mut agents = table.agents.iter().filter(|(_, agent)| agent.path.as_deref() == Some(path));
        agents.find(|(_, agent)| agent.is_open()).map(|(id, _)| *id)
    }

    /// The paths of open agents with their status, in order.
    pub fn paths(&self) -> Vec<(String, AgentStatus)> {
        let table = self.lock();
        let open = table.agents.values().filter(|agent| agent.is_open());
        let mut paths: Vec<_> = open.filter_map(|agent| Some((agent.path.clone()?, agent.status.clone()))).collect();
        paths.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        paths
    }

    /// Resolves when an agent has unread messages, or none of its children is at work.
    pub async fn until_mail(&self, id: ThreadId) {
        loop {
            let changed = self.changed.notified();
            {
                let table = self.lock();
                let unread = table.inboxes.get(&id).is_some_and(|inbox| !inbox.is_empty())
                    || table.pending.get(&id).is_some_and(|pending| !pending.is_empty());
                let at_work = |agent: &AgentEntry| {
                    agent.parent == id && matches!(agent.status, AgentStatus::PendingInit | AgentStatus::Running)
                };
                if unread || !table.agents.values().any(at_work) {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Resolves when one of the agents has a final status.
    pub async fn until_one_is_final(&self, ids: &[ThreadId]) {
        loop {
            let changed = self.changed.notified();
            if ids.iter().any(|id| is_final(&self.status(*id))) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, AgentTable> {
        self.table.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::message;

    fn done() -> AgentStatus {
        AgentStatus::Completed(None)
    }

    fn notification() -> Notice {
        Notice { item: Box::new(message("user", "done".into())), activity: None }
    }

    #[test]
    fn the_first_final_status_of_a_child_is_in_the_inbox_of_its_parents_turn() {
        let (agent_tree, parent, child) = (AgentTree::default(), ThreadId::new(), ThreadId::new());
        agent_tree.join(child, parent, None, None, 1).unwrap();
        let inbox = Arc::new(Inbox::default());
        agent_tree.set_inbox(parent, Some(Arc::clone(&inbox)));
        assert_eq!(agent_tree.turn_ended(child, AgentStatus::Interrupted, notification()), None);
        assert_eq!(agent_tree.turn_ended(child, done(), notification()), Some(parent));
        assert_eq!(agent_tree.turn_ended(child, done(), notification()), None);
        assert_eq!((inbox.take().len(), agent_tree.take_pending(parent).len()), (1, 0));
    }

    #[test]
    fn a_notification_that_no_inbox_takes_is_pending() {
        let (agent_tree, parent) = (AgentTree::default(), ThreadId::new());
        let [idle, late] = [ThreadId::new(), ThreadId::new()];
        for child in [idle, late] {
            agent_tree.join(child, parent, None, None, 2).unwrap();
        }
        agent_tree.turn_ended(idle, done(), notification());
        let inbox = Arc::new(Inbox::default());
        inbox.close();
        agent_tree.set_inbox(parent, Some(inbox));
        agent_tree.turn_ended(late, done(), notification());
        assert_eq!(agent_tree.take_pending(parent).len(), 2);
        assert_eq!(agent_tree.take_pending(parent).len(), 0);
    }

    #[test]
    fn an_agent_with_a_path_notifies_its_parent_of_every_turn() {
        let (agent_tree, parent, child) = (AgentTree::default(), ThreadId::new(), ThreadId::new());
        agent_tree.join(child, parent, None, Some("/root/helper".into()), 1).unwrap();
        assert_eq!((agent_tree.path(parent), agent_tree.path(child)), ("/root".into(), "/root/helper".into()));
        assert_eq!(agent_tree.by_path("/root/helper"), Some(child));
        for _ in 0..2 {
            assert_eq!(agent_tree.turn_ended(child, done(), notification()), Some(parent));
        }
        assert_eq!(agent_tree.take_pending(parent).len(), 2);
        agent_tree.set(child, AgentStatus::Shutdown);
        assert_eq!((agent_tree.by_path("/root/helper"), agent_tree.paths()), (None, Vec::new()));
    }
}
