//! A client of the app-server protocol: from one question to an agent, to everything that the protocol can say.
//!
//! ```no_run
//! # async fn example() -> Result<(), loomd_client::Error> {
//! use loomd_client::{Client, Endpoint, Options};
//!
//! let client = Client::connect(Endpoint::spawn("loomd"), Options::new("my-program", "1.0")).await?;
//! let thread = client.start_thread(Default::default()).await?;
//! let done = thread.run("What does this project do?").await?;
//! println!("{}", done.agent_message.unwrap_or_default());
//! client.close().await;
//! # Ok(())
//! # }
//! ```
//!
//! * **Where the server is**: an [`Endpoint`]. A program to start, a websocket (plain or with TLS, with a bearer token), a
//!   unix socket, the same process (feature `in-process`), or a [`Transport`] of one's own. Any server of the protocol will do.
//! * **What can be asked**: [`Client`] has a method for every request, and shorter ones for what most programs want. A
//!   [`Thread`] and a [`Turn`] remember their ids.
//! * **What happens**: [`Events`], for everything, a thread or a turn; or all of a turn at its end, as a
//!   [`CompletedTurn`].
//! * **What the server asks**: a [`Handler`] answers. Without one, everything is refused.
//! * **What goes wrong**: an [`Error`] says so. A server that is busy is asked again, one that is gone is connected to
//!   again where [`Options::reconnect`] says so, and nothing is waited for without an end.
//!
//! Whoever knows another client library of this protocol finds its names in [`names`].
//!
//! # How it works
//!
//! Two tasks carry a connection: one takes in what comes and never waits for anybody, one writes. DynHandler go to those
//! who asked; notifications go to the queues of all who listen, each bounded; requests of the server get a task each.
//! What is no message is logged and skipped. What a newer server says in new words is passed on as
//! [`EventKind::Other`], and never keeps a turn from ending.

mod api;
mod client;
mod collect;
mod endpoint;
mod error;
mod event;
mod events;
pub mod handler;
mod hub;
mod input;
mod lenient;
mod link;
mod methods;
mod server_requests;
#[doc = include_str!("../NAMES.md")]
pub mod names {}
mod options;
mod reconnect;
mod review;
mod thread;
mod transport;
mod turn;

pub use client::Client;
pub use collect::CompletedTurn;
pub use endpoint::{Custom, Endpoint, Program, Websocket};
pub use error::{ConnectError, Error};
pub use event::{Event, EventKind};
pub use events::{Events, Filter};
pub use handler::{AcceptAll, DeclineAll, Handler};
pub use input::Input;
/// Every message of the protocol as a type.
pub use loomd_protocol as protocol;
/// The server of the feature `in-process`.
#[cfg(feature = "in-process")]
pub use loomd_server as server;
pub use options::{Backoff, Options, ThreadDefaults};
pub use review::{CompletedReview, Review};
pub use thread::{Settings, Thread, fork, resume};
pub use transport::{Disconnect, Transport};
pub use turn::Turn;
