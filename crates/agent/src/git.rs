//! Facts about the git repository of a working directory, for the `session_meta` of a thread and for reviews.

use std::path::Path;

use loomd_exec::ConfinedGit;
use loomd_store::rollout::StoredGit;

/// `None` outside a repository, and in one without commits.
pub(crate) async fn facts(cwd: &str) -> Option<StoredGit> {
    let facts = loomd_git::facts(Path::new(cwd), &ConfinedGit::default()).await?;
    Some(StoredGit { commit_hash: Some(facts.commit_hash), branch: facts.branch, repository_url: facts.origin_url })
}

pub(crate) async fn is_repository(cwd: &str) -> bool {
    loomd_git::is_repository(Path::new(cwd), &ConfinedGit::default()).await
}

/// The branch that others start from.
pub(crate) async fn default_branch(cwd: &str) -> Option<String> {
    loomd_git::default_branch(Path::new(cwd), &ConfinedGit::default()).await
}

/// The merge base of a branch and `HEAD`.
pub(crate) async fn merge_base(cwd: &str, branch: &str) -> Option<String> {
    loomd_git::merge_base(Path::new(cwd), branch, &ConfinedGit::default()).await
}
