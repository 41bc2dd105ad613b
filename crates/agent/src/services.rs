//! What all threads share, except the store.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use jiff::Zoned;
use loomd_exec::{Environment, Shell};
use loomd_model::Http;
use loomd_organiser::Organiser;
use loomd_telemetry::Telemetry;

use crate::event_log::EventBudget;
use crate::images::Images;
use crate::mcp::McpServices;
use crate::metering::Metering;
use crate::ownership::Ownership;
use crate::replay::ReplaySession;

pub struct Services {
    /// The home directory of the server.
    pub home: PathBuf,
    pub http: Arc<Http>,
    /// The environment that commands inherit.
    pub environment: Environment,
    /// What users add to threads.
    pub organiser: Organiser,
    pub(crate) images: Arc<Images>,
    /// The memory for the recent events of all threads.
    pub(crate) event_budget: Arc<EventBudget>,
    /// The MCP servers; `None` where there are none, as in a replay.
    pub(crate) mcp: Option<Arc<McpServices>>,
    /// The recording of a replay, which takes the place of tools and clients.
    pub(crate) replayed: Option<Arc<ReplaySession>>,
    /// What model calls, tools and turns spend.
    pub metering: Arc<Metering>,
    /// The exporters of spans, log events and metrics.
    pub telemetry: Telemetry,
    /// Which threads may be loaded here; `None`: all.
    pub(crate) ownership: Option<Arc<dyn Ownership>>,
    shell: OnceLock<Shell>,
    /// Whether unfinished turns are noted for other processes.
    notes_turns: AtomicBool,
}

impl Services {
    pub fn new(home: PathBuf, http: Arc<Http>, environment: Environment) -> Self {
        Self {
            organiser: Organiser::new(&home),
            metering: Arc::new(Metering::new(&home)),
            telemetry: Telemetry::default(),
            home,
            http,
            environment,
            images: Arc::default(),
            event_budget: Arc::default(),
            mcp: None,
            replayed: None,
            ownership: None,
            shell: OnceLock::new(),
            notes_turns: AtomicBool::new(false),
        }
    }

    /// Notes unfinished turns from now on, so that another process can take them up.
    pub(crate) fn note_turns(&self) {
        self.notes_turns.store(true, Ordering::Relaxed);
    }

    pub(crate) fn notes_turns(&self) -> bool {
        self.notes_turns.load(Ordering::Relaxed)
    }

    /// The services of a replay.
    pub fn replaying(self, replayed: Arc<ReplaySession>) -> Self {
        Self { replayed: Some(replayed), mcp: None, ..self }
    }

    /// With exporters of telemetry.
    pub fn with_telemetry(self, telemetry: Telemetry) -> Self {
        Self { telemetry, ..self }
    }

    /// With threads that several processes share.
    pub fn with_ownership(self, ownership: Option<Arc<dyn Ownership>>) -> Self {
        Self { ownership, ..self }
    }

    /// With MCP servers.
    pub fn with_mcp(self, mcp: Arc<McpServices>) -> Self {
        Self { mcp: Some(mcp), ..self }
    }

    /// The current time; in a replay that of the recording.
    pub(crate) fn now(&self) -> Zoned {
        self.replayed.as_ref().and_then(|replayed| replayed.now()).unwrap_or_else(Zoned::now)
    }

    /// The user's shell; looked up when it is first needed.
    pub(crate) fn shell(&self) -> &Shell {
        self.shell.get_or_init(|| Shell::of_user(self.search_path()))
    }

    /// The name of the user's shell.
    pub(crate) fn shell_name(&self) -> &str {
        self.shell().path.file_name().and_then(|name| name.to_str()).unwrap_or("sh")
    }

    /// The `PATH` of commands.
    pub(crate) fn search_path(&self) -> &str {
        self.environment.get("PATH").unwrap_or_default()
    }
}
