//! A proxy, for HTTP and SOCKS5, that lets programs reach only what they may: what a [`Policy`] lists, and what a
//! [`Decider`] allows when it is asked. It does not know what a turn is, or who the programs are; callers bring the
//! listeners that only those can reach.
//!
//! A name is looked up once, and what is connected to is what was checked. Everything that a [`Proxy`] serves ends
//! when its future is dropped.

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
