//! The folders below a root, and the `SKILL.md` files in them.

use std::collections::{HashSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

/// The name of the file that makes a folder a skill.
pub(crate) const SKILL_FILE: &str = "SKILL.md";

/// Levels of folders below the root.
const MAX_DEPTH: usize = 6;
/// Folders per root.
const MAX_FOLDERS: usize = 2000;
/// Entries of one folder that are looked at.
const MAX_ENTRIES: usize = 10_000;

/// What is below a root, with symlinks resolved.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Walked {
    /// The root itself included.
    pub folders: Vec<PathBuf>,
    pub skill_files: Vec<PathBuf>,
}

/// Walks a root breadth first. Hidden folders are skipped; links to folders are followed if `follow_links`, links to
/// files never. What cannot be read is empty.
pub(crate) fn walk(root: &Path, follow_links: bool) -> Walked {
    let mut walked = Walked::default();
    let Ok(root) = root.canonicalize() else { return walked };
    let mut seen = HashSet::from([root.clone()]);
    let mut queue = VecDeque::from([(root, 0)]);
    while let Some((folder, depth)) = queue.pop_front() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().take(MAX_ENTRIES).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let (name, path) = (entry.file_name(), entry.path());
            let Ok(kind) = entry.file_type() else { continue };
            if kind.is_file() {
                if name == SKILL_FILE {
                    walked.skill_files.push(path);
                }
                continue;
            }
            if name.as_encoded_bytes().starts_with(b".") || depth >= MAX_DEPTH {
                continue;
            }
            let inner = match () {
                () if kind.is_dir() => Some(path),
                () if kind.is_symlink() && follow_links => path.canonicalize().ok().filter(|target| target.is_dir()),
                () => None,
            };
            if let Some(inner) = inner
                && seen.len() < MAX_FOLDERS
                && seen.insert(inner.clone())
            {
                queue.push_back((inner, depth + 1));
            }
        }
        walked.folders.push(folder);
    }
    walked
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(walked: &Walked, root: &Path) -> Vec<String> {
        let below = |path: &PathBuf| path.parent().unwrap().strip_prefix(root).unwrap().display().to_string();
        walked.skill_files.iter().map(below).collect()
    }

    fn skill(folder: PathBuf) {
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(SKILL_FILE), "").unwrap();
    }

    #[test]
    fn six_levels_are_searched_and_hidden_folders_are_not() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for name in ["", "b", "b/c", "a/b/c/d/e/six", "a/b/c/d/e/f/seven", ".hidden"] {
            skill(root.join(name));
        }
        fs::create_dir_all(root.join("folder/SKILL.md")).unwrap();
        assert_eq!(names(&walk(&root, true), &root), ["", "b", "b/c", "a/b/c/d/e/six"]);
        assert_eq!(walk(&root.join("missing"), true), Walked::default());
    }

    #[test]
    fn linked_folders_are_followed_once_and_linked_files_never() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let elsewhere = root.join("elsewhere");
        skill(elsewhere.join("one"));
        fs::create_dir_all(root.join("root/file")).unwrap();
        symlink(&elsewhere, root.join("root/link")).unwrap();
        symlink(&elsewhere, root.join("root/again")).unwrap();
        symlink(root.join("root"), elsewhere.join("loop")).unwrap();
        symlink(elsewhere.join("one/SKILL.md"), root.join("root/file/SKILL.md")).unwrap();
        assert_eq!(names(&walk(&root.join("root"), true), &elsewhere), ["one"]);
        assert!(walk(&root.join("root"), false).skill_files.is_empty());
    }

    #[test]
    fn the_number_of_folders_is_bounded() {
        let dir = tempfile::tempdir().unwrap();
        for number in 0..MAX_FOLDERS + 10 {
            fs::create_dir(dir.path().join(number.to_string())).unwrap();
        }
        assert_eq!(walk(dir.path(), true).folders.len(), MAX_FOLDERS);
    }
}
