//! What all connections share.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use loomd_agent::{Audience, Outlet, Sending, Subscriber, Threads};
use loomd_config::{Enablement, LoadRequest, Loaded, Managed, Overrides};
use loomd_files::{Owner, Watches};
use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification, ServerNotification};
use loomd_search::User;
use loomd_store::{FileStore, Options};
use tracing::error;

use crate::connections::{ConnectionId, Connections};
use crate::handlers::fs::{Files, watched};
use crate::handlers::search::Search;
use crate::identity::Identity;
use crate::outbox::Notification;

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
    pub managed: Managed,
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
    pub(crate) connections: Arc<Connections>,
    /// What clients do with files, and watch.
    pub(crate) files: Files,
    pub(crate) watches: Watches,
    pub(crate) search: Search,
    store: FileStore,
    indexed: AtomicBool,
    /// Made when the first client is there.
    threads: OnceLock<Threads>,
}

impl App {
    /// `config` is the configuration at start, or the defaults where it could not be used.
    pub fn new(sources: ConfigSources, config: &Loaded, warnings: Vec<ConfigWarningNotification>) -> Self {
        let options = Options {
            home: sources.home.to_path_buf(),
            sqlite_home: config.config.sqlite_home.as_ref().map(|path| path.to_path_buf()),
        };
        let connections: Arc<Connections> = Arc::default();
        Self {
            sources,
            warnings,
            identity: Identity::new(config),
            files: Files::default(),
            watches: Watches::new(watched(Arc::clone(&connections))),
            search: Search::new(Arc::clone(&connections)),
            connections,
            store: FileStore::new(options),
            indexed: AtomicBool::new(false),
            threads: OnceLock::new(),
        }
    }

    /// What is wrong with the configuration now, and what else there is to say.
    pub(crate) fn current_warnings(&self) -> Vec<ConfigWarningNotification> {
        let cwd = working_directory();
        let request = LoadRequest { cwd: cwd.as_ref(), ..self.sources.request() };
        let found = loomd_config::load_or_default(&request).map(|start| start.warnings);
        let mut warnings = found.unwrap_or_else(|error| vec![error.warning()]);
        warnings.extend(self.warnings.iter().cloned());
        warnings
    }

    /// All threads.
    pub(crate) fn threads(&self) -> &Threads {
        self.threads.get_or_init(|| {
            let outlet = Connected(Arc::clone(&self.connections));
            Threads::new(Arc::new(self.store.clone()), Arc::new(outlet))
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

    /// Tells every client that has shaken hands, except those that opted out.
    pub async fn broadcast(&self, notification: ServerNotification) {
        Connected(Arc::clone(&self.connections)).send(Audience::Everyone, notification).await;
    }
}

/// Where the server was started.
pub(crate) fn working_directory() -> Option<AbsolutePathBuf> {
    AbsolutePathBuf::new(std::env::current_dir().ok()?)
}

/// Takes the news of threads to connections, serialised once for all.
struct Connected(Arc<Connections>);

impl Outlet for Connected {
    fn send<'a>(&'a self, to: Audience<'a>, notification: ServerNotification) -> Sending<'a> {
        Box::pin(async move {
            let notification = match Notification::new(notification) {
                Ok(notification) => notification,
                Err(error) => return error!(%error, "cannot serialize a notification"),
            };
            match to {
                Audience::Everyone => self.0.broadcast(&notification).await,
                Audience::Only(subscribers) => {
                    let ids = subscribers.iter().map(|subscriber| ConnectionId(subscriber.0));
                    self.0.send_to(ids, &notification).await;
                }
            }
        })
    }
}
