//! Patches from text to files, on files in memory.

#![allow(clippy::unwrap_used)]

mod applying;
mod grammar;
mod intercepting;
mod memory;
mod planning;
mod properties;
mod swapping;
mod turn_diff;

use std::path::Path;

use loomd_patch::Plan;
use memory::MemoryFiles;

const CWD: &str = "/w";

/// A patch around these hunks.
fn patch(hunks: &str) -> String {
    format!("*** Begin Patch\n{hunks}\n*** End Patch\n")
}

fn plan(files: &MemoryFiles, hunks: &str) -> Plan {
    loomd_patch::prepare(&patch(hunks), Path::new(CWD), files).unwrap_or_else(|error| panic!("{hunks}: {error}"))
}

/// The error for the model about a patch that is not applied.
fn refusal(files: &MemoryFiles, text: &str) -> String {
    match loomd_patch::prepare(text, Path::new(CWD), files) {
        Ok(plan) => panic!("not refused: {plan:?}"),
        Err(refusal) => refusal.to_string(),
    }
}
