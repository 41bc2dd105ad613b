//! The client against scripted servers: over a transport of messages, and as small programs.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

mod api;
mod program;
mod reconnect;
mod requests;
mod script;
mod server_requests;
mod turns;
