//! An HTTP and SOCKS5 proxy that lets programs reach only the hosts that a [`Policy`] lists or a [`Decider`] allows.
//! Independent of turns and sandboxes: callers pass listeners that only those programs can reach.
//!
//! A name is resolved once, and connections go to the address that was checked. All connections of a [`Proxy`] end when
//! its future is dropped.

mod domains;
mod gate;
mod host;
mod http;
mod local;
mod policy;
mod serve;
mod socks;
mod variables;

pub use domains::{Domains, PatternError};
pub use gate::{BlockReason, Decider, DecisionFuture, Protocol, Request, ResolveFuture, Resolver};
pub use host::{Host, HostError};
pub use policy::{Mode, Policy};
pub use serve::Proxy;
pub use variables::variables;
