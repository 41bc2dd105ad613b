//! The git facts that clients changed, in a side file: clearing a field survives every rebuild of the index.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::file::side_file::SideFile;
use crate::path::OWN;
use crate::{GitPatch, StoredThread, ThreadId};

/// The changes of all threads.
pub(crate) struct GitPatches(SideFile<GitPatch>);

#[derive(Serialize, Deserialize)]
struct PatchLine {
    id: ThreadId,
    #[serde(flatten)]
    patch: GitPatch,
}

impl GitPatches {
    pub(crate) fn new(home: &Path) -> Self {
        Self(SideFile::new(home.join(OWN).join("git_info.jsonl"), |bytes| {
            let line: PatchLine = serde_json::from_slice(bytes).ok()?;
            Some((line.id, line.patch))
        }))
    }

    /// Applies the changes to each thread's facts.
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
    fn apply(
        &mut self,
        id: &ThreadId,
        info: Option<loomd_protocol::GitInfo>,
    ) -> Result<Option<loomd_protocol::GitInfo>> {
        Ok(match self.0.get(id)? {
            Some(patch) => patch.apply(info),
            None => info,
        })
    }

    /// Each line holds the sum of the thread's changes.
    pub(crate) fn add(&mut self, id: ThreadId, change: &GitPatch) -> Result<()> {
        let mut patch = self.get(&id)?.unwrap_or_default();
        patch.merge(change);
        let mut line = serde_json::to_vec(&PatchLine { id, patch })?;
        line.push(b'\n');
        self.0.append(line)
    }
}

#[cfg(test)]
mod tests {
    use loomd_protocol::GitInfo;

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
