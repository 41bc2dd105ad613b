//! Where a repository is: from a folder in a work tree to the folders that git keeps its data in.

use std::fs;
use std::path::{Path, PathBuf};

/// A work tree and the data behind it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The folder that holds `.git`.
    pub work_tree: PathBuf,
    /// What is this work tree's own: `HEAD`, the index.
    pub git_dir: PathBuf,
    /// What all work trees share: branches, configuration.
    pub common_dir: PathBuf,
}

impl Repository {
    /// The nearest one above, or at, `folder`. Links are not resolved, and nothing is asked about the validity
    /// of what is found.
    pub fn find(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    /// The one whose work tree is exactly this folder.
    pub fn at(work_tree: &Path) -> Option<Self> {
        let dot_git = work_tree.join(".git");
        let metadata = fs::metadata(&dot_git).ok()?;
        let git_dir = if metadata.is_dir() {
            dot_git
        } else {
            // A linked work tree, or a submodule.
            let text = fs::read_to_string(&dot_git).ok()?;
            work_tree.join(text.strip_prefix("gitdir:")?.trim())
        };
        let common_dir = match fs::read_to_string(git_dir.join("commondir")) {
            Ok(text) => git_dir.join(text.trim()),
            Err(_) => git_dir.clone(),
        };
        Some(Self { work_tree: work_tree.into(), git_dir, common_dir })
    }

    /// The main work tree of a linked one, links resolved; else this one. Trust in a repository extends to its
    /// linked work trees.
    pub fn main_work_tree(&self) -> PathBuf {
        let own = || self.work_tree.canonicalize().unwrap_or_else(|_| self.work_tree.clone());
        if self.common_dir == self.git_dir {
            return own();
        }
        match self.common_dir.canonicalize() {
            Ok(common) if common.file_name().is_some_and(|name| name == ".git") => {
                common.parent().map_or_else(own, Path::to_path_buf)
            }
            _ => own(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_nearest_dot_git_counts() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b/c/.git")).unwrap();
        fs::create_dir(root.join("a/.git")).unwrap();
        let found = Repository::find(&root.join("a/b")).unwrap();
        assert_eq!(found.work_tree, root.join("a"));
        assert_eq!(found.git_dir, root.join("a/.git"));
        assert_eq!(Repository::find(&root.join("a/b/c/d")).unwrap().work_tree, root.join("a/b/c"));
    }

    #[test]
    fn a_linked_work_tree_belongs_to_the_main_one() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        put(root.join("main/.git/worktrees/w/commondir"), "../..\n");
        put(root.join("w/.git"), &format!("gitdir: {}\n", root.join("main/.git/worktrees/w").display()));
        let found = Repository::find(&root.join("w")).unwrap();
        assert_eq!(found.git_dir, root.join("main/.git/worktrees/w"));
        assert_eq!(found.main_work_tree(), root.join("main"));
        assert_eq!(Repository::at(&root.join("main")).unwrap().main_work_tree(), root.join("main"));
    }

    #[test]
    fn a_dot_git_that_makes_no_sense_is_none() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path().join("x/.git"), "nonsense");
        assert_eq!(Repository::at(&dir.path().join("x")), None);
    }
}
