//! The net diff of a turn's patches.

use std::path::Path;

use loomd_patch::{Disk, Plan, TurnDiff, diff_base};

/// One per turn, shared by its patches.
#[derive(Default)]
pub(crate) struct NetDiff {
    diff: Option<TurnDiff>,
    shown: String,
}

impl NetDiff {
    /// The diff after a patch; `None` when it has not changed.
    pub fn after(&mut self, plan: &Plan, cwd: &Path) -> Option<String> {
        let diff = self.diff.get_or_insert_with(|| TurnDiff::new(diff_base(cwd, &Disk)));
        diff.note(plan);
        let now = diff.unified(&Disk);
        if now == self.shown {
            return None;
        }
        self.shown.clone_from(&now);
        Some(now)
    }
}
