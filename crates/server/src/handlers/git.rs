//! `gitDiffToRemote`, of the first protocol generation.

use std::path::PathBuf;

use loomd_exec::ConfinedGit;
use loomd_protocol::{GitDiffToRemoteParams, GitDiffToRemoteResponse, RpcError, call};

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `gitDiffToRemote`
pub(crate) async fn diff_to_remote(_: &Context, params: GitDiffToRemoteParams) -> Handled<call::GitDiffToRemote> {
    let cwd = PathBuf::from(params.cwd);
    match loomd_git::diff_to_remote(&cwd, &ConfinedGit::default()).await {
        Some(found) => answer(GitDiffToRemoteResponse { sha: found.sha, diff: found.diff }),
        None => Err(RpcError::invalid_request(format!("failed to compute git diff to remote for cwd: {cwd:?}"))),
    }
}
