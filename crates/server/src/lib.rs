//! The app-server: transports, connections, dispatch, fan-out, shutdown.
//!
//! A request comes in through a [`transport`], is decoded and gated by its connection
//! ([`connection`]), and is answered by a plain function in [`handlers`] that [`dispatch`] picks.
//! What an agent does is in `loomd_agent`.

mod answer;
mod app;
mod apps;
pub mod auth;
mod clients;
mod cloud;
mod connection;
mod connections;
mod context;
mod decisions;
mod dispatch;
mod encoded_request;
mod events;
mod figures;
mod files;
mod handlers;
mod identity;
mod in_flight;
mod level;
mod limits;
mod link;
pub mod listen;
mod nodes;
mod observer;
mod outbound;
mod plugins;
mod processes;
mod refusals;
mod requests;
mod routing;
mod samples;
mod search;
mod server_requests;
mod shutdown;
mod throttle;
mod transport;
mod upstream;

pub use app::{App, SharedThreads};
pub use figures::start_metrics;
pub use level::reported_version;
pub use listen::ListenUrl;
pub use loomd_agent::{Replay, ledger, replay};
pub use loomd_config::{ConfigSources, LiveSources};
pub use loomd_exec::run_if_helper;
pub use loomd_telemetry::{Settings as TelemetrySettings, SettingsError as TelemetryError, Telemetry};
pub use nodes::{BadToken, NodeOptions, NodeToken};
pub use transport::{
    CONTROL_SOCKET, ConsoleRequest, ServeError, Upstream, UpstreamAddress, serve, serve_attached, serve_in_process,
    serve_on,
};
