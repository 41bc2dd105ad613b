//! The built program as its clients and its operators meet it: started, spoken to, ended.
//!
//! What a process holds is read from `/proc`, so these tests run on Linux.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod bad_input;
mod cli;
mod commands;
mod common;
mod crash;
mod every_method;
mod fuzz_lines;
mod generate;
mod interchange;
mod leaks;
mod logging;
mod memory;
mod pipelining;
mod read_only;
mod signals;
mod threads;
mod unix_socket;
mod websocket;
mod workspace;
