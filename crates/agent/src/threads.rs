//! All threads: the loaded ones, each with a task of its own, and the stored ones behind them.

use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use loomd_protocol::{OnDisconnect, Thread as WireThread, ThreadStatus, ThreadUnsubscribeStatus, Turn};
use loomd_store::search::{SearchPage, SearchQuery};
use loomd_store::{Error, Failure, ListQuery, Page, Reader, Store, StoredThread, ThreadId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use crate::busy::Busy;
use crate::event::EventId;
use crate::event_log::EventLog;
use crate::event_sink::{EventSink, Subscriber};
use crate::extensions::SkillChanges;
use crate::goals::GoalCx;
use crate::history;
use crate::lanes::Lanes;
use crate::let_go::LetGo;
use crate::mcp::ThreadServers;
use crate::pages::Outlines;
use crate::refusal::Refusal;
use crate::services::Services;
use crate::settings::Profile;
use crate::thread::{Elicit, Op, Opened, ReloadMcpServers, Reply, in_progress};
use crate::turn_notes::UnfinishedTurn;
use crate::turns::{full, interrupt_open};
use crate::view::{Persistence, View};

/// All threads of a server. Cheap to clone; when the last clone is dropped, all threads are unloaded.
#[derive(Clone)]
pub struct Threads(Arc<Inner>);

pub struct Inner {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) event_sink: Arc<dyn EventSink>,
    pub(crate) services: Arc<Services>,
    pub(crate) loaded: Mutex<BTreeMap<ThreadId, LoadedThread>>,
    /// Entered by every request about a thread, so that requests take effect in the order in which they came.
    pub(crate) lanes: Lanes,
    pub(crate) busy: Arc<Busy>,
    pub(crate) outlines: Outlines,
    /// The watched skills of loaded threads.
    pub(crate) skill_changes: SkillChanges,
}

impl Deref for Threads {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

#[derive(Clone)]
pub(crate) struct LoadedThread {
    pub ops: mpsc::Sender<Op>,
    pub view: Arc<View>,
    pub events: Arc<EventLog>,
    pub profile: Arc<Profile>,
    pub mcp: Arc<ThreadServers>,
    pub goals: Arc<GoalCx>,
    pub let_go: Arc<LetGo>,
    /// Cancelled when the thread is unloaded.
    pub unloaded: CancellationToken,
}

/// All threads, as each of them refers to the others. It does not keep them loaded.
#[derive(Clone)]
pub(crate) struct WeakThreads(Weak<Inner>);

impl WeakThreads {
    /// `None` once all threads are being unloaded.
    pub fn upgrade(&self) -> Option<Threads> {
        self.0.upgrade().map(Threads)
    }
}

/// Which stored thread is meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    Id(ThreadId),
    /// Any rollout on disk.
    Path(PathBuf),
}

impl Threads {
    pub fn new(store: Arc<dyn Store>, event_sink: Arc<dyn EventSink>, services: Arc<Services>) -> Self {
        Self(Arc::new_cyclic(|threads: &Weak<Inner>| Inner {
            skill_changes: SkillChanges::new(Arc::clone(&event_sink), {
                let threads = threads.clone();
                Box::new(move |id| threads.upgrade().map(Threads).map_or_else(Vec::new, |all| all.subscribers(id)))
            }),
            store,
            event_sink,
            services,
            loaded: Mutex::default(),
            lanes: Lanes::default(),
            busy: Arc::default(),
            outlines: Outlines::default(),
        }))
    }

    /// Ids of the loaded threads, in order.
    pub fn loaded(&self) -> Vec<ThreadId> {
        self.lock().keys().copied().collect()
    }

    /// How many requests wait for the tasks of loaded threads.
    pub fn queued_requests(&self) -> usize {
        self.lock().values().map(|thread| thread.ops.max_capacity() - thread.ops.capacity()).sum()
    }

    /// How many MCP servers are running.
    pub fn running_mcp_servers(&self) -> usize {
        self.services.mcp.as_ref().map_or(0, |mcp| mcp.servers.running())
    }

    /// The bytes of events that are kept for clients that reconnect.
    pub fn event_log_bytes(&self) -> usize {
        self.services.event_budget.used()
    }

    /// The loaded thread with this rollout.
    pub(crate) fn loaded_at(&self, path: &Path) -> Option<ThreadId> {
        let is_at =
            |id: &ThreadId| self.persistence(*id).and_then(|(_, of)| of).is_some_and(|of| Path::new(&of) == path);
        self.loaded().into_iter().find(is_at)
    }

    pub fn is_loaded(&self, id: ThreadId) -> bool {
        self.lock().contains_key(&id)
    }

    /// The working directory of a thread, loaded or stored; `None` when there is no such thread.
    pub async fn cwd(&self, id: ThreadId) -> Option<String> {
        match self.get(id) {
            Some(loaded) => Some(loaded.view.thread().cwd),
            None => self.store.find(id, None).await.ok().map(|stored| stored.meta.cwd),
        }
    }

    /// Whether a turn of a thread is running here.
    pub(crate) fn is_running(&self, id: ThreadId) -> bool {
        self.lock().get(&id).is_some_and(|loaded| loaded.view.running_turn().is_some())
    }

    /// The live status of a thread.
    pub fn status(&self, id: ThreadId) -> ThreadStatus {
        self.lock().get(&id).map_or(ThreadStatus::NotLoaded, |loaded| loaded.view.status())
    }

    /// Stored threads, with their live status.
    pub async fn list(&self, query: ListQuery) -> Result<(Vec<WireThread>, Page), Refusal> {
        let provider = query.default_provider.clone();
        let page = self.store.list(query).await?;
        let rows = page.threads.iter().map(|thread| self.wire(thread, &provider)).collect();
        Ok((rows, page))
    }

    /// Stored threads in whose messages a term occurs, with the first place where it does, and their live status.
    pub async fn search(&self, query: SearchQuery) -> Result<(Vec<(WireThread, String)>, SearchPage), Refusal> {
        let provider = query.list.default_provider.clone();
        let page = self.store.search(query).await?;
        let hits = page.hits.iter().map(|hit| (self.wire(&hit.thread, &provider), hit.snippet.clone())).collect();
        Ok((hits, page))
    }

    /// A thread, loaded or not, without loading it.
    pub async fn read(&self, id: ThreadId, turns: bool, provider: &str) -> Result<WireThread, Refusal> {
        self.read_at(id, turns, provider).await.map(|(thread, _)| thread)
    }

    /// Like [`Self::read`]; if the thread is loaded, also the event right after which it is as it is shown.
    pub async fn read_at(
        &self,
        id: ThreadId,
        turns: bool,
        provider: &str,
    ) -> Result<(WireThread, Option<EventId>), Refusal> {
        let _lane = self.lanes.enter(id).await;
        if let Some(loaded) = self.get(id) {
            if turns {
                has_turns(id, &loaded)?;
            }
            if let Some(thread) = self.ask(&loaded, |reply| Op::Show { turns, reply }).await {
                return thread.map(|(thread, at)| (thread, Some(at)));
            }
        }
        let stored = match self.store.find(id, None).await {
            Err(Error::NotFound { .. }) => return Err(Refusal::invalid(format!("thread not loaded: {id}"))),
            found => found.map_err(|error| unreadable(id, error))?,
        };
        let mut thread = self.wire(&stored, provider);
        let read = async {
            let reader = self.store.open(id).await?;
            if let Some(settings) = history::last_model(&*reader).await? {
                (thread.model, thread.reasoning_effort) = settings;
            }
            if turns {
                thread.turns = self.unloaded_turns(&*reader).await?;
                full(&mut thread.turns);
            }
            Ok(())
        };
        read.await.map_err(|error| unreadable(id, error))?;
        Ok((thread, None))
    }

    /// The turns of a thread that is not loaded. One that another process has left, and that is about to be taken up where
    /// processes share the thread, is in progress.
    async fn unloaded_turns(&self, reader: &dyn Reader) -> Result<Vec<Turn>, Error> {
        let notes = self.store.turn_notes().filter(|_| self.services.ownership.is_some());
        let lines = match notes {
            Some(notes) => notes.read(reader.id()).await?,
            None => Vec::new(),
        };
        let Some(unfinished) = UnfinishedTurn::parse(&lines) else { return history::turns(reader, false).await };
        let id = unfinished.started.turn_id;
        let mut turns = history::turns(reader, true).await?;
        match turns.iter().position(|turn| turn.id == id) {
            Some(at) => interrupt_open(&mut turns[..at]),
            None => {
                interrupt_open(&mut turns);
                let started_at = Some(unfinished.started.started_at_ms.div_euclid(1000));
                turns.push(Turn { started_at, ..in_progress(id) });
            }
        }
        Ok(turns)
    }

    /// Removes a subscriber. The thread is unloaded with the last one.
    ///
    /// If `ends`, the last one ends its running turn and unloads it at once; else it is unloaded after a delay.
    pub async fn unsubscribe(
        &self,
        id: ThreadId,
        subscriber: Subscriber,
        ends: bool,
        reply: Reply<ThreadUnsubscribeStatus>,
    ) {
        let _lane = self.lanes.enter(id).await;
        let (left, done) = oneshot::channel();
        match self.send(id, Op::Leave { subscriber, ends, reply, left }).await {
            // The next request has to find the thread either loaded or unloaded.
            Ok(()) => _ = done.await,
            Err(Op::Leave { reply, .. }) => reply(Ok(ThreadUnsubscribeStatus::NotLoaded)),
            Err(_) => {}
        }
    }

    /// Removes a subscriber whose connection is closed from all threads. They stay loaded.
    pub async fn disconnect(&self, subscriber: Subscriber) {
        let loaded: Vec<LoadedThread> = self.lock().values().cloned().collect();
        for thread in loaded {
            _ = thread.ops.send(Op::Disconnected(subscriber)).await;
        }
    }

    pub async fn roll_back(&self, id: ThreadId, turns: u32, reply: Reply<WireThread>) {
        let _lane = self.lanes.enter(id).await;
        if let Err(Op::RollBack { reply, .. }) = self.send(id, Op::RollBack { turns, reply }).await {
            reply(Err(Refusal::not_found(id)));
        }
    }

    /// Unloads every thread, as for the end of the server.
    pub async fn close_all(&self) {
        let ids = self.loaded();
        let mut closing: Vec<_> = ids.into_iter().map(|id| Box::pin(self.unload(id))).collect();
        std::future::poll_fn(|cx| {
            closing.retain_mut(|unload| unload.as_mut().poll(cx).is_pending());
            if closing.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
        })
        .await;
    }

    /// Stops a thread that is another process's now: nothing of it is sent or written from now on. Returns the subscribers
    /// to notify of that; `None` when it is not loaded, or ends already.
    pub fn abandon(&self, id: ThreadId) -> Option<Vec<Subscriber>> {
        let loaded = self.get(id).filter(|loaded| !loaded.ops.is_closed())?;
        loaded.events.silence();
        loaded.let_go.abandon();
        loaded.let_go.notifies().then(|| loaded.events.subscribers())
    }

    /// Gives a thread up for another process after its running step, or after a bound; its subscribers, once it is
    /// unloaded.
    pub async fn let_go(&self, id: ThreadId) -> Vec<Subscriber> {
        let Some(loaded) = self.get(id) else { return Vec::new() };
        loaded.let_go.want();
        loaded.unloaded.cancelled().await;
        loaded.events.subscribers()
    }

    /// Resolves when a thread that is being given up, if it is, is unloaded.
    pub(crate) async fn until_unloaded(&self, id: ThreadId) {
        let is_given_up = |loaded: &LoadedThread| loaded.let_go.is_abandoned() || loaded.ops.is_closed();
        if let Some(loaded) = self.get(id).filter(is_given_up) {
            loaded.unloaded.cancelled().await;
        }
    }

    /// The status of every loaded thread.
    pub fn statuses(&self) -> Vec<(ThreadId, ThreadStatus)> {
        self.lock().iter().map(|(id, loaded)| (*id, loaded.view.status())).collect()
    }

    /// Has every loaded thread read its MCP servers again.
    pub(crate) async fn reload_mcp_servers(&self, load: ReloadMcpServers) {
        let loaded: Vec<LoadedThread> = self.lock().values().cloned().collect();
        for thread in loaded {
            _ = thread.ops.send(Op::ReloadMcpServers(Arc::clone(&load))).await;
        }
    }

    /// Increments the count of open elicitations; the new count.
    pub async fn begin_elicitation(&self, id: ThreadId) -> Result<u64, Refusal> {
        self.elicit(id, Elicit::Begin).await
    }

    pub async fn end_elicitation(&self, id: ThreadId) -> Result<u64, Refusal> {
        self.elicit(id, Elicit::End).await
    }

    async fn elicit(&self, id: ThreadId, change: Elicit) -> Result<u64, Refusal> {
        let _lane = self.lanes.enter(id).await;
        let loaded = self.get(id).ok_or_else(|| Refusal::not_found(id))?;
        self.ask(&loaded, |reply| Op::Elicit { change, reply }).await.unwrap_or_else(|| Err(Refusal::not_found(id)))
    }

    /// A stored thread, for the calls of the first protocol generation.
    pub async fn find(&self, source: &Source) -> Result<StoredThread, Error> {
        match source {
            Source::Id(id) => self.store.find(*id, None).await,
            Source::Path(path) => Ok(self.adopt(path).await?.0),
        }
    }

    pub(crate) async fn unload(&self, id: ThreadId) {
        if let Some(loaded) = self.get(id) {
            let (done, closed) = oneshot::channel();
            if loaded.ops.send(Op::Close(done)).await.is_ok() {
                _ = closed.await;
            }
        }
    }

    /// Joins a loaded thread; gives the reply back when it is not loaded.
    pub(crate) async fn join(
        &self,
        id: ThreadId,
        turns: bool,
        after: Option<EventId>,
        on_disconnect: Option<OnDisconnect>,
        subscriber: Subscriber,
        reply: Reply<Opened>,
    ) -> Result<(), Reply<Opened>> {
        match self.send(id, Op::Join { subscriber, turns, after, on_disconnect, reply }).await {
            Err(Op::Join { reply, .. }) => Err(reply),
            _ => Ok(()),
        }
    }

    /// Sends a request to a loaded thread. Returns it as the error when the thread is not loaded.
    pub(crate) async fn send(&self, id: ThreadId, op: Op) -> Result<(), Op> {
        match self.get(id) {
            Some(loaded) => loaded.ops.send(op).await.map_err(|unsent| unsent.0),
            None => Err(op),
        }
    }

    /// What a loaded thread runs on.
    pub(crate) fn profile(&self, id: ThreadId) -> Option<Arc<Profile>> {
        self.get(id).map(|loaded| loaded.profile)
    }

    /// The persistence and the path of a loaded thread.
    pub(crate) fn persistence(&self, id: ThreadId) -> Option<(Persistence, Option<String>)> {
        self.get(id).map(|loaded| (loaded.view.persistence(), loaded.view.path()))
    }

    /// The thread in a file, if the store keeps threads in files.
    pub(crate) async fn adopt(&self, path: &Path) -> Result<(StoredThread, Arc<dyn Reader>), Error> {
        match self.store.files() {
            Some(files) => files.adopt(path).await,
            None => Err(Error::Storage {
                place: path.display().to_string(),
                failure: Failure::Missing,
                reason: "threads are not stored in files".into(),
            }),
        }
    }

    /// A stored thread as clients see it, with its live status.
    pub(crate) fn wire(&self, stored: &StoredThread, provider: &str) -> WireThread {
        let mut thread = stored.to_wire(provider);
        match (self.get(stored.id()), &self.services.ownership) {
            (Some(loaded), _) => {
                thread.status = loaded.view.status();
                loaded.view.dress(&mut thread);
            }
            (None, Some(ownership)) => {
                thread.status = ownership.status_elsewhere(stored.id()).unwrap_or(thread.status);
            }
            (None, None) => {}
        }
        thread
    }

    pub(crate) fn downgrade(&self) -> WeakThreads {
        WeakThreads(Arc::downgrade(&self.0))
    }

    /// Resolves when no turn is running in any thread.
    pub async fn until_idle(&self) {
        self.busy.until_idle().await;
    }

    /// The clients that have subscribed to a thread.
    pub(crate) fn subscribers(&self, id: ThreadId) -> Vec<Subscriber> {
        self.get(id).map(|loaded| loaded.events.subscribers()).unwrap_or_default()
    }

    /// Unloads a thread, if it is loaded.
    pub(crate) async fn close_thread(&self, id: ThreadId) {
        self.unload(id).await;
    }

    /// Sends a request to a loaded thread and waits for the result; `None` when it was unloaded meanwhile.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        loaded: &LoadedThread,
        op: impl FnOnce(Reply<T>) -> Op,
    ) -> Option<Result<T, Refusal>> {
        let (answer, answered) = oneshot::channel();
        loaded.ops.send(op(Box::new(|result| _ = answer.send(result)))).await.ok()?;
        answered.await.ok()
    }

    pub(crate) fn all_loaded(&self) -> Vec<LoadedThread> {
        self.lock().values().cloned().collect()
    }

    pub(crate) fn get(&self, id: ThreadId) -> Option<LoadedThread> {
        self.lock().get(&id).cloned()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, BTreeMap<ThreadId, LoadedThread>> {
        self.0.loaded.lock()
    }
}

/// Refuses to show the turns of a thread that has none on disk.
pub(crate) fn has_turns(id: ThreadId, loaded: &LoadedThread) -> Result<(), Refusal> {
    match loaded.view.persistence() {
        Persistence::Stored => Ok(()),
        Persistence::Ephemeral => Err(Refusal::invalid("ephemeral threads do not support includeTurns")),
        Persistence::Pending => Err(Refusal::invalid(format!(
            "thread {id} is not materialized yet; includeTurns is unavailable before first user message"
        ))),
    }
}

pub(crate) fn unreadable(id: ThreadId, error: Error) -> Refusal {
    match &error {
        Error::Empty { place } | Error::NoSessionMeta { place } | Error::Storage { place, .. } => {
            Refusal::failed(format!("failed to load rollout `{place}` for thread {id}: {error}"))
        }
        _ => error.into(),
    }
}
