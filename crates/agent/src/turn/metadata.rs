//! What a provider is told about a call beside the request itself.

use std::collections::BTreeMap;
use std::path::Path;

use loomd_config::Feature;
use loomd_git::Repository;
use loomd_model::CallHeaders;
use loomd_protocol::{ExperimentalFeatureStage, SandboxPolicy};
use loomd_store::rollout::StoredGit;
use serde::Serialize;

use super::TurnTask;

#[derive(Serialize)]
struct Metadata<'a> {
    session_id: &'a str,
    turn_id: &'a str,
    sandbox: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspaces: Option<&'a Workspaces>,
}

/// Repositories by the folder that they are in.
pub(super) type Workspaces = BTreeMap<String, Workspace>;

#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Workspace {
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    associated_remote_urls: BTreeMap<&'static str, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_git_commit_hash: Option<String>,
}

/// The repository of a turn's folder; `None` outside one, and in one without commits.
pub(super) fn workspaces(cwd: &str, git: Option<&StoredGit>) -> Option<Workspaces> {
    let git = git?;
    let root = Repository::find(Path::new(cwd))?.work_tree;
    let origin = git.repository_url.as_deref().map(|url| ("origin", without_password(url)));
    let workspace = Workspace {
        associated_remote_urls: origin.into_iter().collect(),
        latest_git_commit_hash: git.commit_hash.clone(),
    };
    Some(Workspaces::from([(root.to_string_lossy().into_owned(), workspace)]))
}

/// People put tokens into the addresses of their remotes.
fn without_password(url: &str) -> String {
    let Some((scheme @ ("http" | "https"), rest)) = url.split_once("://") else { return url.into() };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, host)| host);
    format!("{scheme}://{host}{}", &rest[end..])
}

pub(super) fn headers(turn: &TurnTask) -> CallHeaders {
    let metadata = Metadata {
        session_id: &turn.scope.session_id,
        turn_id: &turn.cx.turn_id,
        sandbox: sandbox(&turn.cx.settings.sandbox),
        workspaces: turn.progress.workspaces.as_ref(),
    };
    CallHeaders {
        session_id: turn.scope.session_id.clone(),
        turn_metadata: serde_json::to_string(&metadata).ok(),
        turn_state: turn.progress.turn_state.clone(),
        subagent: turn.scope.subagent.clone(),
        beta_features: beta_features(turn),
    }
}

fn sandbox(policy: &SandboxPolicy) -> &'static str {
    match policy {
        SandboxPolicy::DangerFullAccess => "none",
        SandboxPolicy::ExternalSandbox { .. } => "external",
        _ if cfg!(target_os = "macos") => "seatbelt",
        _ => "seccomp",
    }
}

fn beta_features(turn: &TurnTask) -> Option<String> {
    let features = turn.cx.profile.config.features;
    let enabled = Feature::ALL
        .iter()
        .filter(|feature| feature.stage() == ExperimentalFeatureStage::Beta && features.enabled(**feature));
    let names: Vec<_> = enabled.map(|feature| feature.name()).collect();
    (!names.is_empty()).then(|| names.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_told_without_their_passwords() {
        for (url, told) in [
            ("https://user:token@host.example/a/b.git", "https://host.example/a/b.git"),
            ("https://token@host.example", "https://host.example"),
            ("https://host.example/a@b", "https://host.example/a@b"),
            ("git@host.example:a/b.git", "git@host.example:a/b.git"),
            ("ssh://git@host.example/a", "ssh://git@host.example/a"),
        ] {
            assert_eq!(without_password(url), told);
        }
    }
}
