//! The agent as a whole: threads, and what they are opened with. Everything that a front end needs is here or in
//! [`Threads`]; it only has to bring an [`EventSink`] and, for each request, a [`Reply`].

use std::sync::Arc;

use loomd_config::ConfigSources;
use loomd_exec::{Command, Environment};
use loomd_model::{Catalogue, CatalogueError, Credentials, Http};
use loomd_plugins::ActivePlugin;
use loomd_protocol::{
    AbsolutePathBuf, ConfigWarningNotification, McpServerStatus, ResponseItem, ReviewDelivery, ReviewStartParams, Turn,
};
use loomd_store::{Store, ThreadId};
use tokio_util::task::AbortOnDropHandle;

use crate::confinement::ClientCommand;
use crate::event_sink::{EventSink, Subscriber};
use crate::extensions::Extensions;
use crate::mcp::{self, McpServices, StatusDetail};
use crate::open::{ClientIdentity, Enforcement, Models, Opener, Replay, Restore, ThreadOverrides, check_dynamic_tools};
use crate::refusal::Refusal;
use crate::services::Services;
use crate::thread::{Opened, Reply};
use crate::threads::{NewThread, Source, Threads};
use crate::turn_requests::{parse_id, review_target};

/// What an agent is made of.
pub struct AgentOptions {
    pub sources: Arc<ConfigSources>,
    pub store: Arc<dyn Store>,
    pub event_sink: Arc<dyn EventSink>,
    pub http: Arc<Http>,
    /// The credentials of the user's account, for providers that ask for them.
    pub account: Option<Arc<dyn Credentials>>,
    /// The connections to MCP servers.
    pub mcp: Option<loomd_mcp::Servers>,
    /// The account whose apps threads have.
    pub apps: Option<Arc<dyn loomd_apps::AppsAccount>>,
    /// Runs one stored thread again and changes nothing.
    pub replay: Option<Replay>,
}

/// Threads, and what they are opened with.
pub struct Agent {
    opener: Arc<Opener>,
    threads: Threads,
}

/// The client that makes a request. It becomes a subscriber of the thread that it opens.
#[derive(Clone)]
pub struct Caller {
    pub client: Arc<ClientIdentity>,
    pub subscriber: Subscriber,
}

/// A new thread. Nothing of it is stored before its first turn.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StartThread {
    pub overrides: ThreadOverrides,
    /// Never stored.
    pub ephemeral: bool,
}

/// A stored thread that is loaded, or a loaded one that is joined. `history` counts before `path`, and `path` before
/// `thread_id`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResumeThread {
    pub thread_id: String,
    /// A rollout on disk.
    pub path: Option<String>,
    /// The past of a new thread.
    pub history: Option<Vec<ResponseItem>>,
    /// Whether the answer has the turns of the thread.
    pub include_turns: bool,
    /// Ignored when the thread is loaded.
    pub overrides: ThreadOverrides,
}

/// A new thread with the past of a stored one. `path` counts before `thread_id`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForkThread {
    pub thread_id: String,
    pub path: Option<String>,
    pub ephemeral: bool,
    pub overrides: ThreadOverrides,
}

impl Agent {
    pub fn new(options: AgentOptions) -> Self {
        let AgentOptions { sources, store, event_sink, http, account, mcp, apps, replay } = options;
        let home = replay.as_ref().map_or_else(|| sources.home.to_path_buf(), |replay| replay.home.clone());
        let models = Models::new(account, replay.as_ref());
        let extensions = Arc::new(Extensions::new(Arc::clone(&sources), replay.is_some()));
        let mut services = Services::new(home, http, Environment::of_this_process());
        if let Some(servers) = mcp {
            services = services.with_mcp(Arc::new(McpServices { servers, sources: Arc::clone(&sources), apps }));
        }
        let services = Arc::new(match replay {
            Some(replay) => services.replaying(replay.replayed),
            None => services,
        });
        let enforcement = Arc::new(Enforcement::new(Arc::clone(&event_sink)));
        let opener = Arc::new(Opener::new(sources, Arc::clone(&services), models, enforcement, extensions));
        Self { opener, threads: Threads::new(store, event_sink, services) }
    }

    /// All threads, for requests that open none.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    pub fn start(&self, request: StartThread, caller: Caller, reply: Reply<Opened>) {
        let StartThread { overrides, ephemeral } = request;
        let resolved = || {
            self.opener.check_managed()?;
            check_dynamic_tools(overrides.dynamic_tools.as_deref().unwrap_or_default())?;
            self.opener.resolve_new(overrides, &caller.client)
        };
        match resolved() {
            Ok(resolved) => self.threads.start(NewThread { resolved, ephemeral }, caller.subscriber, reply),
            Err(refusal) => reply(Err(refusal)),
        }
    }

    pub async fn resume(&self, request: ResumeThread, caller: Caller, reply: Reply<Opened>) {
        let ResumeThread { thread_id, path, history, include_turns, overrides } = request;
        let id = parse_id(&thread_id);
        let checked = self.opener.check_managed().and_then(|()| match &id {
            Ok(id) => self.threads.refuse_mismatch(*id, history.is_some(), path.as_deref()),
            Err(_) => Ok(()),
        });
        if let Err(refusal) = checked {
            return reply(Err(refusal));
        }
        let resolve = self.opener.resolver(overrides, Restore::Model, caller.client);
        let source = match (history, path, id) {
            (Some(items), _, _) => {
                return self.threads.resume_history(items, resolve, caller.subscriber, reply).await;
            }
            (None, Some(path), _) => Source::Path(path.into()),
            (None, None, Ok(id)) => Source::Id(id),
            (None, None, Err(refusal)) => return reply(Err(refusal)),
        };
        self.threads.resume(source, include_turns, resolve, caller.subscriber, reply).await;
    }

    pub async fn fork(&self, request: ForkThread, caller: Caller, reply: Reply<Opened>) {
        let ForkThread { thread_id, path, ephemeral, overrides } = request;
        let source = self.opener.check_managed().and_then(|()| match path {
            Some(path) => Ok(Source::Path(path.into())),
            None => parse_id(&thread_id).map(Source::Id),
        });
        let source = match source {
            Ok(source) => source,
            Err(refusal) => return reply(Err(refusal)),
        };
        let resolve = self.opener.resolver(overrides, Restore::Nothing, caller.client);
        self.threads.fork(source, ephemeral, resolve, caller.subscriber, reply).await;
    }

    /// Starts a review, in the thread itself or in a fork of it. The reply gets the turn and the thread it runs in.
    pub async fn review(&self, params: ReviewStartParams, caller: Caller, reply: Reply<(Turn, ThreadId)>) {
        let parsed = review_target(params.target).and_then(|target| Ok((target, parse_id(&params.thread_id)?)));
        let (target, id) = match parsed {
            Ok(parsed) => parsed,
            Err(refusal) => return reply(Err(refusal)),
        };
        let id = match params.delivery.unwrap_or(ReviewDelivery::Inline) {
            ReviewDelivery::Inline => Ok(id),
            ReviewDelivery::Detached => {
                let resolve = self.opener.resolver(ThreadOverrides::default(), Restore::Model, caller.client);
                self.threads.fork_for_review(Source::Id(id), resolve, caller.subscriber).await
            }
        };
        match id {
            Ok(id) => {
                let reply = Box::new(move |turn: Result<Turn, Refusal>| reply(turn.map(|turn| (turn, id))));
                self.threads.review(id, target, reply).await;
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Confines a client's command as the configuration of the working directory or its own policy says. The handle
    /// serves its network, if that is managed, until it is dropped.
    pub fn client_command(&self, command: ClientCommand) -> Result<(Command, Option<AbortOnDropHandle<()>>), Refusal> {
        self.opener.client_command(command)
    }

    /// Reads the configuration again and gives every loaded thread the MCP servers that it would have if it were opened
    /// now. Unchanged servers keep their connections.
    pub async fn reload_mcp_servers(&self) -> Result<(), Refusal> {
        self.opener.configured_mcp_servers()?;
        let opener = Arc::clone(&self.opener);
        self.threads.reload_mcp_servers(Arc::new(move |profile, settings| opener.mcp_servers(profile, settings))).await;
        Ok(())
    }

    /// The MCP servers of the present configuration, without a thread's own.
    pub fn configured_mcp_servers(&self) -> Result<loomd_mcp::ServerSet, Refusal> {
        self.opener.configured_mcp_servers()
    }

    /// A page of the status of the configured MCP servers, and the cursor of the next.
    pub async fn mcp_server_status(
        &self,
        cursor: Option<&str>,
        limit: Option<u32>,
        detail: StatusDetail,
    ) -> Result<(Vec<McpServerStatus>, Option<String>), Refusal> {
        let mut set = self.opener.configured_mcp_servers()?;
        let names: Vec<String> = set.iter().map(|(name, _)| name.to_owned()).collect();
        let (range, next) =
            mcp::page(names.len(), cursor, limit).map_err(|error| Refusal::invalid(error.to_string()))?;
        set.retain(|name, _| names[range.clone()].iter().any(|wanted| wanted == name));
        let Some(services) = &self.opener.services.mcp else { return Ok((Vec::new(), next)) };
        Ok((mcp::statuses(services, &set, detail).await, next))
    }

    /// What MCP servers share; `None` in a replay.
    pub(crate) fn mcp(&self) -> Option<&Arc<McpServices>> {
        self.opener.services.mcp.as_ref()
    }

    /// The configuration as it is now, without that of a project or a thread, and the plugins that it enables.
    pub(crate) fn configured(&self) -> Result<(loomd_config::Settings, Vec<ActivePlugin>), Refusal> {
        self.opener.configured()
    }

    /// The provider of stored threads that recorded none: the configured one.
    pub fn default_provider(&self) -> String {
        self.opener.default_provider()
    }

    /// Returns the models of `file` or, without one, the bundled models.
    pub fn catalogue(&self, file: Option<&AbsolutePathBuf>) -> Result<Arc<Catalogue>, CatalogueError> {
        self.opener.models.catalogue(file)
    }

    /// The skills and plugins of working directories.
    pub fn extensions(&self) -> &Arc<Extensions> {
        &self.opener.extensions
    }

    /// The warning that a policy in use cannot be enforced on this machine, if that was found.
    pub fn enforcement_warning(&self) -> Option<ConfigWarningNotification> {
        self.opener.enforcement.warning()
    }
}
