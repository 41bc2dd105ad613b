//! What git says about a working directory, for the record of a thread that begins there.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use loomd_store::rollout::StoredGit;
use tokio::process::Command;
use tokio::time::timeout;

/// How long git may take for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// `None` outside a repository, and in one without commits.
pub(crate) async fn facts(cwd: &str) -> Option<StoredGit> {
    let facts = loomd_git::facts(Path::new(cwd)).await?;
    Some(StoredGit { commit_hash: Some(facts.commit_hash), branch: facts.branch, repository_url: facts.origin_url })
}

pub(crate) async fn is_repository(cwd: &str) -> bool {
    ask(cwd, &["rev-parse", "--git-dir"]).await.is_some()
}

/// Where a branch and what is checked out parted.
pub(crate) async fn merge_base(cwd: &str, branch: &str) -> Option<String> {
    ask(cwd, &["merge-base", "HEAD", "--end-of-options", branch]).await
}

async fn ask(cwd: &str, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    git.args(arguments).current_dir(cwd).env("GIT_OPTIONAL_LOCKS", "0").stdin(Stdio::null()).kill_on_drop(true);
    let output = timeout(PATIENCE, git.output()).await.ok()?.ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && !text.is_empty()).then_some(text)
}
