//! Exports to a collector on the loopback interface, which decodes what it gets.

#![allow(clippy::unwrap_used)]

mod decode;
mod exports;
mod settings;
mod started;
