//! The difference between a work tree and what is pushed of it.

use std::path::{Path, PathBuf};

use crate::Repository;
use crate::program::{ask, ask_line, run};

/// More untracked files than this are no longer a change that somebody looks at; the rest is left out.
const MAX_UNTRACKED: usize = 1_000;

/// A pushed commit and everything that differs from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteDiff {
    pub sha: String,
    pub diff: String,
}

/// Against the nearest pushed commit of the current branch, the default branch, or a remote branch that
/// contains the current commit. `None` outside a repository and without such a commit.
pub async fn diff_to_remote(cwd: &Path) -> Option<RemoteDiff> {
    Repository::find(cwd)?;
    let sha = nearest_pushed(cwd).await?;
    let mut diff = ask(cwd, &["diff", "--no-textconv", "--no-ext-diff", &sha]).await?;
    for file in untracked(cwd).await? {
        // This kind of comparison says by its exit status that there is a difference.
        let arguments =
            ["diff", "--no-textconv", "--no-ext-diff", "--binary", "--no-index", "--", "/dev/null", file.as_str()];
        let output = run(cwd, &arguments).await?;
        diff.push_str(&String::from_utf8_lossy(&output.stdout));
    }
    Some(RemoteDiff { sha, diff })
}

async fn untracked(cwd: &Path) -> Option<Vec<String>> {
    let list = ask(cwd, &["ls-files", "--others", "--exclude-standard", "-z"]).await?;
    Some(list.split('\0').filter(|name| !name.is_empty()).take(MAX_UNTRACKED).map(str::to_owned).collect())
}

async fn nearest_pushed(cwd: &Path) -> Option<String> {
    let remotes = remotes(cwd).await?;
    let mut best: Option<(u64, String)> = None;
    for branch in candidates(cwd, &remotes).await {
        let Some(pushed) = pushed(cwd, &remotes, &branch).await else { continue };
        let range = format!("{pushed}..HEAD");
        let Some(distance) = ask_line(cwd, &["rev-list", "--count", &range]).await else { continue };
        let Ok(distance) = distance.parse::<u64>() else { continue };
        if best.as_ref().is_none_or(|(nearest, _)| distance < *nearest) {
            best = Some((distance, pushed));
        }
    }
    best.map(|(_, sha)| sha)
}

/// `origin` first.
async fn remotes(cwd: &Path) -> Option<Vec<String>> {
    let mut remotes: Vec<String> = ask(cwd, &["remote"]).await?.lines().map(str::to_owned).collect();
    remotes.sort_by_key(|remote| remote != "origin");
    (!remotes.is_empty()).then_some(remotes)
}

/// Branches that may be pushed, the most likely first.
async fn candidates(cwd: &Path, remotes: &[String]) -> Vec<String> {
    let mut branches: Vec<String> = Vec::new();
    let mut add = |branch: Option<String>| {
        if let Some(branch) = branch.filter(|branch| !branch.is_empty() && branch != "HEAD")
            && !branches.contains(&branch)
        {
            branches.push(branch);
        }
    };
    add(ask_line(cwd, &["rev-parse", "--abbrev-ref", "HEAD"]).await);
    add(default_branch(cwd, remotes).await);
    for remote in remotes {
        let folder = format!("refs/remotes/{remote}");
        let list = ask(cwd, &["for-each-ref", "--format=%(refname:short)", "--contains=HEAD", &folder]).await;
        for name in list.unwrap_or_default().lines() {
            add(name.strip_prefix(remote.as_str()).and_then(|name| name.strip_prefix('/')).map(str::to_owned));
        }
    }
    branches
}

/// What the remote's `HEAD` names, else the usual names of a local branch.
async fn default_branch(cwd: &Path, remotes: &[String]) -> Option<String> {
    for remote in remotes {
        let head = format!("refs/remotes/{remote}/HEAD");
        if let Some(name) = ask_line(cwd, &["symbolic-ref", "--quiet", &head]).await
            && let Some(branch) = name.strip_prefix(&format!("refs/remotes/{remote}/"))
        {
            return Some(branch.to_owned());
        }
    }
    for branch in ["main", "master"] {
        let name = format!("refs/heads/{branch}");
        if ask_line(cwd, &["rev-parse", "--verify", "--quiet", &name]).await.is_some() {
            return Some(branch.to_owned());
        }
    }
    None
}

/// The commit that a branch is at on the first remote that has it.
async fn pushed(cwd: &Path, remotes: &[String], branch: &str) -> Option<String> {
    for remote in remotes {
        let name = PathBuf::from("refs/remotes").join(remote).join(branch);
        let name = name.to_str()?;
        if let Some(sha) = ask_line(cwd, &["rev-parse", "--verify", "--quiet", name]).await {
            return Some(sha);
        }
    }
    None
}
