//! A client of the app-server protocol, from a single turn to every request of the protocol.
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
//! * **Where the server is**: an [`Endpoint`]. A program to spawn, a websocket (plain or TLS, with a bearer token), a
//!   unix socket, a server in the same process (feature `in-process`), or a custom [`Transport`]. Any server of the
//!   protocol works.
//! * **Requests**: [`Client`] has a method for every request of the protocol, and shorter ones for common uses.
//!   [`Thread`] and [`Turn`] are handles that hold their ids.
//! * **Events**: [`Events`] is a stream of all events, of a thread's or of a turn's. [`CompletedTurn`] is the result
//!   of a turn.
//! * **Server requests**: a [`Handler`] answers approvals, tool calls and questions. The default declines all of
//!   them.
//! * **Errors**: [`Error`]. A request that the server refused as overloaded is retried, a lost connection is made
//!   again if [`Options::reconnect`] is set, and every wait has a timeout.
//!
//! [`names`] maps the names of a TypeScript client of this protocol to the ones here.
//!
//! # How it works
//!
//! A connection has two tasks: one reads and never waits for a subscriber, one writes. Responses complete pending
//! requests; notifications go to the bounded queue of each subscriber; each server request runs in a task of its own.
//! Bytes that are no message are logged and skipped. A method or an item that this release does not know becomes
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
mod positions;
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
