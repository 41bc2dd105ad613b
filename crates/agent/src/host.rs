//! The other threads, as a thread's task and its tools see them. Both hold these traits instead of the registry of
//! threads, which in turn owns the threads.

use std::pin::Pin;
use std::sync::Arc;

use loomd_protocol::{ResponseItem, ThreadItem, UserInput};
use loomd_store::ThreadId;
use loomd_store::rollout::Event;

use crate::agent_tree::AgentTree;
use crate::settings::{Profile, Settings};
use crate::turn_origin::TurnOrigin;

pub(crate) type HostFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What tools can do beyond their own turn.
pub(crate) trait ToolHost: Send + Sync {
    fn is_loaded(&self, id: ThreadId) -> bool;

    /// Starts a child agent on a task, unless `max` agents are open; its thread's id and nickname.
    fn spawn(
        &self,
        child: ChildThread,
        task: AgentTask,
        max: usize,
        origin: TurnOrigin,
    ) -> HostFuture<'_, Result<(ThreadId, String), String>>;

    /// Loads the thread of a child agent that was closed.
    fn reopen(&self, id: ThreadId, child: ChildThread, max: usize) -> HostFuture<'_, Result<(), String>>;

    /// Starts or steers a turn of another agent; the turn's id.
    fn send_input(
        &self,
        id: ThreadId,
        input: Vec<UserInput>,
        origin: TurnOrigin,
    ) -> HostFuture<'_, Result<String, String>>;

    /// Gives a message to another agent. With `start` it begins a turn unless one is running; else it is read with the
    /// next model call.
    fn send_message(
        &self,
        id: ThreadId,
        message: ResponseItem,
        start: bool,
        origin: TurnOrigin,
    ) -> HostFuture<'_, Result<(), String>>;

    /// Interrupts the running turn of another agent. Resolves when it has stopped.
    fn interrupt_turn(&self, id: ThreadId) -> HostFuture<'_, ()>;

    /// Unloads an agent and its descendants.
    fn close_agents<'a>(&'a self, id: ThreadId, agent_tree: &'a AgentTree) -> HostFuture<'a, ()>;

    /// Has a thread record and publish the end of a command in the background. Resolves when it has been published, or
    /// the thread is unloaded.
    fn item_ended(&self, id: ThreadId, ended: ItemEnded) -> HostFuture<'_, ()>;
}

/// What a thread's task needs of the others.
pub(crate) trait ThreadHost: ToolHost {
    /// Unloads the child agents of a thread that is being unloaded.
    fn close_children<'a>(&'a self, parent: ThreadId, agent_tree: &'a AgentTree) -> HostFuture<'a, ()>;

    /// Has a thread record its pending notifications. Does nothing when it is not loaded.
    fn record_notifications(&self, id: ThreadId) -> HostFuture<'_, ()>;
}

/// The thread of a child agent that is to be loaded.
pub(crate) struct ChildThread {
    pub parent: ThreadId,
    pub depth: i32,
    pub role: Option<String>,
    pub settings: Settings,
    pub profile: Arc<Profile>,
    pub agent_tree: Arc<AgentTree>,
    /// Its conversation begins with that of its parent.
    pub with_history: bool,
    /// The path by which other agents address it; `None` for one that is addressed by its id.
    pub path: Option<String>,
}

/// What a child agent begins with.
pub(crate) enum AgentTask {
    User(Vec<UserInput>),
    /// A message of its parent.
    Message(ResponseItem),
}

/// An item that ended after its turn, with its record.
pub(crate) struct ItemEnded {
    pub turn_id: String,
    pub item: ThreadItem,
    pub event: Event,
}
