//! How a thread is loaded: it gets a task of its own, and an entry among the loaded threads.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use jiff::Timestamp;
use loomd_protocol::{OnDisconnect, Thread as WireThread, ThreadHistoryMode, ThreadStatus};
use loomd_store::rollout::{BaseInstructions, SessionMeta, Source as Origin, now};
use loomd_store::{Reader, ThreadId, WorkStore};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::agent_tree::AgentTree;
use crate::conversation::Conversation;
use crate::disconnect_policy::DisconnectPolicy;
use crate::event::next_epoch;
use crate::event_log::EventLog;
use crate::event_sink::Subscriber;
use crate::goals::{GoalCx, GoalLimits};
use crate::guard::Guard;
use crate::hooks::ThreadHooks;
use crate::let_go::LetGo;
use crate::mcp::ThreadServers;
use crate::ownership::OwnedThread;
use crate::refusal::Refusal;
use crate::settings::{Profile, ResolvedSettings, Settings};
use crate::thread::{LoadReason, Memory, Op, Opened, Reply, Thread};
use crate::threads::{LoadedThread, Threads, WeakThreads};
use crate::tools::{BuiltInTools, ClientTools, McpTools, Role, ThreadTools, ToolSource};
use crate::trace::conversation_starts;
use crate::turn_notes::Notes;
use crate::view::{Persistence, View};

/// The size of a thread's request queue. Senders wait when it is full.
const QUEUE: usize = 16;

/// The entry of a loaded thread. It is removed when this is dropped.
struct Registration {
    id: ThreadId,
    threads: WeakThreads,
    unloaded: CancellationToken,
}

impl Drop for Registration {
    fn drop(&mut self) {
        if let Some(threads) = self.threads.upgrade() {
            // First, so that the next instance of the thread is not meant.
            if let Some(ownership) = &threads.services.ownership {
                ownership.unloaded(self.id);
            }
            threads.loaded.lock().remove(&self.id);
        }
        self.unloaded.cancel();
    }
}

/// A thread that is to be started.
pub struct NewThread {
    pub id: ThreadId,
    /// The project that it was put into.
    pub project_id: Option<String>,
    pub resolved: ResolvedSettings,
    pub ephemeral: bool,
}

/// A thread that is about to be loaded.
pub(crate) struct PreparedThread {
    pub meta: SessionMeta,
    pub view: View,
    /// Its records; `None` when it is ephemeral.
    pub reader: Option<Arc<dyn Reader>>,
    pub settings: Settings,
    pub profile: Arc<Profile>,
    /// The conversation of an ephemeral thread, which cannot be read from a rollout.
    pub conversation: Option<Conversation>,
    /// Its position in the tree of agents; `None` for a thread that a client started.
    pub position: Option<TreePosition>,
    pub on_disconnect: OnDisconnect,
    /// The ownership under which it was read; `None` unless several processes share the stored thread.
    pub owned: Option<OwnedThread>,
}

impl PreparedThread {
    /// A thread that a client opens and that has no other owner.
    pub fn new(
        meta: SessionMeta,
        view: View,
        reader: Option<Arc<dyn Reader>>,
        settings: Settings,
        profile: Arc<Profile>,
    ) -> Self {
        let on_disconnect = OnDisconnect::default();
        Self { meta, view, reader, settings, profile, conversation: None, position: None, on_disconnect, owned: None }
    }
}

/// The position of an agent in its tree.
pub(crate) struct TreePosition {
    pub depth: i32,
    pub agent_tree: Arc<AgentTree>,
}

impl Threads {
    /// Starts a thread. Nothing of it is stored until its first user message.
    pub fn start(&self, new: NewThread, subscriber: Subscriber, reply: Reply<Opened>) {
        let meta = new_meta(new.id, &new.resolved);
        let persistence = if new.ephemeral { Persistence::Ephemeral } else { Persistence::Pending };
        let (mut thread, reader) = self.unstored(&meta, &new.resolved.settings, persistence);
        thread.project_id = new.project_id;
        let ResolvedSettings { settings, profile, notices, on_disconnect, .. } = new.resolved;
        if !profile.has_environment {
            thread.environments = Some(Vec::new());
        }
        let view = View::new(thread, persistence);
        let loading = PreparedThread { on_disconnect, ..PreparedThread::new(meta, view, reader, settings, profile) };
        self.load(loading, vec![subscriber], LoadReason::Started { notices }, reply);
    }

    /// Loads a thread. If it has been loaded meanwhile, the first subscriber joins it instead.
    pub(crate) fn load(
        &self,
        loading: PreparedThread,
        subscribers: Vec<Subscriber>,
        first: LoadReason,
        reply: Reply<Opened>,
    ) {
        let PreparedThread { meta, view, reader, settings, profile, conversation, position, on_disconnect, owned } =
            loading;
        let role = if position.is_some() { Role::Child } else { Role::Main };
        let TreePosition { depth, agent_tree } =
            position.unwrap_or_else(|| TreePosition { depth: 0, agent_tree: Arc::default() });
        let subscriber = subscribers.first().copied();
        let (sink, budget) = (Arc::clone(&self.event_sink), Arc::clone(&self.services.event_budget));
        let id = meta.id;
        let view = Arc::new(view);
        let approvals = self.kept_approvals(id, &profile, Arc::clone(&view));
        let events = EventLog::new(sink, subscribers, next_epoch(), budget).with_approvals(approvals);
        let events = Arc::new(events);
        let (ops, queue) = mpsc::channel(QUEUE);
        let host = Arc::new(self.downgrade());
        let mcp = Arc::new(ThreadServers::new(
            self.services.mcp.clone(),
            id.to_string(),
            Arc::clone(&events),
            Arc::clone(&view),
            settings.approval_policy.clone(),
        ));
        let tool_sources: Arc<[Arc<dyn ToolSource>]> = Arc::new([
            Arc::new(BuiltInTools),
            Arc::new(McpTools::new(Arc::clone(&mcp))),
            Arc::new(ClientTools::new(&profile.dynamic_tools)),
        ]);
        let limits = GoalLimits::of(&profile.config);
        let goals = Arc::new(GoalCx::new(id, Arc::clone(&self.store), Arc::clone(&events), limits));
        let tools = ThreadTools {
            goals: Arc::clone(&goals),
            role,
            depth,
            terminals: Arc::default(),
            host: Arc::clone(&host) as _,
            agent_tree: Arc::clone(&agent_tree),
            hooks: Arc::new(ThreadHooks::new(first.source())),
            shell_memory: Arc::default(),
            skill_needs: Arc::default(),
            mcp,
        };
        agent_tree.spending.set_budget(meta.budget.as_ref());
        let let_go = Arc::new(LetGo::new(self.services.ownership.is_some()));
        let notes = match role == Role::Main && reader.is_some() && self.services.replayed.is_none() {
            true => Notes::new(&self.store, id, &let_go),
            false => None,
        };
        conversation_starts(&self.services.telemetry, id.to_string(), &settings, &profile);
        let memory = conversation.map(|known| Box::new(Memory::new(&profile, &self.services, Some(known))));
        let (loaded_profile, loaded_mcp) = (Arc::clone(&profile), Arc::clone(&tools.mcp));
        let mut thread = Thread {
            id,
            settings,
            profile,
            meta: Box::new(meta),
            guard: Arc::new(Guard::new(Arc::clone(&agent_tree.roots))),
            tools: Arc::new(tools),
            tool_sources,
            host,
            view: Arc::clone(&view),
            store: Arc::clone(&self.store),
            reader,
            services: Arc::clone(&self.services),
            events: Arc::clone(&events),
            busy: Arc::clone(&self.busy),
            memory,
            instructions: None,
            running: None,
            unwritten: Vec::new(),
            goals,
            interrupted: None,
            last_turn: None,
            sent_context: Default::default(),
            wake_at: None,
            closing: false,
            queued: VecDeque::new(),
            realtime: None,
            realtime_link: Arc::default(),
            elicitations: 0,
            unload_delay: None,
            instruction_sources: Arc::new([]),
            ephemeral_keys: WorkStore::default(),
            notes: notes.clone().filter(|_| self.services.notes_turns()),
            stale_notes: notes.filter(|_| !self.services.notes_turns()),
            taken_up: HashSet::new(),
            recovered_calls: Vec::new(),
            disconnect: Arc::new(DisconnectPolicy::new(on_disconnect)),
            let_go,
            left: None,
            watched: None,
        };
        let mut loaded = self.lock();
        let epoch = owned.map(OwnedThread::loaded);
        if let Some(other) = loaded.get(&id).cloned() {
            drop(loaded);
            let Some(subscriber) = subscriber else {
                return reply(Err(Refusal::failed("the thread is loaded already")));
            };
            tokio::spawn(async move {
                if let Err(mpsc::error::SendError(Op::Join { reply, .. })) = other
                    .ops
                    .send(Op::Join {
                        subscriber,
                        turns: first.has_turns(),
                        after: first.after(),
                        on_disconnect: None,
                        reply,
                    })
                    .await
                {
                    reply(Err(Refusal::invalid(format!(
                        "thread {id} is closing; retry thread/resume after the thread is closed"
                    ))));
                }
            });
            return;
        }
        let (goals, let_go) = (Arc::clone(&thread.goals), Arc::clone(&thread.let_go));
        let unloaded = CancellationToken::new();
        let registration = Registration { id, threads: self.downgrade(), unloaded: unloaded.clone() };
        let (profile, mcp) = (loaded_profile, loaded_mcp);
        loaded.insert(id, LoadedThread { ops, view, events, profile, mcp, goals, let_go, unloaded });
        drop(loaded);
        if role == Role::Main && self.services.replayed.is_none() {
            let extensions = &thread.profile.extensions;
            // What this program writes itself is no change.
            extensions.prepare_bundled();
            thread.watched = Some(self.skill_changes.watch(id, &extensions.skill_roots));
        }
        tokio::spawn(thread.run(first, epoch, reply, queue, registration));
    }

    /// A thread that is only in memory, as clients see it, and its records unless it is ephemeral.
    pub(crate) fn unstored(
        &self,
        meta: &SessionMeta,
        settings: &Settings,
        persistence: Persistence,
    ) -> (WireThread, Option<Arc<dyn Reader>>) {
        let now = Timestamp::now();
        let reader = (persistence != Persistence::Ephemeral).then(|| self.store.create(meta.id, now));
        let path = self.store.files().filter(|_| reader.is_some()).and_then(|files| files.path(meta.id));
        let thread = WireThread {
            id: meta.id.to_string(),
            preview: String::new(),
            ephemeral: persistence == Persistence::Ephemeral,
            model_provider: settings.model_provider.clone(),
            created_at: now.as_second(),
            updated_at: now.as_second(),
            status: ThreadStatus::Idle,
            path: path.map(|path| path.to_string_lossy().into_owned()),
            cwd: settings.cwd.clone(),
            cli_version: meta.cli_version.clone(),
            source: meta.wire_source(),
            agent_nickname: None,
            agent_role: None,
            git_info: None,
            name: None,
            turns: Vec::new(),
            session_id: meta.session_id.unwrap_or(meta.id).to_string(),
            project_id: None,
            forked_from_id: meta.forked_from_id.map(|id| id.to_string()),
            parent_thread_id: meta.parent().map(|id| id.to_string()),
            history_mode: ThreadHistoryMode::default(),
            model: Some(settings.model.clone()),
            reasoning_effort: settings.reasoning_effort.clone(),
            recency_at: Some(now.as_second()),
            originator: Some(meta.originator.clone()),
            thread_source: meta.thread_source.clone(),
            can_accept_direct_input: Some(true),
            environments: None,
            section: None,
            section_entered_at: None,
        };
        (thread, reader)
    }
}

/// The first record of a new thread.
pub(crate) fn new_meta(id: ThreadId, resolved: &ResolvedSettings) -> SessionMeta {
    SessionMeta {
        id,
        forked_from_id: None,
        attached_to: None,
        session_id: None,
        thread_source: resolved.thread_source.clone(),
        timestamp: now(),
        cwd: resolved.settings.cwd.clone(),
        originator: resolved.originator.clone(),
        cli_version: resolved.cli_version.clone(),
        source: Origin::Vscode,
        agent_nickname: None,
        agent_role: None,
        agent_path: None,
        model_provider: Some(resolved.settings.model_provider.clone()),
        base_instructions: resolved.profile.base_instructions.clone().map(|text| BaseInstructions { text }),
        dynamic_tools: Some(resolved.profile.dynamic_tools.clone()).filter(|tools| !tools.is_empty()),
        memory_mode: None,
        preview: None,
        git: None,
        budget: resolved.budget.clone(),
        placement: resolved.placement.clone(),
    }
}
