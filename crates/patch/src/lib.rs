//! Patches: the text format in which models write edits. Parses them, plans and applies the changes, and renders
//! diffs. Uses no process and no network, and reaches files only through [`Files`] and [`FilesMut`]; whether a change
//! is allowed is decided by the caller.
//!
//! Start with [`prepare`], which turns a text into a [`Plan`] that can be shown, checked and applied.

mod apply;
mod diff;
mod disk;
mod files;
mod intercept;
mod lines;
mod parse;
mod path_at;
mod plan;
mod print;
mod turn_diff;

use std::path::Path;

pub use apply::{ApplyError, Step};
pub use disk::Disk;
pub use files::{File, Files, FilesMut, MAX_FILE_BYTES};
pub use intercept::{Interception, intercept};
pub use parse::{Chunk, Hunk, HunkError, Line, ParseError, Patch, parse};
pub use plan::{Plan, PlanError, TouchedPath, plan};
pub use turn_diff::{TurnDiff, diff_base};

/// The grammar for models with a freeform patch tool, in Lark's syntax. The parser accepts more than this.
pub const GRAMMAR: &str = include_str!("apply_patch.lark");

/// Parses a patch and plans its changes. Changes nothing.
pub fn prepare(text: &str, cwd: &Path, files: &dyn Files) -> Result<Plan, Refusal> {
    let patch = parse(text)?;
    if patch.hunks.is_empty() {
        return Err(Refusal::Empty);
    }
    Ok(plan(&patch, cwd, files)?)
}

/// Why a patch is not applied. The text is for the model.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("apply_patch verification failed: {0}")]
    Parse(#[from] ParseError),
    #[error("apply_patch verification failed: {0}")]
    Plan(#[from] PlanError),
    #[error("patch rejected: empty patch")]
    Empty,
    /// A patch was passed to a shell as a script.
    #[error(
        "apply_patch verification failed: patch detected without explicit call to apply_patch. Rerun as \
         [\"apply_patch\", \"<patch>\"]"
    )]
    NotCalled,
}
