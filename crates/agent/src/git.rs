//! What git says about a working directory, for the record of a thread that begins there and for reviews.

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

/// Where a branch and what is checked out parted.
pub(crate) async fn merge_base(cwd: &str, branch: &str) -> Option<String> {
    loomd_git::merge_base(Path::new(cwd), branch, &ConfinedGit::default()).await
}
