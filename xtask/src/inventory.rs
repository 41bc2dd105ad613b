//! `cargo xtask inventory`: records the inventory of a release of the protocol, with which a test compares the types.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, Result};
use loomd_protocol::schema::inventory::{inventory, render};

pub fn record(version: &str, stable: &str, experimental: &str) -> Result<()> {
    let text = render(&read(stable)?, &read(experimental)?);
    let path = crate::root().join(format!("crates/protocol/inventory/{version}.txt"));
    fs::write(&path, text).with_context(|| path.display().to_string())
}

fn read(path: &str) -> Result<BTreeSet<String>> {
    let text = fs::read_to_string(path).with_context(|| path.to_owned())?;
    Ok(inventory(&serde_json::from_str(&text).with_context(|| path.to_owned())?))
}
