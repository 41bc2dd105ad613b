//! Branches: the default one, and relations between a branch and the current commit.

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

/// The branch that others start from: the one that a remote's `HEAD` names, or else `main` or `master`. `None` outside a
/// repository and without such a branch.
pub async fn default_branch(folder: &Path, launcher: &impl Launcher) -> Option<String> {
    let repository = Repository::find(folder)?;
    let git = Program::new(launcher, &repository, folder);
    let remotes = remotes(&git).await;
    default_branch_of(&git, &remotes).await
}

/// The remotes, `origin` first.
pub(crate) async fn remotes<L: Launcher>(git: &Program<'_, L>) -> Vec<String> {
    let names = git.output(&["remote"]).await.unwrap_or_default();
    let mut remotes: Vec<String> = names.lines().map(str::to_owned).collect();
    remotes.sort_by_key(|remote| remote != "origin");
    remotes
}

/// The branch that the remote's `HEAD` names, or else a local branch with a usual name.
pub(crate) async fn default_branch_of<L: Launcher>(git: &Program<'_, L>, remotes: &[String]) -> Option<String> {
    for remote in remotes {
        let head = format!("refs/remotes/{remote}/HEAD");
        if let Some(name) = git.first_line(&["symbolic-ref", "--quiet", &head]).await
            && let Some(branch) = name.strip_prefix(&format!("refs/remotes/{remote}/"))
        {
            return Some(branch.to_owned());
        }
    }
    for branch in ["main", "master"] {
        let name = format!("refs/heads/{branch}");
        if git.first_line(&["rev-parse", "--verify", "--quiet", &name]).await.is_some() {
            return Some(branch.to_owned());
        }
    }
    None
}
