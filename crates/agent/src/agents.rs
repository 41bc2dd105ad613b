//! The threads of child agents: spawning, reopening, sending input, closing.

use std::sync::Arc;

use loomd_protocol::{
    AgentPath, Level, ResponseItem, ServerNotification, SubAgentSource, ThreadClosedNotification, ThreadStatus, Turn,
    TurnStartParams, UserInput,
};
use loomd_store::rollout::{AgentStatus, BaseInstructions, Record, SessionMeta, Source as Origin, now};
use loomd_store::{Batch, Reader, ThreadId};
use tokio::sync::oneshot;

use crate::agent_tree::AgentTree;
use crate::fork::copy_lines;
use crate::host::{AgentTask, ChildThread, HostFuture, ItemEnded, ThreadHost, ToolHost};
use crate::loading::{PreparedThread, TreePosition};
use crate::thread::{LoadReason, Op, Opened, Reply};
use crate::threads::{Threads, WeakThreads};
use crate::turn_origin::TurnOrigin;
use crate::view::{Persistence, View};

/// The error of a call that comes while the server stops.
const STOPPING: &str = "the server is stopping";

impl ToolHost for WeakThreads {
    fn is_loaded(&self, id: ThreadId) -> bool {
        self.upgrade().is_some_and(|threads| threads.is_loaded(id))
    }

    fn spawn(
        &self,
        child: ChildThread,
        task: AgentTask,
        max: usize,
        origin: TurnOrigin,
    ) -> HostFuture<'_, Result<(ThreadId, String), String>> {
        Box::pin(async move { self.upgrade().ok_or(STOPPING)?.spawn(child, task, max, origin).await })
    }

    fn send_message(
        &self,
        id: ThreadId,
        message: ResponseItem,
        start: bool,
        origin: TurnOrigin,
    ) -> HostFuture<'_, Result<(), String>> {
        Box::pin(async move { self.upgrade().ok_or(STOPPING)?.send_message(id, message, start, origin).await })
    }

    fn reopen(&self, id: ThreadId, child: ChildThread, max: usize) -> HostFuture<'_, Result<(), String>> {
        Box::pin(async move { self.upgrade().ok_or(STOPPING)?.reopen(id, child, max).await })
    }

    fn send_input(
        &self,
        id: ThreadId,
        input: Vec<UserInput>,
        origin: TurnOrigin,
    ) -> HostFuture<'_, Result<String, String>> {
        Box::pin(async move { self.upgrade().ok_or(STOPPING)?.send_input(id, input, origin).await })
    }

    fn interrupt_turn(&self, id: ThreadId) -> HostFuture<'_, ()> {
        Box::pin(async move {
            if let Some(threads) = self.upgrade() {
                threads.interrupt_turn(id).await;
            }
        })
    }

    fn close_agents<'a>(&'a self, id: ThreadId, agent_tree: &'a AgentTree) -> HostFuture<'a, ()> {
        Box::pin(async move {
            if let Some(threads) = self.upgrade() {
                threads.close_agents(id, agent_tree).await;
            }
        })
    }

    fn item_ended(&self, id: ThreadId, ended: ItemEnded) -> HostFuture<'_, ()> {
        Box::pin(async move {
            let Some(threads) = self.upgrade() else { return };
            let (done, published) = oneshot::channel();
            if threads.send(id, Op::ItemEnded { ended: Box::new(ended), done }).await.is_ok() {
                drop(threads);
                _ = published.await;
            }
        })
    }
}

impl ThreadHost for WeakThreads {
    fn close_children<'a>(&'a self, parent: ThreadId, agent_tree: &'a AgentTree) -> HostFuture<'a, ()> {
        Box::pin(async move {
            if let Some(threads) = self.upgrade() {
                threads.close_children(parent, agent_tree).await;
            }
        })
    }

    fn record_notifications(&self, id: ThreadId) -> HostFuture<'_, ()> {
        Box::pin(async move {
            if let Some(threads) = self.upgrade() {
                _ = threads.send(id, Op::RecordNotifications).await;
            }
        })
    }
}

impl Threads {
    /// Starts a child agent on a task; its id and nickname.
    async fn spawn(
        &self,
        child: ChildThread,
        task: AgentTask,
        max: usize,
        origin: TurnOrigin,
    ) -> Result<(ThreadId, String), String> {
        let id = ThreadId::new();
        let nickname = child
            .agent_tree
            .join(id, child.parent, child.role.clone(), child.path.clone(), max)
            .map_err(|()| format!("collab spawn failed: agent thread limit reached (max {max})"))?;
        let pending =
            PendingSpawn { id, agent_tree: Arc::clone(&child.agent_tree), threads: self.clone(), started: false };
        let begun = async {
            self.open_child(id, &nickname, child).await?;
            match task {
                AgentTask::User(input) => self.send_input(id, input, origin).await.map(|_| ()),
                AgentTask::Message(message) => self.send_message(id, message, true, origin).await,
            }
        };
        begun.await.map_err(|problem| format!("collab spawn failed: {problem}"))?;
        pending.mark_started();
        Ok((id, nickname))
    }

    async fn open_child(&self, id: ThreadId, nickname: &str, child: ChildThread) -> Result<(), String> {
        let mut meta = new_meta(&child, id, nickname);
        let session = self.get(child.parent).map(|parent| parent.view.thread().session_id);
        meta.session_id = session.and_then(|session| session.parse().ok()).or(Some(child.parent));
        let parent = self.persistence(child.parent).map(|(persistence, _)| persistence);
        let persistence =
            if parent == Some(Persistence::Ephemeral) { Persistence::Ephemeral } else { Persistence::Pending };
        let (thread, reader) = self.unstored(&meta, &child.settings, persistence);
        let mut view = View::new(thread, persistence);
        if let Some(reader) = reader.as_ref().filter(|_| child.with_history && parent == Some(Persistence::Stored)) {
            let source = self.store.open(child.parent).await.map_err(|error| error.to_string())?;
            let mut writer = reader.writer().await.map_err(|error| error.to_string())?;
            let mut batch = Batch::new();
            batch.push(&Record::SessionMeta(Box::new(meta.clone()))).map_err(|error| error.to_string())?;
            copy_lines(&*source, id, &mut *writer, batch).await.map_err(|refusal| refusal.to_string())?;
            view = View::new(view.thread(), Persistence::Stored);
        }
        self.load_child(child, meta, view, reader).await
    }

    /// Loads the thread of a child agent that was closed.
    async fn reopen(&self, id: ThreadId, child: ChildThread, max: usize) -> Result<(), String> {
        let stored = self.store.find(id, Some(false)).await.map_err(|_| format!("agent with id {id} not found"))?;
        if child.agent_tree.find(id).is_none() {
            // It may have been spawned before the server was restarted.
            let parent = started_by(&stored.meta);
            let position = |parent: ThreadId| parent == child.parent || child.agent_tree.find(parent).is_some();
            if !parent.is_some_and(position) {
                return Err(format!("agent with id {id} not found"));
            }
            child
                .agent_tree
                .join(id, child.parent, child.role.clone(), stored.meta.agent_path.clone(), max)
                .map_err(|()| format!("collab spawn failed: agent thread limit reached (max {max})"))?;
        }
        child.agent_tree.set(id, AgentStatus::PendingInit);
        if self.is_loaded(id) {
            return Ok(());
        }
        let pending =
            PendingSpawn { id, agent_tree: Arc::clone(&child.agent_tree), threads: self.clone(), started: false };
        let mut thread = self.wire(&stored, &child.settings.model_provider);
        thread.status = ThreadStatus::Idle;
        let reader = self.store.open(id).await.map_err(|error| error.to_string())?;
        self.load_child(child, stored.meta, View::new(thread, Persistence::Stored), Some(reader)).await?;
        pending.mark_started();
        Ok(())
    }

    async fn load_child(
        &self,
        child: ChildThread,
        meta: SessionMeta,
        view: View,
        reader: Option<Arc<dyn Reader>>,
    ) -> Result<(), String> {
        let subscribers = self.subscribers(child.parent);
        let ChildThread { depth, settings, profile, agent_tree, .. } = child;
        let position = Some(TreePosition { depth, agent_tree });
        let loading = PreparedThread { position, ..PreparedThread::new(meta, view, reader, settings, profile) };
        let (answer, answered) = oneshot::channel();
        let reply: Reply<Opened> = Box::new(|opened| _ = answer.send(opened));
        self.load(loading, subscribers, LoadReason::Spawned, reply);
        match answered.await {
            Ok(opened) => opened.map(|_| ()).map_err(|refusal| refusal.to_string()),
            Err(_) => Err("the agent could not be opened".into()),
        }
    }

    /// Starts or steers a turn of an agent; the turn's id.
    async fn send_input(&self, id: ThreadId, input: Vec<UserInput>, origin: TurnOrigin) -> Result<String, String> {
        let (answer, answered) = oneshot::channel();
        let reply: Reply<Turn> = Box::new(|turn| _ = answer.send(turn));
        self.send_turn(id, turn_params(id, input), None, Level::V0_118, None, origin, reply).await;
        match answered.await {
            Ok(turn) => turn.map(|turn| turn.id).map_err(|refusal| refusal.to_string()),
            Err(_) => Err(format!("agent with id {id} not found")),
        }
    }

    /// Gives a message to an agent.
    async fn send_message(
        &self,
        id: ThreadId,
        message: ResponseItem,
        start: bool,
        origin: TurnOrigin,
    ) -> Result<(), String> {
        let (answer, answered) = oneshot::channel();
        let reply: Reply<()> = Box::new(|taken| _ = answer.send(taken));
        let _lane = self.lanes.enter(id).await;
        let gone = || format!("agent with id {id} not found");
        if self.send(id, Op::AgentMessage { message: Box::new(message), start, origin, reply }).await.is_err() {
            return Err(gone());
        }
        answered.await.map_err(|_| gone())?.map_err(|refusal| refusal.to_string())
    }

    /// Interrupts the running turn of an agent.
    async fn interrupt_turn(&self, id: ThreadId) {
        let (answer, answered) = oneshot::channel();
        let reply: Reply<()> = Box::new(|stopped| _ = answer.send(stopped));
        self.interrupt(id, String::new(), Level::V0_118, reply).await;
        _ = answered.await;
    }

    /// Closes the children of an agent that is unloaded, and publishes that.
    async fn close_children(&self, parent: ThreadId, agent_tree: &AgentTree) {
        for (child, _) in agent_tree.children(parent) {
            self.close_agents(child, agent_tree).await;
            let closed = ThreadClosedNotification { thread_id: child.to_string() };
            self.broadcast_about(ServerNotification::ThreadClosed(closed)).await;
        }
    }

    /// Closes an agent and its descendants.
    async fn close_agents(&self, id: ThreadId, agent_tree: &AgentTree) {
        let mut left = vec![id];
        while let Some(id) = left.pop() {
            left.extend(agent_tree.children(id).into_iter().map(|(child, _)| child));
            self.close_thread(id).await;
            agent_tree.set(id, AgentStatus::Shutdown);
        }
    }
}

/// A child agent that has not started its first turn. Dropped before it has, it is removed from the tree and unloaded:
/// spawning failed, or was interrupted.
struct PendingSpawn {
    id: ThreadId,
    agent_tree: Arc<AgentTree>,
    threads: Threads,
    started: bool,
}

impl PendingSpawn {
    fn mark_started(mut self) {
        self.started = true;
    }
}

impl Drop for PendingSpawn {
    fn drop(&mut self) {
        if self.started {
            return;
        }
        self.agent_tree.forget(self.id);
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let (threads, id) = (self.threads.clone(), self.id);
            runtime.spawn(async move { threads.close_thread(id).await });
        }
    }
}

/// The first record of a child's thread.
fn new_meta(child: &ChildThread, id: ThreadId, nickname: &str) -> SessionMeta {
    SessionMeta {
        id,
        forked_from_id: None,
        attached_to: None,
        session_id: Some(child.agent_tree.root(child.parent)),
        thread_source: Some("subagent".into()),
        timestamp: now(),
        cwd: child.settings.cwd.clone(),
        originator: child.profile.client.clone(),
        cli_version: child.profile.identity.version.clone(),
        source: Origin::SubAgent(SubAgentSource::ThreadSpawn {
            agent_nickname: Some(nickname.into()),
            agent_path: child.path.clone().map(AgentPath),
            agent_role: child.role.clone(),
            depth: child.depth,
            parent_thread_id: child.parent.into(),
        }),
        agent_nickname: Some(nickname.into()),
        agent_role: child.role.clone(),
        agent_path: child.path.clone(),
        model_provider: Some(child.settings.model_provider.clone()),
        base_instructions: child.profile.base_instructions.clone().map(|text| BaseInstructions { text }),
        dynamic_tools: None,
        memory_mode: None,
        preview: None,
        git: None,
        budget: None,
        placement: Vec::new(),
    }
}

/// The parent of a child agent's thread.
fn started_by(meta: &SessionMeta) -> Option<ThreadId> {
    match &meta.source {
        Origin::SubAgent(SubAgentSource::ThreadSpawn { parent_thread_id, .. }) => parent_thread_id.0.parse().ok(),
        _ => None,
    }
}

fn turn_params(id: ThreadId, input: Vec<UserInput>) -> TurnStartParams {
    TurnStartParams { thread_id: id.to_string(), input, ..TurnStartParams::default() }
}

#[cfg(test)]
mod tests {
    use loomd_exec::Environment;
    use loomd_model::Http;
    use loomd_store::MemoryStore;

    use super::*;
    use crate::approval::Approval;
    use crate::event::Event;
    use crate::event_sink::{Audience, EventSink, SendFuture, Subscriber};
    use crate::services::Services;

    struct NoSubscribers;

    impl EventSink for NoSubscribers {
        fn send<'a>(&'a self, _: Audience<'a>, _: &'a Event) -> SendFuture<'a> {
            Box::pin(std::future::ready(()))
        }

        fn broadcast(&self, _: ServerNotification) -> SendFuture<'_> {
            Box::pin(std::future::ready(()))
        }

        fn notify<'a>(&'a self, _: &'a [Subscriber], _: ServerNotification) -> SendFuture<'a> {
            Box::pin(std::future::ready(()))
        }

        fn withdraw(&self, _: &Approval) {}
    }

    #[tokio::test]
    async fn an_agent_whose_spawn_was_interrupted_does_not_count_towards_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_path_buf();
        let services = Services::new(home, Http::new(&|_| None), Environment::default());
        let threads = Threads::new(Arc::new(MemoryStore::new()), Arc::new(NoSubscribers), Arc::new(services));
        let (agent_tree, parent) = (Arc::new(AgentTree::default()), ThreadId::new());
        let join = |id: ThreadId| agent_tree.join(id, parent, None, None, 1);
        let pending = |id: ThreadId| PendingSpawn {
            id,
            agent_tree: Arc::clone(&agent_tree),
            threads: threads.clone(),
            started: false,
        };
        let [first, second, third] = [ThreadId::new(), ThreadId::new(), ThreadId::new()];
        join(first).unwrap();
        let waiting = pending(first);
        assert_eq!(join(second), Err(()));
        // As when the turn that spawns it is interrupted.
        drop(waiting);
        join(second).unwrap();
        pending(second).mark_started();
        assert_eq!(join(third), Err(()));
    }
}
