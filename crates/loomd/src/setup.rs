//! What every command starts from: the configuration of files and flags, a runtime, and a client of a server in this
//! process. Commands work through that client only.

use std::env;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use loomd_client::{Client, Endpoint, Events, Options};
use loomd_config::{LoadedConfig, OverrideError, Overrides, StartConfig, find_home, load_or_default, system_file};
use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification};
use loomd_server::{App, ConfigSources, LiveSources, Replay, Telemetry, TelemetrySettings, start_metrics};
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

use crate::node::NodeArguments;
use crate::{cli, logging};

/// Worker threads of the runtime. Turns mostly wait; more threads only cost memory.
const MAX_WORKERS: usize = 8;

/// How long a server in this process may take to close a connection. Answered requests are on disk by then.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// A configuration, loaded and checked.
pub struct Setup {
    pub sources: ConfigSources,
    pub start: StartConfig,
    /// Where threads are kept, as the command line says.
    pub node: NodeArguments,
}

impl Setup {
    /// The parsed overrides of a command line.
    pub fn flags(overrides: &cli::Overrides) -> Result<Overrides> {
        let cli::Overrides { config, enable, disable } = overrides;
        Overrides::parse(config, enable, disable).map_err(|error| match error {
            unknown @ OverrideError::UnknownFeature(_) => anyhow!(unknown),
            other => anyhow!("error parsing -c overrides: {other}"),
        })
    }

    pub fn new(overrides: &cli::Overrides) -> Result<Self> {
        let flags = Self::flags(overrides)?;
        let sources = ConfigSources {
            home: home()?,
            system_file: system_file(|name| env::var_os(name)),
            user_home: env::var_os("HOME").map(PathBuf::from),
            flags,
            live: LiveSources::default(),
        };
        let start = load_or_default(&sources.request()).context("error loading default config after config error")?;
        Ok(Self { sources, start, node: NodeArguments::default() })
    }

    /// A server without connections. Fetches the managed requirements first. Fails when an exporter of telemetry cannot
    /// be set up as configured.
    pub async fn app(self) -> Result<Arc<App>> {
        let Self { sources, start, node } = self;
        let version = env!("CARGO_PKG_VERSION");
        let telemetry = TelemetrySettings::new(&start.loaded.config, version, &|name| env::var(name).ok())?;
        let mut warnings = machine_warnings(&start.loaded);
        warnings.extend(telemetry.warnings.iter().map(|warning| ConfigWarningNotification {
            summary: warning.clone(),
            details: None,
            path: None,
            range: None,
        }));
        let shared = node.open(&start.loaded).await?;
        let telemetry = Telemetry::start(telemetry);
        let app = Arc::new(match shared {
            Some(shared) => App::sharing(sources, &start.loaded, warnings, telemetry, shared),
            None => App::with_telemetry(sources, &start.loaded, warnings, telemetry),
        });
        start_metrics(&app);
        app.load_requirements().await;
        Ok(app)
    }

    /// A client of a server that only replays a stored thread.
    pub async fn replay(self, replay: Replay, options: Options) -> Result<(Client, Events)> {
        let Self { sources, start, .. } = self;
        let app = Arc::new(App::replaying(sources, &start.loaded, replay));
        Ok(Client::open(Endpoint::in_process(app), options).await?)
    }

    /// A client of a server in this process, and a stream of all events.
    pub async fn connect(self, options: Options) -> Result<(Client, Events)> {
        Ok(Client::open(Endpoint::in_process(self.app().await?), options).await?)
    }
}

/// Closes the connection to a server in this process.
pub async fn close_client(client: &Client) {
    _ = timeout(CLOSE_TIMEOUT, client.close()).await;
}

/// Runs a command to its end. Blocked threads, such as readers of a terminal, end with the process.
pub fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    logging::init();
    let runtime = runtime()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}

pub fn runtime() -> Result<Runtime> {
    let workers = std::thread::available_parallelism().map_or(1, |cores| cores.get().min(MAX_WORKERS));
    Ok(Builder::new_multi_thread().worker_threads(workers).enable_all().build()?)
}

pub fn home() -> Result<AbsolutePathBuf> {
    Ok(find_home(|name| env::var_os(name))?)
}

/// Warnings about the environment, as opposed to configuration files.
fn machine_warnings(config: &LoadedConfig) -> Vec<ConfigWarningNotification> {
    let set = env::var_os("OPENAI_BASE_URL").is_some_and(|value| !value.is_empty());
    let summary = "The variable OPENAI_BASE_URL is deprecated. Set `openai_base_url` in config.toml instead.";
    let warning = ConfigWarningNotification { summary: summary.into(), details: None, path: None, range: None };
    if set && config.config.openai_base_url.is_none() { vec![warning] } else { Vec::new() }
}
