//! The difference between a work tree and its nearest pushed commit.

use std::path::{Path, PathBuf};

use crate::Repository;
use crate::branch::{default_branch_of, remotes};
use crate::program::{Launcher, Program};

/// The options of `git diff`. Of submodules only the commits are compared: looking into one would run git on a
/// repository whose configuration was not checked.
const OPTIONS: [&str; 5] = ["diff", "--no-textconv", "--no-ext-diff", "--submodule=short", "--ignore-submodules=dirty"];

/// Number of untracked files that are included.
const MAX_UNTRACKED: usize = 1_000;

/// Largest diff that is returned.
const MAX_DIFF: usize = 64 << 20;

/// A pushed commit and the diff of the work tree against it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDiff {
    pub sha: String,
    pub diff: String,
}

/// The diff against the nearest pushed commit of the current branch, the default branch, or a remote branch that
/// contains the current commit. `None` outside a repository and without such a commit.
pub async fn diff_to_remote(cwd: &Path, launcher: &impl Launcher) -> Option<RemoteDiff> {
    let repository = Repository::find(cwd)?;
    let git = &Program::new(launcher, &repository, cwd).without_filters().await?;
    let sha = nearest_pushed(git).await?;
    let mut diff = git.output(&[&OPTIONS[..], &[&sha, "--"]].concat()).await?;
    for file in untracked(git).await? {
        let answer = git.run(&[&OPTIONS[..], &["--binary", "--no-index", "--", "/dev/null", &file]].concat()).await?;
        // `git diff --no-index` exits with 1 if there are differences.
        if !matches!(answer.code, 0 | 1) {
            return None;
        }
        diff.push_str(&String::from_utf8_lossy(&answer.stdout));
        if diff.len() > MAX_DIFF {
            return None;
        }
    }
    Some(RemoteDiff { sha, diff })
}

async fn untracked<L: Launcher>(git: &Program<'_, L>) -> Option<Vec<String>> {
    let list = git.output(&["ls-files", "--others", "--exclude-standard", "-z"]).await?;
    Some(list.split('\0').filter(|name| !name.is_empty()).take(MAX_UNTRACKED).map(str::to_owned).collect())
}

async fn nearest_pushed<L: Launcher>(git: &Program<'_, L>) -> Option<String> {
    let remotes = remotes(git).await;
    if remotes.is_empty() {
        return None;
    }
    let mut best: Option<(u64, String)> = None;
    for branch in candidates(git, &remotes).await {
        let Some(pushed) = pushed(git, &remotes, &branch).await else { continue };
        let range = format!("{pushed}..HEAD");
        let Some(distance) = git.first_line(&["rev-list", "--count", &range]).await else { continue };
        let Ok(distance) = distance.parse::<u64>() else { continue };
        if best.as_ref().is_none_or(|(nearest, _)| distance < *nearest) {
            best = Some((distance, pushed));
        }
    }
    best.map(|(_, sha)| sha)
}

/// Branches that may be pushed, the most likely first.
async fn candidates<L: Launcher>(git: &Program<'_, L>, remotes: &[String]) -> Vec<String> {
    let mut branches: Vec<String> = Vec::new();
    let mut add = |branch: Option<String>| {
        if let Some(branch) = branch.filter(|branch| !branch.is_empty() && branch != "HEAD")
            && !branches.contains(&branch)
        {
            branches.push(branch);
        }
    };
    add(git.first_line(&["rev-parse", "--abbrev-ref", "HEAD"]).await);
    add(default_branch_of(git, remotes).await);
    for remote in remotes {
        let folder = format!("refs/remotes/{remote}");
        let list = git.output(&["for-each-ref", "--format=%(refname:short)", "--contains=HEAD", &folder]).await;
        for name in list.unwrap_or_default().lines() {
            add(name.strip_prefix(remote.as_str()).and_then(|name| name.strip_prefix('/')).map(str::to_owned));
        }
    }
    branches
}

/// The commit of a branch on the first remote that has it.
async fn pushed<L: Launcher>(git: &Program<'_, L>, remotes: &[String], branch: &str) -> Option<String> {
    for remote in remotes {
        let name = PathBuf::from("refs/remotes").join(remote).join(branch);
        let name = name.to_str()?;
        if let Some(sha) = git.first_line(&["rev-parse", "--verify", "--quiet", name]).await {
            return Some(sha);
        }
    }
    None
}
