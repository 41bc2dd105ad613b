//! Starts and drives servers in tests, with a scripted model provider.
//!
//! [`Launch`] starts the program under test on a [`Home`] of its own and returns a [`Server`] (stdio) or a
//! [`WsServer`]; both are driven through a [`Peer`]. [`ScriptedModel`] is the provider in the home's configuration.
//! For tests only: failures panic with what was expected, and every wait ends after [`TIMEOUT`].
//!
//! ```no_run
//! # async fn example() {
//! use loomd_testkit::model::{message, shell};
//! use loomd_testkit::{Home, Launch, ScriptedModel};
//!
//! let model = ScriptedModel::start().await;
//! model.reply(shell("echo hi")).reply(message("done"));
//! let home = Home::new(&model).with(r#"sandbox_mode = "danger-full-access""#);
//! let server = Launch::new("loomd").args(["app-server"]).stdio(&home);
//! server.initialize().await;
//! let thread = server.start_thread(Default::default()).await;
//! server.run_turn(&thread.id, "say hi").await;
//! assert_eq!(model.call(0).await.user_texts().last(), Some(&"say hi"));
//! # }
//! ```

mod capture;
mod cluster;
mod collector;
mod flow;
mod gate;
mod home;
mod http;
mod inbox;
mod issuer;
mod launch;
mod link;
pub mod model;
mod outgoing;
mod peer;
mod postgres;
mod process;
mod reference;
#[cfg(target_os = "linux")]
pub mod soak;
mod stdio;
mod task;
mod terminal_screen;
mod tls;
mod watched_value;
mod ws;

use std::time::Duration;

pub use capture::CapturedOutput;
pub use cluster::{Cluster, ClusterNode, Database};
pub use collector::{Collector, Posted};
pub use gate::Gate;
pub use home::Home;
pub use http::{Headers, HttpReply};
pub use issuer::{Issuer, IssuerRequest, WELL_KNOWN};
pub use launch::Launch;
pub use link::Link;
pub use model::ScriptedModel;
pub use peer::Peer;
pub use postgres::Postgres;
pub use process::{Process, Signal};
pub use reference::reference;
pub use stdio::Server;
pub use terminal_screen::TerminalScreen;
pub use tls::Tls;
pub use ws::{Frame, RawWebSocket, Stream, WsConnection, WsServer};

/// How long a test waits for anything before it fails.
pub const TIMEOUT: Duration = Duration::from_secs(60);
