//! The surroundings of a tool call.

use std::sync::Arc;

use parking_lot::Mutex;

use super::net_diff::NetDiff;
use super::scope::{Role, ToolScope};
use crate::agent_tree::AgentTree;
use crate::extensions::SkillNeeds;
use crate::goals::GoalCx;
use crate::guard::ActionCx;
use crate::hooks::ThreadHooks;
use crate::host::ToolHost;
use crate::mcp::ThreadServers;
use crate::shell_memory::ShellMemory;
use crate::terminals::Terminals;
use crate::turn_origin::TurnOrigin;

/// What the tool calls of one turn share.
pub(crate) struct ToolCx {
    /// The turn, and what it may do.
    pub action: ActionCx,
    pub thread: Arc<ThreadTools>,
    /// The net diff of the turn's patches.
    pub diff: Arc<Mutex<NetDiff>>,
}

/// What the tools of a thread share from turn to turn.
#[derive(Clone)]
pub(crate) struct ThreadTools {
    pub goals: Arc<GoalCx>,
    pub role: Role,
    /// The number of parents of the thread's agent.
    pub depth: i32,
    pub terminals: Arc<Terminals>,
    pub host: Arc<dyn ToolHost>,
    pub agent_tree: Arc<AgentTree>,
    pub hooks: Arc<ThreadHooks>,
    pub shell_memory: Arc<ShellMemory>,
    pub skill_needs: Arc<SkillNeeds>,
    pub mcp: Arc<ThreadServers>,
}

impl ToolCx {
    pub fn new(action: ActionCx, thread: Arc<ThreadTools>) -> Self {
        Self { action, thread, diff: Arc::default() }
    }

    /// The surroundings of a review inside of this turn, whose own context is `action`.
    pub(super) fn for_review(&self, action: ActionCx) -> Self {
        let thread = ThreadTools {
            role: Role::Reviewer,
            hooks: Arc::new(self.thread.hooks.within()),
            ..ThreadTools::clone(&self.thread)
        };
        Self { action, thread: Arc::new(thread), diff: Arc::clone(&self.diff) }
    }

    /// This turn, as the origin of a turn that a tool call starts.
    pub fn origin(&self) -> TurnOrigin {
        TurnOrigin::of_parent(&self.action.turn.spending)
    }

    pub fn scope(&self) -> ToolScope<'_> {
        let turn = &*self.action.turn;
        let ThreadTools { role, depth, .. } = *self.thread;
        ToolScope { turn, role, depth, features: turn.profile.config.features }
    }
}
