//! Servers as they should be, and as they should not.

#![allow(clippy::unwrap_used)]

mod hostile;
mod http;
mod sharing;
mod support;
