//! The state that all connections share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_accounts::{Accounts, Options as AccountOptions};
use loomd_agent::{Agent, AgentOptions, EventSink, Ownership, Replay, Subscriber, Threads, working_directory};
use loomd_config::config_toml::RecoverTurns;
use loomd_config::{ConfigSources, LoadRequest, LoadedConfig};
use loomd_exec::Environment;
use loomd_files::{Owner, Watches};
use loomd_mcp::{ClientInfo, Servers, ServersOptions};
use loomd_mcp_oauth::McpOauth;
use loomd_model::Http;
use loomd_policy::rules::{Position, RulesProblem};
use loomd_protocol::{
    AbsolutePathBuf, ConfigWarningNotification, ServerDrainingNotification, ServerNotification, TextPosition,
    TextRange, ThreadClosedNotification,
};
use loomd_search::SearchSubscriber;
use loomd_store::{FileStore, Options, Store, ThreadId};
use loomd_telemetry::Telemetry;

use crate::apps::AppsOfAccount;
use crate::clients::Clients;
use crate::cloud::Cloud;
use crate::connections::{ConnectionId, Connections};
use crate::events::ConnectionEventSink;
use crate::files::{Files, watched};
use crate::identity::Identity;
use crate::nodes::{LiveUntil, NodeHost, NodeOptions, NodeOwnership, Nodes, RELEASED};
use crate::observer::observe;
use crate::outbound::Notification;
use crate::plugins::{Plugins, start_curated_sync};
use crate::requests::RequestCount;
use crate::search::Search;
use crate::server_requests::ServerRequests;

/// The server's state, shared by all connections.
pub struct App {
    pub(crate) sources: Arc<ConfigSources>,
    /// Warnings about this machine, sent to each client after its handshake.
    pub(crate) warnings: Vec<ConfigWarningNotification>,
    pub(crate) identity: Identity,
    pub(crate) accounts: Accounts,
    /// The logins to MCP servers.
    pub(crate) mcp_oauth: McpOauth,
    pub(crate) connections: Arc<Connections>,
    pub(crate) server_requests: Arc<ServerRequests>,
    /// The file operations and watches of clients.
    pub(crate) files: Files,
    pub(crate) watches: Watches,
    pub(crate) search: Search,
    pub(crate) agent: Agent,
    pub(crate) apps: Arc<AppsOfAccount>,
    pub(crate) plugins: Arc<Plugins>,
    /// The requests that are being worked on.
    pub(crate) requests: RequestCount,
    /// Whether clients on the network may run programs outside of sandboxes.
    pub(crate) remote_processes: bool,
    /// When unfinished turns are taken up.
    recover_turns: RecoverTurns,
    /// Whether listeners answer `/metrics`; `None`: those that are reachable from this machine only.
    pub(crate) metrics: Option<bool>,
    store: Arc<dyn Store>,
    /// The store, if it keeps threads in files.
    file_store: Option<FileStore>,
    /// This process as a node, where several share the store.
    pub(crate) nodes: Option<Arc<Nodes>>,
    started: AtomicBool,
    is_replay: bool,
}

impl App {
    /// `config` is the configuration at start, or the defaults where it could not be used.
    pub fn new(sources: ConfigSources, config: &LoadedConfig, warnings: Vec<ConfigWarningNotification>) -> Self {
        let store = ChosenStore::Files(store_options(&sources, config));
        Self::with(sources, config, warnings, store, Telemetry::default(), None)
    }

    /// The same, with exporters of telemetry.
    pub fn with_telemetry(
        sources: ConfigSources,
        config: &LoadedConfig,
        warnings: Vec<ConfigWarningNotification>,
        telemetry: Telemetry,
    ) -> Self {
        let store = ChosenStore::Files(store_options(&sources, config));
        Self::with(sources, config, warnings, store, telemetry, None)
    }

    /// The state of a node: one of several servers that share a store.
    pub fn sharing(
        sources: ConfigSources,
        config: &LoadedConfig,
        warnings: Vec<ConfigWarningNotification>,
        telemetry: Telemetry,
        shared: SharedThreads,
    ) -> Self {
        Self::with(sources, config, warnings, ChosenStore::Shared(shared), telemetry, None)
    }

    /// The state of a server that only replays a thread.
    pub fn replaying(sources: ConfigSources, config: &LoadedConfig, replay: Replay) -> Self {
        let options = Options { home: replay.home.clone(), sqlite_home: None };
        Self::with(sources, config, Vec::new(), ChosenStore::Files(options), Telemetry::default(), Some(replay))
    }

    fn with(
        sources: ConfigSources,
        config: &LoadedConfig,
        warnings: Vec<ConfigWarningNotification>,
        store: ChosenStore,
        telemetry: Telemetry,
        replay: Option<Replay>,
    ) -> Self {
        let sources = Arc::new(sources);
        let mut warnings = warnings;
        warnings.extend(rule_warnings(&sources.home));
        let connections: Arc<Connections> = Arc::default();
        let server_requests: Arc<ServerRequests> = Arc::default();
        let http = Http::new(&environment);
        let host = Clients {
            connections: Arc::clone(&connections),
            server_requests: Arc::clone(&server_requests),
            home: sources.home.clone(),
            managed: Arc::clone(&sources.live.managed),
        };
        let accounts =
            Accounts::new(AccountOptions::new(&sources.home, config, &environment), Arc::clone(&http), Arc::new(host));
        let apps = Arc::new(AppsOfAccount::new(accounts.clone()));
        let mcp_oauth = McpOauth::new(&sources.home, &config.config, Arc::clone(&http), environment);
        let (store, file_store, nodes) = match store {
            ChosenStore::Files(options) => {
                let files = FileStore::new(options);
                (Arc::new(files.clone()) as Arc<dyn Store>, Some(files), None)
            }
            ChosenStore::Shared(SharedThreads { store, node }) => {
                (Arc::clone(&store), None, Some(Nodes::new(store, node)))
            }
        };
        let live = nodes.as_ref().map(|nodes| Arc::clone(&nodes.live));
        let ownership = nodes.clone().map(|nodes| Arc::new(NodeOwnership(nodes)) as Arc<dyn Ownership>);
        let is_replay = replay.is_some();
        let agent = Agent::new(AgentOptions {
            sources: Arc::clone(&sources),
            store: Arc::clone(&store),
            event_sink: Arc::new(event_sink(&connections, &server_requests, live)),
            http: Arc::clone(&http),
            account: Some(Arc::new(accounts.clone())),
            mcp: Some(mcp_servers(&http, &mcp_oauth, Arc::clone(&apps))),
            apps: Some(Arc::clone(&apps) as _),
            telemetry,
            replay,
            ownership,
        });
        if nodes.is_some() {
            agent.note_turns();
        }
        Self {
            accounts,
            mcp_oauth,
            agent,
            apps,
            plugins: Arc::default(),
            sources,
            warnings,
            identity: Identity::new(config),
            remote_processes: config.config.loomd.as_ref().and_then(|own| own.remote_processes).unwrap_or(false),
            metrics: config.config.loomd.as_ref().and_then(|own| own.metrics),
            recover_turns: config.config.loomd.as_ref().and_then(|own| own.recover_turns).unwrap_or_default(),
            server_requests,
            files: Files::default(),
            watches: Watches::new(watched(Arc::clone(&connections))),
            search: Search::new(Arc::clone(&connections)),
            connections,
            requests: RequestCount::default(),
            store,
            file_store,
            nodes,
            started: AtomicBool::new(false),
            is_replay,
        }
    }

    /// Looks up the organisation's requirements, and refreshes them from then on. To be called before clients are
    /// served.
    pub async fn load_requirements(&self) {
        Cloud::begin(&self.sources.home, &self.accounts, &self.sources.live.managed).await;
    }

    /// Takes up the turns that other processes left unfinished, if that is configured. To be called before clients are
    /// served.
    pub(crate) async fn recover_turns(&self, listens: bool) {
        let recovers = match self.recover_turns {
            // Where several nodes share the turns, each takes up what has no owner.
            _ if self.nodes.is_some() => false,
            RecoverTurns::Always => true,
            RecoverTurns::Listening => listens,
            RecoverTurns::Never => false,
        };
        if recovers {
            self.agent.recover_turns().await;
        }
    }

    /// Resolves when no turn is running.
    pub(crate) async fn until_idle(&self) {
        self.threads().until_idle().await;
    }

    /// Ends all turns and unloads all threads, as far as that can be done in bounded time.
    pub(crate) async fn close(&self) {
        _ = tokio::time::timeout(crate::limits::CLOSE, self.threads().close_all()).await;
        self.leave_nodes().await;
        self.flush().await;
    }

    /// Waits until what was spent is in the ledger and telemetry is exported, in bounded time.
    pub(crate) async fn flush(&self) {
        let metering = Arc::clone(self.agent.metering());
        _ = tokio::task::spawn_blocking(move || metering.flush()).await;
        self.agent.telemetry().flush().await;
    }

    /// Returns the warnings of the present configuration and of this machine.
    pub(crate) fn current_warnings(&self) -> Vec<ConfigWarningNotification> {
        let cwd = working_directory().ok();
        let request = LoadRequest { cwd: cwd.as_ref(), ..self.sources.request() };
        let found = loomd_config::load_or_default(&request).map(|start| start.warnings);
        let mut warnings = found.unwrap_or_else(|error| vec![error.warning()]);
        warnings.extend(self.warnings.iter().cloned());
        warnings.extend(self.agent.enforcement_warning());
        warnings
    }

    /// All threads.
    pub(crate) fn threads(&self) -> &Threads {
        self.agent.threads()
    }

    /// Starts what is done once and beside other work: the index of threads is brought up to date and kept so from then
    /// on, and what belongs to skills and plugins is brought into the home.
    pub(crate) fn start_background_work(&self) {
        if self.started.swap(true, Ordering::Relaxed) {
            return;
        }
        if let Some(files) = &self.file_store {
            files.start_indexing();
        }
        let extensions = Arc::clone(self.agent.extensions());
        tokio::task::spawn_blocking(move || extensions.prepare_bundled());
        if !self.is_replay {
            start_curated_sync(&self.sources, &self.accounts, &self.plugins);
        }
    }

    /// Ends all subscriptions of a connection. Does not wait for busy threads.
    pub(crate) fn disconnect(&self, connection: ConnectionId) {
        self.watches.disconnect(Owner(connection.0));
        self.search.sessions.disconnect(SearchSubscriber(connection.0));
        let threads = self.threads().clone();
        tokio::spawn(async move { threads.disconnect(Subscriber(connection.0)).await });
    }

    /// Sends a notification to every initialized client, except those that opted out.
    pub async fn broadcast(&self, notification: ServerNotification) {
        event_sink(&self.connections, &self.server_requests, None).broadcast(notification).await;
    }

    /// Where threads are kept.
    pub(crate) fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// Joins the nodes that share the store, if several do. `listens_at` is the URL where others reach this one.
    pub(crate) fn join_nodes(self: &Arc<Self>, listens_at: Option<String>) {
        let Some(nodes) = &self.nodes else { return };
        let host: std::sync::Weak<Self> = Arc::downgrade(self);
        nodes.start(listens_at, host);
        if nodes.options.token.is_some() {
            tokio::spawn(observe(Arc::clone(nodes), Arc::clone(&self.connections)));
        }
    }

    /// Ends the session of this node, so that the others need not wait until it has expired.
    pub(crate) async fn leave_nodes(&self) {
        if let Some(nodes) = &self.nodes {
            _ = tokio::time::timeout(crate::limits::CLOSE, nodes.drain()).await;
        }
    }

    /// Resolves when the server may end: no turn is running, or all threads are let go for other nodes.
    pub(crate) async fn drain(&self) {
        match &self.nodes {
            None => self.until_idle().await,
            Some(nodes) => {
                self.broadcast(ServerNotification::ServerDraining(ServerDrainingNotification {})).await;
                if tokio::time::timeout(crate::limits::LET_GO, nodes.drain()).await.is_err() {
                    tracing::warn!("giving up on threads that cannot be let go");
                }
            }
        }
    }

    /// Tells other nodes that a thread is no longer this one's; the subscribers that are clients of this node.
    fn tell_released(&self, id: ThreadId, subscribers: &[Subscriber]) -> Vec<ConnectionId> {
        let message = serde_json::json!({ "method": RELEASED, "params": { "threadId": id.to_string() } }).to_string();
        let to: Vec<ConnectionId> = subscribers.iter().map(|subscriber| ConnectionId(subscriber.0)).collect();
        self.connections.send_to_nodes(&to, &message.into())
    }
}

impl NodeHost for App {
    fn stop(&self, id: ThreadId) {
        if let Some(subscribers) = self.threads().abandon(id) {
            tracing::warn!(thread = %id, "a thread is no longer this node's: it is stopped");
            self.stopped(id, &subscribers);
        }
    }

    fn stopped(&self, id: ThreadId, subscribers: &[Subscriber]) {
        if let Some(nodes) = &self.nodes {
            nodes.note_stopped();
        }
        let clients = self.tell_released(id, subscribers);
        let closed = ThreadClosedNotification { thread_id: id.to_string() };
        let closed = Notification::new(ServerNotification::ThreadClosed(closed));
        let connections = Arc::clone(&self.connections);
        tokio::spawn(async move { connections.send_to(clients, &closed).await });
    }

    fn let_go(self: Arc<Self>, id: ThreadId) {
        tokio::spawn(async move {
            let subscribers = self.threads().let_go(id).await;
            // Clients of this node are told that it drains.
            self.tell_released(id, &subscribers);
        });
    }

    fn take_up(self: Arc<Self>, id: ThreadId) {
        tokio::spawn(async move {
            if let Err(refusal) = self.agent.take_up(id).await {
                tracing::warn!(thread = %id, %refusal, "the unfinished turn of a thread cannot be taken up");
            }
        });
    }
}

/// Where a server keeps its threads.
enum ChosenStore {
    Files(Options),
    Shared(SharedThreads),
}

/// The threads that several nodes share, and this process as one of them.
pub struct SharedThreads {
    /// A store with [`Store::shared`].
    pub store: Arc<dyn Store>,
    pub node: NodeOptions,
}

fn store_options(sources: &ConfigSources, config: &LoadedConfig) -> Options {
    Options {
        home: sources.home.to_path_buf(),
        sqlite_home: config.config.sqlite_home.as_ref().map(|path| path.to_path_buf()),
    }
}

fn event_sink(
    connections: &Arc<Connections>,
    server_requests: &Arc<ServerRequests>,
    live: Option<Arc<LiveUntil>>,
) -> ConnectionEventSink {
    ConnectionEventSink { connections: Arc::clone(connections), server_requests: Arc::clone(server_requests), live }
}

/// The connections to MCP servers, none of which is open yet.
fn mcp_servers(http: &Arc<Http>, oauth: &McpOauth, account: Arc<AppsOfAccount>) -> Servers {
    Servers::new(ServersOptions {
        http: Arc::clone(http),
        environment: Environment::of_this_process(),
        client: ClientInfo {
            name: "codex-mcp-client".into(),
            title: "loomd".into(),
            version: env!("CARGO_PKG_VERSION").into(),
        },
        oauth: Arc::new(oauth.clone()),
        account,
    })
}

/// Warnings about the user's rules files. Threads read the files again when they need them.
fn rule_warnings(home: &AbsolutePathBuf) -> Vec<ConfigWarningNotification> {
    let loaded = match loomd_policy::rules::load(&[home]) {
        Ok(loaded) => loaded,
        Err(error) => {
            let warning = ConfigWarningNotification {
                summary: "Error reading rules; commands are refused until they can be read.".into(),
                details: Some(error.to_string()),
                path: Some(error.path.to_string_lossy().into_owned()),
                range: None,
            };
            return vec![warning];
        }
    };
    let place = |at: Position| TextPosition { line: at.line, column: at.column };
    let warning = |problem: RulesProblem| ConfigWarningNotification {
        summary: "Error parsing rules; those of this file are not applied, and commands are asked about.".into(),
        details: Some(problem.message),
        path: Some(problem.path.to_string_lossy().into_owned()),
        range: Some(TextRange { start: place(problem.start), end: place(problem.end) }),
    };
    loaded.problems.into_iter().map(warning).collect()
}

/// Returns a variable of this process.
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
