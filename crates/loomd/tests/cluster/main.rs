//! Several nodes on one PostgreSQL, as their clients see them: what happens on one is seen on the others, and goes on
//! when a node, the database or the network fails. Skipped where PostgreSQL is not installed. `cargo xtask chaos` does
//! the same at random, for as long as one likes.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod access;
mod common;
mod database;
mod drain;
mod kills;
mod packaging;
mod pauses;
mod watching;
