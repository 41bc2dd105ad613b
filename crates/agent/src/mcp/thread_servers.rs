//! The servers of one thread.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use loomd_apps::{Mentions, SERVER};
use loomd_mcp::{Caller, Listing, ServerSet};
use loomd_protocol::{AskForApproval, UserInput};
use parking_lot::Mutex;

use super::elicitation::ThreadCaller;
use super::services::McpServices;
use super::startup::{required_failed, start};
use super::thread_server::ThreadServer;
use crate::event_log::EventLog;
use crate::refusal::Refusal;
use crate::settings::{Settings, sandbox_state};
use crate::view::View;

/// The servers of a thread, of which there may be none. Connections that no other thread uses are closed when this is
/// dropped.
pub(crate) struct ThreadServers {
    /// `None` where there are no servers at all, as in a replay.
    services: Option<Arc<McpServices>>,
    events: Arc<EventLog>,
    caller: Arc<ThreadCaller>,
    servers: Mutex<BTreeMap<String, Arc<ThreadServer>>>,
    /// All servers of the thread, also disabled ones.
    all: Mutex<Arc<ServerSet>>,
    /// When they were last set.
    set_at: Mutex<Instant>,
    /// The apps that the user has named. Replaced when there are more.
    mentions: Mutex<Arc<Mentions>>,
}

impl ThreadServers {
    pub fn new(
        services: Option<Arc<McpServices>>,
        thread_id: String,
        events: Arc<EventLog>,
        view: Arc<View>,
        policy: AskForApproval,
    ) -> Self {
        let caller = Arc::new(ThreadCaller::new(thread_id, Arc::clone(&events), view, policy));
        Self {
            services,
            events,
            caller,
            servers: Mutex::default(),
            all: Mutex::default(),
            set_at: Mutex::new(Instant::now()),
            mentions: Mutex::default(),
        }
    }

    /// Starts the servers of a set that a thread cannot do without, and waits for them.
    pub async fn start_required(&self, set: &ServerSet) -> Result<(), Refusal> {
        let Some(services) = &self.services else { return Ok(()) };
        let required = set.iter().filter(|(_, entry)| entry.config.enabled && entry.config.required);
        let starts: Vec<_> = required
            .map(|(name, entry)| {
                let (name, server) = (name.to_owned(), services.servers.get(&entry.reached));
                tokio::spawn(async move { (name, server.start().await.err()) })
            })
            .collect();
        let mut failures = Vec::new();
        for start in starts {
            if let Ok((name, Some(error))) = start.await {
                failures.push((name, error));
            }
        }
        if failures.is_empty() { Ok(()) } else { Err(Refusal::failed(required_failed(&failures))) }
    }

    /// Makes these the servers of the thread and starts them, without waiting. Those that are unchanged and have not
    /// failed keep their connection.
    pub fn set(&self, set: &ServerSet, settings: &Settings) {
        let Some(services) = &self.services else { return };
        let sandbox_state = sandbox_state(settings);
        let before = self.servers.lock().clone();
        let mut servers = BTreeMap::new();
        for (name, entry) in set.iter().filter(|(_, entry)| entry.config.enabled) {
            let kept = before.get(name).filter(|known| known.entry == *entry && !known.has_failed());
            let server = kept.map_or_else(|| services.servers.get(&entry.reached), |known| Arc::clone(&known.server));
            let attached = server.attach(Arc::clone(&self.caller) as Arc<dyn Caller>);
            let (events, cache) = (Arc::clone(&self.events), services.tools_cache(entry));
            let thread_id = self.caller.thread().to_owned();
            let (startup, starting) = start(Arc::clone(&server), thread_id, events, cache, sandbox_state.clone());
            let known = ThreadServer {
                name: name.to_owned(),
                entry: entry.clone(),
                rules: services.rules(entry),
                server,
                startup,
                _starting: starting,
                _attached: attached,
            };
            servers.insert(name.to_owned(), Arc::new(known));
        }
        *self.all.lock() = Arc::new(set.clone());
        *self.set_at.lock() = Instant::now();
        // What was there before is dropped after the lock is released.
        let _replaced = std::mem::replace(&mut *self.servers.lock(), servers);
    }

    /// Notes the apps that input names.
    pub fn note_mentions(&self, input: &[UserInput]) {
        let mut mentions = self.mentions.lock();
        let mut more = Mentions::clone(&mentions);
        if more.add(input) {
            *mentions = Arc::new(more);
        }
    }

    pub fn mentions(&self) -> Arc<Mentions> {
        Arc::clone(&self.mentions.lock())
    }

    /// Whether the thread has apps.
    pub fn has_apps(&self) -> bool {
        self.servers.lock().contains_key(SERVER)
    }

    /// Whether servers may ask the user between calls follows from this.
    pub fn set_policy(&self, policy: &AskForApproval) {
        self.caller.set_policy(policy.clone());
    }

    pub fn is_empty(&self) -> bool {
        self.servers.lock().is_empty()
    }

    pub fn get(&self, name: &str) -> Option<Arc<ThreadServer>> {
        self.servers.lock().get(name).cloned()
    }

    /// All enabled servers, sorted by name.
    pub fn all(&self) -> Vec<Arc<ThreadServer>> {
        self.servers.lock().values().cloned().collect()
    }

    /// All servers of the thread, also disabled ones.
    pub fn configured(&self) -> Arc<ServerSet> {
        Arc::clone(&self.all.lock())
    }

    /// How long ago the servers were started.
    pub fn age(&self) -> Duration {
        self.set_at.lock().elapsed()
    }

    /// The caller of a call that belongs to no turn.
    pub fn direct_caller(&self) -> Arc<dyn Caller> {
        Arc::new(self.caller.outside_turns())
    }

    /// The servers that have started, with what they offer.
    pub fn ready(&self) -> Vec<(Arc<ThreadServer>, Arc<Listing>)> {
        self.all().into_iter().filter_map(|server| server.listing().map(|listing| (server, listing))).collect()
    }

    /// Resolves when every server has started or failed.
    pub async fn started(&self) {
        for server in self.all() {
            server.started().await;
        }
    }

    pub fn services(&self) -> Option<&Arc<McpServices>> {
        self.services.as_ref()
    }
}
