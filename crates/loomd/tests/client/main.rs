//! The client library against real servers: this program, and the reference where its program is there
//! (`LOOMD_REFERENCE` names it).

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod connecting;
mod proxy;
mod servers;
mod threads;
mod turns;
