//! The client library, and the adapter on top of it, against real servers: this program, and the reference if it is installed (`LOOMD_REFERENCE`
//! names it, or `cargo xtask bench` has installed it).

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod adapter;
mod connecting;
mod proxy;
mod rehearsal;
mod servers;
mod threads;
mod turns;
