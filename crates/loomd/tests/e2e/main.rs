//! The built program as its clients and operators use it.
//!
//! Process state is read from `/proc`, so these tests run on Linux.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod accounts;
mod approvals;
mod audit;
mod bad_input;
mod blocking_files;
mod cli;
mod clients;
mod command_exec;
mod commands;
mod common;
mod console;
mod crash;
mod crash_turns;
mod documents;
mod events;
mod every_method;
mod faults;
mod fuzz_lines;
mod generate;
mod idempotency;
mod idle_work;
mod interchange;
mod leaks;
mod links;
mod listeners;
mod logging;
mod mcp;
mod mcp_sharing;
mod memory;
mod network;
mod ordering;
mod pipelining;
mod private_home;
mod published_servers;
mod read_only;
mod realtime;
mod recovery;
mod rehearsal;
mod replay;
mod reviews;
mod schemas;
mod signals;
mod skills;
mod socket_activation;
#[cfg(feature = "postgres")]
mod store;
mod stored_approvals;
mod telemetry;
mod threads;
mod two_servers;
mod unix_socket;
mod usage;
mod websocket;
mod workspace;
