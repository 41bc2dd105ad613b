//! The repository of a turn, as a provider is sent it.

use std::collections::BTreeMap;
use std::path::Path;

use loomd_git::Repository;
use loomd_store::rollout::StoredGit;
use serde::Serialize;

/// Repositories by the root of their work tree.
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

/// A remote's address without user name and password, which may be a token.
fn without_password(url: &str) -> String {
    let Some((scheme @ ("http" | "https"), rest)) = url.split_once("://") else { return url.into() };
    let end = rest.find('/').unwrap_or(rest.len());
    let host = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, host)| host);
    format!("{scheme}://{host}{}", &rest[end..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_urls_are_sent_without_their_credentials() {
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
