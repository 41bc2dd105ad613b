//! The suite of [`loomd_store::suite`] on PostgreSQL.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

mod support;

loomd_store::store_suite!(optional support::Database::new());
