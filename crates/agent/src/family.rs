//! The agents that work together: the one that the user talks to and those that it started, directly or
//! through others. What became of each is known here, also after it has been closed.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_exec::sandbox::Roots;
use loomd_store::ThreadId;
use loomd_store::rollout::AgentStatus;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

/// Names for agents, so that people can tell them apart.
const NICKNAMES: &[&str] = &[
    "Aspen", "Birch", "Cedar", "Dahlia", "Elder", "Fern", "Ginkgo", "Hazel", "Iris", "Juniper", "Kale", "Laurel",
    "Maple", "Nettle", "Olive", "Poppy", "Quince", "Rowan", "Sage", "Thyme", "Umber", "Violet", "Willow", "Yarrow",
];

#[derive(Default)]
pub(crate) struct Family {
    members: Mutex<Members>,
    changed: Notify,
    /// What the paths of their sandboxes named when one of them first used them.
    pub roots: Arc<Roots>,
}

#[derive(Default)]
struct Members {
    agents: BTreeMap<ThreadId, Member>,
    /// How many there have been.
    born: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct Member {
    pub parent: ThreadId,
    pub nickname: String,
    pub role: Option<String>,
    pub status: AgentStatus,
    /// Its parent has been told that it came to an end.
    told: bool,
}

impl Member {
    pub fn is_open(&self) -> bool {
        !matches!(self.status, AgentStatus::Shutdown)
    }
}

/// Whether an agent will do nothing more unless it is asked to.
pub(crate) fn is_final(status: &AgentStatus) -> bool {
    !matches!(status, AgentStatus::PendingInit | AgentStatus::Running | AgentStatus::Interrupted)
}

impl Family {
    /// A new agent; its nickname. An error when there are `max` open ones already.
    pub fn join(&self, id: ThreadId, parent: ThreadId, role: Option<String>, max: usize) -> Result<String, ()> {
        let mut members = self.lock();
        if members.agents.values().filter(|member| member.is_open()).count() >= max {
            return Err(());
        }
        let (round, at) = (members.born / NICKNAMES.len(), members.born % NICKNAMES.len());
        members.born += 1;
        let nickname = match round {
            0 => NICKNAMES[at].to_owned(),
            round => format!("{} {}", NICKNAMES[at], round + 1),
        };
        let member = Member { parent, nickname: nickname.clone(), role, status: AgentStatus::PendingInit, told: false };
        members.agents.insert(id, member);
        Ok(nickname)
    }

    pub fn find(&self, id: ThreadId) -> Option<Member> {
        self.lock().agents.get(&id).cloned()
    }

    pub fn status(&self, id: ThreadId) -> AgentStatus {
        self.find(id).map_or(AgentStatus::NotFound, |member| member.status)
    }

    /// What became of an agent. Gives the parent that has to be told, the first time that it is an end.
    pub fn set(&self, id: ThreadId, status: AgentStatus) -> Option<ThreadId> {
        let mut members = self.lock();
        let member = members.agents.get_mut(&id)?;
        let tell = is_final(&status) && !member.told && status != AgentStatus::Shutdown;
        member.told |= tell;
        member.status = status;
        let parent = member.parent;
        drop(members);
        self.changed.notify_waiters();
        tell.then_some(parent)
    }

    pub fn forget(&self, id: ThreadId) {
        self.lock().agents.remove(&id);
    }

    /// The open agents that one started, with their names.
    pub fn children(&self, parent: ThreadId) -> Vec<(ThreadId, String)> {
        let members = self.lock();
        let children = members.agents.iter().filter(|(_, member)| member.parent == parent && member.is_open());
        children.map(|(id, member)| (*id, member.nickname.clone())).collect()
    }

    /// Waits until one of them has come to an end.
    pub async fn until_one_is_final(&self, ids: &[ThreadId]) {
        loop {
            let changed = self.changed.notified();
            if ids.iter().any(|id| is_final(&self.status(*id))) {
                return;
            }
            changed.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Members> {
        self.members.lock()
    }
}
