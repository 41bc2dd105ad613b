//! The agent as a whole: threads, and what they are opened with. Everything that a front end needs is here or in
//! [`Threads`]; it only has to bring an [`EventSink`] and, for each request, a [`Reply`].

use std::sync::Arc;

use loomd_config::{ConfigSources, Feature};
use loomd_exec::{Command, Environment};
use loomd_model::{Catalogue, CatalogueError, Credentials, Http};
use loomd_organiser::Organiser;
use loomd_plugins::ActivePlugin;
use loomd_protocol::{
    AbsolutePathBuf, ConfigWarningNotification, Level, ListMcpServerStatusParams, McpServerStatus,
    PermissionProfileSummary, ResponseItem, ReviewDelivery, ReviewStartParams, ServerNotification,
    ThreadSettingsUpdateParams, Turn, TurnEnvironmentParams, TurnStartParams,
};
use loomd_store::{RequestKey, Store, ThreadId};
use loomd_telemetry::Telemetry;
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;

use crate::confinement::{ClientCommand, CommandPolicy};
use crate::event::EventId;
use crate::event_sink::{EventSink, Subscriber};
use crate::extensions::Extensions;
use crate::fork::{ForkBoundary, ForkForm};
use crate::goals::GoalLimits;
use crate::idempotency::ClaimedThread;
use crate::lanes::LaneGuard;
use crate::loading::NewThread;
use crate::mcp::{self, McpServices, StatusDetail};
use crate::metering::Metering;
use crate::open::{
    ClientIdentity, Enforcement, Models, Opener, Replay, Requested, Restore, ThreadOverrides, check_dynamic_tools,
};
use crate::ownership::Ownership;
use crate::refusal::Refusal;
use crate::resume::ResumeSource;
use crate::resumed::{InitialPage, Resumed, ResumedPages};
use crate::services::Services;
use crate::settings::Profile;
use crate::thread::{Opened, Reply};
use crate::threads::{Source, Threads};
use crate::turn_requests::{check_environments, parse_id, review_target};

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
    /// The exporters of spans and log events.
    pub telemetry: Telemetry,
    /// Runs one stored thread again and changes nothing.
    pub replay: Option<Replay>,
    /// Which threads may be loaded, where several processes share the store.
    pub ownership: Option<Arc<dyn Ownership>>,
}

/// Threads, and what they are opened with.
pub struct Agent {
    opener: Arc<Opener>,
    threads: Threads,
    event_sink: Arc<dyn EventSink>,
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
    /// The id of the thread, where it is already known.
    pub id: Option<ThreadId>,
    /// The project that it was put into.
    pub project_id: Option<String>,
    pub overrides: ThreadOverrides,
    /// Where its commands run; `None`: on this machine. Empty: nowhere, and its agent has no tools for a machine.
    pub environments: Option<Vec<TurnEnvironmentParams>>,
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
    /// The first page of turns that the answer has.
    pub initial_page: Option<InitialPage>,
    /// The last event that the client has.
    pub after_event: Option<EventId>,
    /// Without effect when the thread is loaded, which the client is warned about.
    pub overrides: ThreadOverrides,
}

/// A new thread with the past of a stored one. `path` counts before `thread_id`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ForkThread {
    pub thread_id: String,
    pub path: Option<String>,
    /// Where its history ends; `None`: with the source's.
    pub boundary: Option<ForkBoundary>,
    pub ephemeral: bool,
    /// Whether the fork stays attached to its source.
    pub attach: bool,
    /// The fork takes the goal along, which continues after the fork's first turn.
    pub defer_goal: bool,
    pub key: Option<RequestKey>,
    pub overrides: ThreadOverrides,
}

impl Agent {
    pub fn new(options: AgentOptions) -> Self {
        let AgentOptions { sources, store, event_sink, http, account, mcp, apps, telemetry, replay, ownership } =
            options;
        let home = replay.as_ref().map_or_else(|| sources.home.to_path_buf(), |replay| replay.home.clone());
        let models = Models::new(account, replay.as_ref());
        let extensions = Arc::new(Extensions::new(Arc::clone(&sources), replay.is_some()));
        let mut services = Services::new(home, http, Environment::of_this_process())
            .with_telemetry(telemetry)
            .with_ownership(ownership);
        if let Some(servers) = mcp {
            services = services.with_mcp(Arc::new(McpServices { servers, sources: Arc::clone(&sources), apps }));
        }
        let services = Arc::new(match replay {
            Some(replay) => services.replaying(replay.replayed),
            None => services,
        });
        let enforcement = Arc::new(Enforcement::new(Arc::clone(&event_sink)));
        let opener = Arc::new(Opener::new(sources, Arc::clone(&services), models, enforcement, extensions));
        Self { opener, threads: Threads::new(store, Arc::clone(&event_sink), services), event_sink }
    }

    pub(crate) fn opener(&self) -> &Arc<Opener> {
        &self.opener
    }

    /// Where the configuration is read from.
    pub(crate) fn sources(&self) -> &Arc<ConfigSources> {
        &self.opener.sources
    }

    /// The exporters of spans, log events and metrics.
    pub fn telemetry(&self) -> &Telemetry {
        &self.opener.services.telemetry
    }

    /// What model calls, tools and turns spend.
    pub fn metering(&self) -> &Arc<Metering> {
        &self.opener.services.metering
    }

    /// All threads, for requests that open none.
    pub fn threads(&self) -> &Threads {
        &self.threads
    }

    pub fn start(&self, request: StartThread, caller: Caller, reply: Reply<Opened>) {
        let StartThread { id, project_id, mut overrides, environments, ephemeral } = request;
        overrides.without_environment = environments.as_ref().is_some_and(Vec::is_empty);
        let reply = self.with_warning(&overrides, None, caller.subscriber, reply);
        let resolved = || {
            self.opener.check_managed()?;
            check_environments(environments.as_deref())?;
            check_dynamic_tools(overrides.dynamic_tools.as_deref().unwrap_or_default())?;
            self.opener.resolve_new(overrides, &caller.client)
        };
        match resolved() {
            Ok(resolved) => {
                let new = NewThread { id: id.unwrap_or_else(ThreadId::new), project_id, resolved, ephemeral };
                self.threads.start(new, caller.subscriber, reply);
            }
            Err(refusal) => reply(Err(refusal)),
        }
    }

    /// Claims the thread that a request with a key starts. Nothing else is claimed with the same key meanwhile.
    pub async fn claim(&self, key: &RequestKey) -> Result<ClaimedThread, Refusal> {
        self.threads.claim_thread(None, key, false).await
    }

    /// Releases the claim of a request that was refused.
    pub async fn release(&self, key: RequestKey) {
        if let Err(error) = self.threads.store.work().forget_answer(None, key).await {
            tracing::warn!(%error, "the key of a refused request could not be removed");
        }
    }

    /// Opens the thread that an earlier request with the same key has started.
    pub async fn reopen(&self, claimed: ClaimedThread, caller: Caller, reply: Reply<Opened>) {
        let resolve = self.opener.resolver(ThreadOverrides::default(), Restore::Model, caller.client);
        match self.own_with_turn(claimed.id, &claimed.lane).await {
            Ok(owned) => self.threads.open_claimed(claimed, owned, false, resolve, caller.subscriber, reply).await,
            Err(refusal) => reply(Err(refusal)),
        }
    }

    pub async fn resume(&self, request: ResumeThread, caller: Caller, reply: Reply<Resumed>) {
        let ResumeThread { thread_id, path, history, include_turns, initial_page, after_event, overrides } = request;
        let id = parse_id(&thread_id);
        let checked = self.opener.check_managed().and_then(|()| match &id {
            Ok(id) => self.threads.refuse_mismatch(*id, history.is_some(), path.as_deref()),
            Err(_) => Ok(()),
        });
        if let Err(refusal) = checked {
            return reply(Err(refusal));
        }
        let source = match (history, path, id) {
            (Some(items), ..) => ResumeSource::History(items),
            (None, Some(path), _) => ResumeSource::Path(path.into()),
            // The lane is entered before anything that takes time, so that later requests do not overtake this one.
            (None, None, Ok(id)) => {
                let lane = self.threads.lanes.enter(id).await;
                match self.own_with_turn(id, &lane).await {
                    Ok(owned) => ResumeSource::Id(id, owned, lane),
                    Err(refusal) => return reply(Err(refusal)),
                }
            }
            (None, None, Err(refusal)) => return reply(Err(refusal)),
        };
        let loaded = match &source {
            ResumeSource::History(_) => None,
            ResumeSource::Path(path) => self.threads.loaded_at(path),
            ResumeSource::Id(id, ..) => Some(*id),
        };
        let loaded = loaded.and_then(|id| self.threads.profile(id));
        if let (ResumeSource::Id(id, _, lane), Some(_), Some(profile)) = (&source, &loaded, &overrides.permissions)
            && let Err(refusal) = self.choose_for_loaded(*id, lane, profile, overrides.sandbox.is_some()).await
        {
            return reply(Err(refusal));
        }
        let pages = match &source {
            ResumeSource::Id(id, _, lane) if caller.client.newer || initial_page.is_some() || !include_turns => {
                self.threads.resumed_pages(*id, lane, initial_page).await
            }
            _ => ResumedPages::default(),
        };
        let reply: Reply<Opened> = Box::new(|opened| reply(opened.map(|opened| Resumed { opened, pages })));
        let reply = self.with_warning(&overrides, loaded, caller.subscriber, reply);
        let on_disconnect = overrides.on_disconnect;
        let resolve = self.opener.resolver(overrides, Restore::Model, caller.client);
        self.threads
            .resume_from(source, include_turns, after_event, on_disconnect, resolve, caller.subscriber, reply)
            .await;
    }

    /// Gives a loaded thread the permission profile of a request to resume it, which otherwise leaves its settings as
    /// they are.
    async fn choose_for_loaded(
        &self,
        id: ThreadId,
        lane: &LaneGuard,
        profile: &str,
        sandbox: bool,
    ) -> Result<(), Refusal> {
        if sandbox {
            return Err(Refusal::invalid("`permissions` cannot be combined with `sandbox`"));
        }
        let params = TurnStartParams {
            thread_id: id.to_string(),
            permissions: Some(profile.to_owned()),
            ..TurnStartParams::default()
        };
        let (answer, answered) = oneshot::channel();
        let reply = Box::new(|updated| _ = answer.send(updated));
        self.threads.update_settings_within(lane, id, params, &self.chooser(), reply).await;
        answered.await.unwrap_or_else(|_| Err(Refusal::not_found(id)))
    }

    pub async fn fork(&self, request: ForkThread, caller: Caller, reply: Reply<Opened>) {
        let ForkThread { thread_id, path, boundary, ephemeral, attach, defer_goal, key, overrides } = request;
        if defer_goal && ephemeral {
            let message = "`deferGoalContinuation` cannot be combined with `ephemeral`";
            return reply(Err(Refusal::invalid(message)));
        }
        let source = self.opener.check_managed().and_then(|()| match path {
            Some(path) => Ok(Source::Path(path.into())),
            None => parse_id(&thread_id).map(Source::Id),
        });
        let source = match source {
            Ok(source) => source,
            Err(refusal) => return reply(Err(refusal)),
        };
        let reply = self.with_warning(&overrides, None, caller.subscriber, reply);
        let resolve = self.opener.resolver(overrides, Restore::Nothing, caller.client);
        let form = ForkForm { id: None, ephemeral, attach, boundary, defer_goal };
        self.threads.fork_once(source, form, key.as_ref(), resolve, caller.subscriber, reply).await;
    }

    /// A reply after which the client is warned about settings of its request that have no effect.
    fn with_warning(
        &self,
        overrides: &ThreadOverrides,
        loaded: Option<Arc<Profile>>,
        to: Subscriber,
        reply: Reply<Opened>,
    ) -> Reply<Opened> {
        let requested = Requested { overrides: overrides.clone(), loaded };
        let event_sink = Arc::clone(&self.event_sink);
        Box::new(move |opened| {
            let warning = opened.as_ref().ok().and_then(|opened| requested.warning(&opened.settings));
            reply(opened);
            if let Some(warning) = warning {
                let warning = ServerNotification::ConfigWarning(warning);
                tokio::spawn(async move { event_sink.notify(&[to], warning).await });
            }
        })
    }

    /// Starts a turn, or gives its input to the running one. A relative `cwd` starts in the working directory of the
    /// process.
    pub async fn start_turn(&self, params: TurnStartParams, level: Level, key: Option<RequestKey>, reply: Reply<Turn>) {
        self.threads.start_turn_with(params, &self.chooser(), level, key, reply).await;
    }

    /// Changes settings of a loaded thread, without a turn.
    pub async fn update_settings(&self, params: ThreadSettingsUpdateParams, reply: Reply<()>) {
        self.threads.update_settings(params, &self.chooser(), reply).await;
    }

    /// Finds out what a permission profile stands for in the folder of a thread.
    fn chooser(&self) -> impl Fn(&str, &str, &Profile) -> Result<CommandPolicy, Refusal> + Send + Sync {
        |id: &str, cwd: &str, profile: &Profile| self.opener.choose_profile(id, cwd, &profile.thread_config)
    }

    /// The permission profiles that threads in a folder can be given, built-in ones first.
    pub fn permission_profiles(&self, cwd: Option<&str>) -> Result<Vec<PermissionProfileSummary>, Refusal> {
        self.opener.permission_profiles(cwd)
    }

    /// Starts a review, in the thread itself or in a fork of it. The reply gets the turn and the thread it runs in.
    pub async fn review(
        &self,
        params: ReviewStartParams,
        key: Option<RequestKey>,
        caller: Caller,
        reply: Reply<(Turn, ThreadId)>,
    ) {
        let parsed = review_target(params.target).and_then(|target| Ok((target, parse_id(&params.thread_id)?)));
        let (target, id) = match parsed {
            Ok(parsed) => parsed,
            Err(refusal) => return reply(Err(refusal)),
        };
        let id = match params.delivery.unwrap_or(ReviewDelivery::Inline) {
            ReviewDelivery::Inline => Ok(id),
            ReviewDelivery::Detached => {
                let resolve = self.opener.resolver(ThreadOverrides::default(), Restore::Model, caller.client);
                self.threads.fork_for_review(id, key.as_ref(), resolve, caller.subscriber).await
            }
        };
        match id {
            Ok(id) => {
                let reply = Box::new(move |turn: Result<Turn, Refusal>| reply(turn.map(|turn| (turn, id))));
                self.threads.review(id, target, key, reply).await;
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

    /// A page of the status of MCP servers, and the cursor of the next: of a thread's, or of the configured ones.
    pub async fn mcp_server_status(
        &self,
        params: &ListMcpServerStatusParams,
        detail: StatusDetail,
    ) -> Result<(Vec<McpServerStatus>, Option<String>), Refusal> {
        let select = |mut set: loomd_mcp::ServerSet| {
            if let Some(only) = &params.server_name {
                set.retain(|name, _| name == only);
            }
            let names: Vec<String> = set.iter().map(|(name, _)| name.to_owned()).collect();
            let (range, next) = mcp::page(names.len(), params.cursor.as_deref(), params.limit)
                .map_err(|error| Refusal::invalid(error.to_string()))?;
            set.retain(|name, _| names[range.clone()].iter().any(|wanted| wanted == name));
            Ok((set, next))
        };
        if let Some(thread_id) = &params.thread_id {
            return self.threads.mcp_statuses(thread_id, select, detail).await;
        }
        let (set, next) = select(self.opener.configured_mcp_servers()?)?;
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

    /// The limits of goals, for a thread that is loaded or not. Refused where goals are switched off.
    pub fn goal_limits(&self, id: ThreadId) -> Result<GoalLimits, Refusal> {
        let (enabled, limits) = match self.threads.profile(id) {
            Some(profile) => (profile.config.features.enabled(Feature::Goals), GoalLimits::of(&profile.config)),
            None => {
                let (config, _) = self.opener.configured()?;
                (config.features.enabled(Feature::Goals), GoalLimits::of(&config))
            }
        };
        if enabled { Ok(limits) } else { Err(Refusal::invalid("goals feature is disabled")) }
    }

    /// What users add to threads.
    pub fn organiser(&self) -> &Organiser {
        &self.opener.services.organiser
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
