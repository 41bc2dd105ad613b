//! Patches: the text form in which models write edits. Parsing one, working out what it would change,
//! applying that, and showing it as diffs. Knows no process and no network, and reaches files only through
//! [`Files`] and [`FilesMut`]; whether a change is allowed is decided by the caller.
//!
//! Where to start: [`prepare`] goes from a text to a [`Plan`]; a plan can be shown, checked and applied.

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

/// The grammar that a model with a freeform patch tool is held to, in Lark's syntax. The parser takes more
/// than this.
pub const GRAMMAR: &str = include_str!("apply_patch.lark");

/// From a patch's text to what it would change. Nothing is changed yet.
pub fn prepare(text: &str, cwd: &Path, files: &dyn Files) -> Result<Plan, Refusal> {
    let patch = parse(text)?;
    if patch.hunks.is_empty() {
        return Err(Refusal::Empty);
    }
    Ok(plan(&patch, cwd, files)?)
}

/// Why a patch is not tried, in the words that the model gets.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error("apply_patch verification failed: {0}")]
    Parse(#[from] ParseError),
    #[error("apply_patch verification failed: {0}")]
    Plan(#[from] PlanError),
    #[error("patch rejected: empty patch")]
    Empty,
    /// A patch was given to a shell as if it were a script.
    #[error(
        "apply_patch verification failed: patch detected without explicit call to apply_patch. Rerun as \
         [\"apply_patch\", \"<patch>\"]"
    )]
    NotCalled,
}
