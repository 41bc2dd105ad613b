//! What all connections share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use loomd_accounts::{Accounts, Options as AccountOptions};
use loomd_agent::replay::Replayed;
use loomd_agent::{EventSink, Services, Subscriber, Threads};
use loomd_config::config_toml::ModelProvider;
use loomd_config::{Enablement, LoadRequest, Loaded, Managed, Overrides};
use loomd_exec::Environment;
use loomd_exec::rules::{Position, Problem};
use loomd_files::{Owner, Watches};
use loomd_model::{Catalogue, CatalogueError, Http, Provider, Scenario};
use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification, ServerNotification, TextPosition, TextRange};
use loomd_search::User;
use loomd_store::{FileStore, Options};

use crate::clients::Clients;
use crate::confinement::Confinement;
use crate::connections::{ConnectionId, Connections};
use crate::default_provider::DefaultProvider;
use crate::events::Connected;
use crate::handlers::fs::{Files, watched};
use crate::handlers::search::Search;
use crate::identity::Identity;
use crate::server_requests::ServerRequests;
use crate::working_directory::working_directory;

/// Where configuration comes from; the same for the whole life of the process.
pub struct ConfigSources {
    pub home: AbsolutePathBuf,
    pub system_file: Option<AbsolutePathBuf>,
    pub user_home: Option<PathBuf>,
    pub flags: Overrides,
    pub live: LiveSources,
}

/// The part of configuration that changes while the server runs, and is in no file.
#[derive(Default)]
pub struct LiveSources {
    /// What the organisation requires of its members.
    pub managed: Arc<Managed>,
    /// Features that clients switched.
    pub enablement: Enablement,
}

impl ConfigSources {
    /// Configuration is loaded afresh for each request that needs it.
    pub fn request(&self) -> LoadRequest<'_> {
        LoadRequest {
            system_file: self.system_file.as_ref(),
            user_home: self.user_home.as_deref(),
            managed: Some(&self.live.managed),
            enablement: Some(&self.live.enablement),
            ..LoadRequest::new(&self.home, &self.flags)
        }
    }
}

/// The server's state, shared by all connections.
pub struct App {
    pub(crate) sources: ConfigSources,
    /// What is to be said about this machine; told to each client after its handshake.
    pub(crate) warnings: Vec<ConfigWarningNotification>,
    pub(crate) identity: Identity,
    pub(crate) accounts: Accounts,
    /// Connections to whatever is called, shared by all.
    http: Arc<Http>,
    pub(crate) connections: Arc<Connections>,
    pub(crate) server_requests: Arc<ServerRequests>,
    /// What clients do with files, and watch.
    pub(crate) files: Files,
    pub(crate) watches: Watches,
    pub(crate) search: Search,
    pub(crate) confinement: Confinement,
    store: FileStore,
    indexed: AtomicBool,
    /// Made when the first client is there.
    threads: OnceLock<Threads>,
    /// Those in use, so that threads share connections and credentials.
    providers: Mutex<Vec<(String, ModelProvider, Arc<Provider>)>>,
    bundled: OnceLock<Arc<Catalogue>>,
    pub(crate) default_provider: DefaultProvider,
    replay: Option<Replay>,
}

/// A server that runs one stored thread again and touches nothing.
pub struct Replay {
    /// Where it writes, in place of the home directory.
    pub home: PathBuf,
    pub replayed: Arc<Replayed>,
    /// What any model answers.
    pub scenario: Arc<Scenario>,
    /// How often an answer that breaks off is asked for again; `None`: as is configured.
    pub retries: Option<u64>,
}

/// More providers than this are not remembered. Configurations name a handful.
const MAX_PROVIDERS: usize = 64;

impl App {
    /// `config` is the configuration at start, or the defaults where it could not be used.
    pub fn new(sources: ConfigSources, config: &Loaded, warnings: Vec<ConfigWarningNotification>) -> Self {
        let options = Options {
            home: sources.home.to_path_buf(),
            sqlite_home: config.config.sqlite_home.as_ref().map(|path| path.to_path_buf()),
        };
        Self::with(sources, config, warnings, options, None)
    }

    /// Configured as usual, and for nothing but a replay.
    pub fn replaying(sources: ConfigSources, config: &Loaded, replay: Replay) -> Self {
        let options = Options { home: replay.home.clone(), sqlite_home: None };
        Self::with(sources, config, Vec::new(), options, Some(replay))
    }

    fn with(
        sources: ConfigSources,
        config: &Loaded,
        warnings: Vec<ConfigWarningNotification>,
        options: Options,
        replay: Option<Replay>,
    ) -> Self {
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
        Self {
            accounts: Accounts::new(
                AccountOptions::new(&sources.home, config, &environment),
                Arc::clone(&http),
                Arc::new(host),
            ),
            http,
            sources,
            warnings,
            identity: Identity::new(config),
            server_requests,
            files: Files::default(),
            watches: Watches::new(watched(Arc::clone(&connections))),
            search: Search::new(Arc::clone(&connections)),
            connections,
            confinement: Confinement::default(),
            store: FileStore::new(options),
            indexed: AtomicBool::new(false),
            threads: OnceLock::new(),
            providers: Mutex::default(),
            bundled: OnceLock::new(),
            default_provider: DefaultProvider::default(),
            replay,
        }
    }

    /// A provider as it is configured; the same one for the same configuration.
    pub(crate) fn provider(&self, id: &str, config: &ModelProvider) -> Arc<Provider> {
        let mut providers = self.providers.lock().unwrap_or_else(PoisonError::into_inner);
        let known = providers.iter().find(|(known, with, _)| known == id && with == config);
        if let Some((_, _, provider)) = known {
            return Arc::clone(provider);
        }
        let provider = match &self.replay {
            Some(Replay { scenario, retries, .. }) => {
                let config =
                    ModelProvider { stream_max_retries: retries.or(config.stream_max_retries), ..config.clone() };
                Provider::played(id, &config, Arc::clone(scenario))
            }
            None => Provider::new(id, config, &environment, Some(Arc::new(self.accounts.clone()))),
        };
        if providers.len() >= MAX_PROVIDERS {
            providers.clear();
        }
        providers.push((id.into(), config.clone(), Arc::clone(&provider)));
        provider
    }

    /// The models that are known, or those of a file that stands in for them.
    pub(crate) fn catalogue(&self, file: Option<&AbsolutePathBuf>) -> Result<Arc<Catalogue>, CatalogueError> {
        match file {
            Some(file) => Catalogue::from_json_file(file).map(Arc::new),
            None => Ok(Arc::clone(self.bundled.get_or_init(|| Arc::new(Catalogue::bundled())))),
        }
    }

    /// Resolves when no turn is running.
    pub(crate) async fn until_idle(&self) {
        if let Some(threads) = self.threads.get() {
            threads.until_idle().await;
        }
    }

    /// Ends all turns and unloads all threads, as far as that can be done in bounded time.
    pub(crate) async fn close(&self) {
        if let Some(threads) = self.threads.get() {
            _ = tokio::time::timeout(crate::limits::CLOSE, threads.close_all()).await;
        }
    }

    /// What is wrong with the configuration now, and what else there is to say.
    pub(crate) fn current_warnings(&self) -> Vec<ConfigWarningNotification> {
        let cwd = working_directory().ok();
        let request = LoadRequest { cwd: cwd.as_ref(), ..self.sources.request() };
        let found = loomd_config::load_or_default(&request).map(|start| start.warnings);
        let mut warnings = found.unwrap_or_else(|error| vec![error.warning()]);
        warnings.extend(self.warnings.iter().cloned());
        warnings.extend(self.confinement.warning());
        warnings
    }

    /// All threads.
    pub(crate) fn threads(&self) -> &Threads {
        self.threads.get_or_init(|| {
            let event_sink = self.event_sink();
            let home = self.replay.as_ref().map_or(self.sources.home.to_path_buf(), |replay| replay.home.clone());
            let services = Services::new(home, Arc::clone(&self.http), Environment::of_this_process());
            let services = match &self.replay {
                Some(replay) => services.replaying(Arc::clone(&replay.replayed)),
                None => services,
            };
            Threads::new(Arc::new(self.store.clone()), Arc::new(event_sink), Arc::new(services))
        })
    }

    /// Brings the index of threads up to date, beside other work. Once is enough: from then on it is kept so.
    pub(crate) fn start_indexing(&self) {
        if !self.indexed.swap(true, Ordering::Relaxed) {
            self.store.start_indexing();
        }
    }

    /// A connection is gone: nobody there listens any more. A busy thread is not waited for.
    pub(crate) fn disconnect(&self, connection: ConnectionId) {
        self.watches.disconnect(Owner(connection.0));
        self.search.sessions.disconnect(User(connection.0));
        if let Some(threads) = self.threads.get().cloned() {
            tokio::spawn(async move { threads.disconnect(Subscriber(connection.0)).await });
        }
    }

    /// Sends a notification to every initialized client, except those that opted out.
    pub async fn broadcast(&self, notification: ServerNotification) {
        self.event_sink().broadcast(notification).await;
    }

    fn event_sink(&self) -> Connected {
        Connected { connections: Arc::clone(&self.connections), server_requests: Arc::clone(&self.server_requests) }
    }
}

/// What is wrong with the user's rules. Threads read them again when they need them.
fn rule_warnings(home: &AbsolutePathBuf) -> Vec<ConfigWarningNotification> {
    let loaded = match loomd_exec::rules::load(&[home]) {
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
    let warning = |problem: Problem| ConfigWarningNotification {
        summary: "Error parsing rules; those of this file are not applied, and commands are asked about.".into(),
        details: Some(problem.message),
        path: Some(problem.path.to_string_lossy().into_owned()),
        range: Some(TextRange { start: place(problem.start), end: place(problem.end) }),
    };
    loaded.problems.into_iter().map(warning).collect()
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
