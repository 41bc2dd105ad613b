//! [`Repository`]: the work tree of a folder and git's data folders. Their files may have been written by anyone, so
//! they prove nothing about the repository that they point at.

use std::fs;
use std::path::{Path, PathBuf};

/// Largest file that holds one path or one reference.
pub(crate) const MAX_LINE_BYTES: u64 = 64 << 10;

/// A work tree and its data folders.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repository {
    /// The folder that contains `.git`.
    pub work_tree: PathBuf,
    /// The data of this work tree: `HEAD`, the index.
    pub git_dir: PathBuf,
    /// The data shared by all work trees: branches, configuration.
    pub common_dir: PathBuf,
}

impl Repository {
    /// The nearest repository at or above `folder`. Links are not resolved, and its validity is not checked.
    pub fn find(folder: &Path) -> Option<Self> {
        folder.ancestors().find_map(Self::at)
    }

    /// The repository whose work tree is exactly this folder.
    pub fn at(work_tree: &Path) -> Option<Self> {
        let dot_git = work_tree.join(".git");
        let metadata = fs::metadata(&dot_git).ok()?;
        let git_dir = if metadata.is_dir() {
            dot_git
        } else {
            // A linked work tree, or a submodule.
            let text = loomd_regular::read_to_string(&dot_git, MAX_LINE_BYTES).ok()?;
            work_tree.join(text.strip_prefix("gitdir:")?.trim())
        };
        let common_dir = match loomd_regular::read_to_string(&git_dir.join("commondir"), MAX_LINE_BYTES) {
            Ok(text) => git_dir.join(text.trim()),
            Err(_) => git_dir.clone(),
        };
        Some(Self { work_tree: work_tree.into(), git_dir, common_dir })
    }

    /// The main work tree of a linked one, with links resolved; otherwise this one. Trust in a repository extends to
    /// its linked work trees, so the main repository must list this work tree: anyone can write a `.git` that points
    /// at a repository, but only its owner can write into it. Submodules, their work trees and those of bare
    /// repositories count as their own main work tree.
    pub fn main_work_tree(&self) -> PathBuf {
        self.confirmed_main().unwrap_or_else(|| self.real_work_tree().unwrap_or_else(|| self.work_tree.clone()))
    }

    /// This work tree, with links resolved.
    pub fn real_work_tree(&self) -> Option<PathBuf> {
        self.work_tree.canonicalize().ok()
    }

    /// The main work tree, if its repository lists this work tree under `worktrees/`.
    fn confirmed_main(&self) -> Option<PathBuf> {
        let common_dir = self.common_dir.canonicalize().ok()?;
        let git_dir = self.git_dir.canonicalize().ok()?;
        let is_linked = git_dir.parent()? == common_dir.join("worktrees");
        let has_main = common_dir.file_name()? == ".git";
        if !is_linked || !has_main {
            return None;
        }
        let text = loomd_regular::read_to_string(&git_dir.join("gitdir"), MAX_LINE_BYTES).ok()?;
        let dot_git = git_dir.join(text.trim());
        // Only the folder is resolved: a `.git` that is a link to another work tree's is no work tree of its own.
        let named = dot_git.parent()?.canonicalize().ok()?;
        let agrees = dot_git.file_name()? == ".git" && named == self.real_work_tree()?;
        agrees.then(|| common_dir.parent().map(Path::to_path_buf)).flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn put(path: PathBuf, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn the_nearest_dot_git_is_used() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        fs::create_dir_all(root.join("a/b/c/.git")).unwrap();
        fs::create_dir(root.join("a/.git")).unwrap();
        let found = Repository::find(&root.join("a/b")).unwrap();
        assert_eq!(found.work_tree, root.join("a"));
        assert_eq!(found.git_dir, root.join("a/.git"));
        assert_eq!(Repository::find(&root.join("a/b/c/d")).unwrap().work_tree, root.join("a/b/c"));
    }

    /// A repository `main` with a linked work tree `w`, as git creates them.
    fn linked() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let data = root.join("main/.git/worktrees/w");
        put(data.join("commondir"), "../..\n");
        put(data.join("gitdir"), &format!("{}\n", root.join("w/.git").display()));
        put(root.join("w/.git"), &format!("gitdir: {}\n", data.display()));
        (dir, root)
    }

    fn main_of(folder: PathBuf) -> PathBuf {
        Repository::at(&folder).unwrap().main_work_tree()
    }

    #[test]
    fn a_linked_work_tree_belongs_to_the_main_one() {
        let (_dir, root) = linked();
        let found = Repository::find(&root.join("w")).unwrap();
        assert_eq!(found.git_dir, root.join("main/.git/worktrees/w"));
        assert_eq!(found.main_work_tree(), root.join("main"));
        assert_eq!(main_of(root.join("main")), root.join("main"));
        // Since git 2.48 both links may be relative.
        put(root.join("main/.git/worktrees/w/gitdir"), "../../../../w/.git\n");
        put(root.join("w/.git"), "gitdir: ../main/.git/worktrees/w\n");
        assert_eq!(main_of(root.join("w")), root.join("main"));
        symlink(root.join("w"), root.join("alias")).unwrap();
        assert_eq!(main_of(root.join("alias")), root.join("main"), "it is the same folder");
    }

    #[test]
    fn a_repository_that_does_not_list_the_work_tree_is_not_its_main_one() {
        let (_dir, root) = linked();
        let main = root.join("main/.git");
        // A folder whose data claims to be shared.
        put(root.join("a/.git/commondir"), main.to_str().unwrap());
        // The same with a forged back link of its own, and with a forged location.
        put(root.join("b/.git/commondir"), main.to_str().unwrap());
        put(root.join("b/.git/gitdir"), root.join("b/.git").to_str().unwrap());
        put(root.join("c/data/worktrees/x/commondir"), main.to_str().unwrap());
        put(root.join("c/data/worktrees/x/gitdir"), root.join("c/.git").to_str().unwrap());
        put(root.join("c/.git"), "gitdir: data/worktrees/x");
        // The data of a work tree elsewhere, by its name and by links.
        put(root.join("d/.git"), &format!("gitdir: {}", main.join("worktrees/w").display()));
        for (name, target) in [("e", main.join("worktrees/w")), ("f", root.join("w/.git")), ("g", main.clone())] {
            fs::create_dir(root.join(name)).unwrap();
            symlink(target, root.join(name).join(".git")).unwrap();
        }
        for name in ["a", "b", "c", "d", "e", "f", "g"] {
            assert_eq!(main_of(root.join(name)), root.join(name));
        }
    }

    #[test]
    fn submodules_and_work_trees_of_bare_repositories_are_their_own_main() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        put(root.join("main/.git/modules/sub/HEAD"), "");
        put(root.join("main/sub/.git"), "gitdir: ../.git/modules/sub");
        assert_eq!(main_of(root.join("main/sub")), root.join("main/sub"));
        for (common, tree) in [("bare.git", "w"), ("main/.git/modules/sub", "v")] {
            let data = root.join(common).join("worktrees/x");
            put(data.join("commondir"), "../..");
            put(data.join("gitdir"), root.join(tree).join(".git").to_str().unwrap());
            put(root.join(tree).join(".git"), &format!("gitdir: {}", data.display()));
            assert_eq!(main_of(root.join(tree)), root.join(tree));
        }
    }

    #[test]
    fn blocking_and_oversized_files_are_not_read() {
        let dir = tempfile::tempdir().unwrap();
        let fifo = |path: PathBuf| {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
        };
        fifo(dir.path().join("a/.git"));
        assert_eq!(Repository::at(&dir.path().join("a")), None);
        fifo(dir.path().join("b/.git/commondir"));
        let found = Repository::at(&dir.path().join("b")).unwrap();
        assert_eq!(found.common_dir, found.git_dir);
        put(dir.path().join("c/.git"), "");
        fs::File::options().write(true).open(dir.path().join("c/.git")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(Repository::at(&dir.path().join("c")), None);
    }

    #[test]
    fn an_invalid_dot_git_is_none() {
        let dir = tempfile::tempdir().unwrap();
        put(dir.path().join("x/.git"), "nonsense");
        assert_eq!(Repository::at(&dir.path().join("x")), None);
    }
}
