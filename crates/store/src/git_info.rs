//! Changes that clients made to the git facts of threads. They stand above the facts in a thread's records.

use loomd_protocol::GitInfo;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Result;

/// A change of git facts. Outer `None`: keep; `Some(None)`: clear; `Some(Some(_))`: set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct GitPatch {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub sha: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub branch: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "nullable")]
    pub origin_url: Option<Option<String>>,
}

fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(deserializer).map(Some)
}

impl GitPatch {
    /// The facts after the change; `None` when nothing is known any more.
    pub fn apply(&self, info: Option<GitInfo>) -> Option<GitInfo> {
        let (sha, branch, origin_url) =
            info.map_or((None, None, None), |info| (info.sha, info.branch, info.origin_url));
        let info = GitInfo {
            sha: self.sha.clone().unwrap_or(sha),
            branch: self.branch.clone().unwrap_or(branch),
            origin_url: self.origin_url.clone().unwrap_or(origin_url),
        };
        (info.sha.is_some() || info.branch.is_some() || info.origin_url.is_some()).then_some(info)
    }

    /// Adds a later change.
    pub fn merge(&mut self, later: &Self) {
        for (field, change) in
            [(&mut self.sha, &later.sha), (&mut self.branch, &later.branch), (&mut self.origin_url, &later.origin_url)]
        {
            if change.is_some() {
                field.clone_from(change);
            }
        }
    }
}
