//! Relations between a branch and the current commit.

use std::path::Path;

use crate::Repository;
use crate::program::{Launcher, Program};

/// Whether git considers a folder part of a repository.
pub async fn is_repository(folder: &Path, launcher: &impl Launcher) -> bool {
    let Some(repository) = Repository::find(folder) else { return false };
    Program::new(launcher, &repository, folder).first_line(&["rev-parse", "--git-dir"]).await.is_some()
}

/// The merge base of a branch and the current commit.
pub async fn merge_base(folder: &Path, branch: &str, launcher: &impl Launcher) -> Option<String> {
    let repository = Repository::find(folder)?;
    let program = Program::new(launcher, &repository, folder);
    program.first_line(&["merge-base", "HEAD", "--end-of-options", branch]).await
}
