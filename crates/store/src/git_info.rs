//! Changes that clients made to the git facts of threads. They are kept in a side file, so that clearing a
//! field survives every rebuild of the index; the facts in the rollout stand below them.

use std::path::Path;

use loomd_protocol::GitInfo;
use serde::{Deserialize, Deserializer, Serialize};

use crate::error::Result;
use crate::path::OWN;
use crate::side_file::SideFile;
use crate::{StoredThread, ThreadId};

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

    fn merge(&mut self, later: &Self) {
        for (field, change) in
            [(&mut self.sha, &later.sha), (&mut self.branch, &later.branch), (&mut self.origin_url, &later.origin_url)]
        {
            if change.is_some() {
                field.clone_from(change);
            }
        }
    }
}

/// All changes of all threads.
pub(crate) struct GitPatches(SideFile<GitPatch>);

#[derive(Serialize, Deserialize)]
struct Entry {
    id: ThreadId,
    #[serde(flatten)]
    patch: GitPatch,
}

impl GitPatches {
    pub(crate) fn new(home: &Path) -> Self {
        Self(SideFile::new(home.join(OWN).join("git_info.jsonl"), |line| {
            let entry: Entry = serde_json::from_slice(line).ok()?;
            Some((entry.id, entry.patch))
        }))
    }

    /// Changes each thread's facts as clients asked.
    pub(crate) fn fill(&mut self, threads: &mut [StoredThread]) -> Result<()> {
        let patches = self.0.all()?;
        if patches.is_empty() {
            return Ok(());
        }
        for thread in threads {
            if let Some(patch) = patches.get(&thread.id()) {
                thread.git_info = patch.apply(thread.git_info.take());
            }
        }
        Ok(())
    }

    /// The sum of a thread's changes.
    pub(crate) fn get(&mut self, id: &ThreadId) -> Result<Option<GitPatch>> {
        Ok(self.0.get(id)?.cloned())
    }

    #[cfg(test)]
    fn apply(&mut self, id: &ThreadId, info: Option<GitInfo>) -> Result<Option<GitInfo>> {
        Ok(match self.0.get(id)? {
            Some(patch) => patch.apply(info),
            None => info,
        })
    }

    /// Each line holds the sum of the thread's changes.
    pub(crate) fn add(&mut self, id: ThreadId, change: &GitPatch) -> Result<()> {
        let mut patch = self.get(&id)?.unwrap_or_default();
        patch.merge(change);
        let mut line = serde_json::to_vec(&Entry { id, patch })?;
        line.push(b'\n');
        self.0.append(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cleared_field_stays_cleared_after_a_restart() {
        let home = tempfile::tempdir().unwrap();
        let id = ThreadId::new();
        let stored = Some(GitInfo { sha: Some("old".into()), branch: Some("main".into()), origin_url: None });
        let mut patches = GitPatches::new(home.path());
        assert_eq!(patches.apply(&id, stored.clone()).unwrap(), stored);
        patches.add(id, &GitPatch { sha: Some(Some("new".into())), ..GitPatch::default() }).unwrap();
        patches.add(id, &GitPatch { branch: Some(None), ..GitPatch::default() }).unwrap();
        let want = Some(GitInfo { sha: Some("new".into()), branch: None, origin_url: None });
        assert_eq!(patches.apply(&id, stored.clone()).unwrap(), want);
        let mut patches = GitPatches::new(home.path());
        assert_eq!(patches.apply(&id, stored.clone()).unwrap(), want);
        patches.add(id, &GitPatch { sha: Some(None), ..GitPatch::default() }).unwrap();
        assert_eq!(patches.apply(&id, stored).unwrap(), None);
    }
}
