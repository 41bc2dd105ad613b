//! Checks whether files with ignore rules can be read. The walker opens them itself, and would block on a FIFO named
//! `.gitignore`, or read a sparse file of a terabyte; so folders with such a file are excluded.

use std::fs;
use std::path::{Path, PathBuf};

use ignore::gitignore::gitconfig_excludes_path;

/// Largest file of rules; rules are written by hand.
const MAX_RULES_BYTES: u64 = 1 << 20;

/// Largest file that holds one path.
const MAX_LINK_BYTES: u64 = 64 << 10;

/// The first file of rules of this folder that must not be opened.
pub(crate) fn unreadable(folder: &Path) -> Option<PathBuf> {
    let own = [".gitignore", ".ignore"].map(|name| folder.join(name));
    own.into_iter().find(|path| !is_readable(path)).or_else(|| unreadable_of_git(&folder.join(".git")))
}

/// The files in git's data folders that the walker opens.
fn unreadable_of_git(dot_git: &Path) -> Option<PathBuf> {
    let metadata = fs::metadata(dot_git).ok()?;
    let common_dir = if metadata.is_dir() {
        dot_git.to_owned()
    } else if metadata.is_file() {
        let Ok(text) = loomd_regular::read_to_string(dot_git, MAX_LINK_BYTES) else { return Some(dot_git.into()) };
        let git_dir = PathBuf::from(text.lines().next()?.strip_prefix("gitdir: ")?);
        let link = git_dir.join("commondir");
        if fs::metadata(&link).is_err() {
            return None;
        }
        let Ok(text) = loomd_regular::read_to_string(&link, MAX_LINK_BYTES) else { return Some(link) };
        git_dir.join(text.lines().next()?)
    } else {
        return None;
    };
    Some(common_dir.join("info/exclude")).filter(|path| !is_readable(path))
}

/// Whether the user's global rules can be read.
pub(crate) fn can_read_global() -> bool {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME");
    let user = set("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [
        set("GIT_CONFIG_GLOBAL"),
        home.map(|home| home.join(".gitconfig")),
        user.map(|folder| folder.join("git/config")),
        set("GIT_CONFIG_SYSTEM"),
    ];
    // The last one is named by the others.
    files.into_iter().flatten().all(|path| is_readable(&path))
        && gitconfig_excludes_path().is_none_or(|path| is_readable(&path))
}

/// Missing files and folders are harmless.
fn is_readable(path: &Path) -> bool {
    fs::metadata(path)
        .map_or(true, |metadata| metadata.is_dir() || (metadata.is_file() && metadata.len() <= MAX_RULES_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fifo(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    }

    #[test]
    fn every_file_that_the_walker_opens_is_checked() {
        for name in [".gitignore", ".ignore", ".git/info/exclude"] {
            let dir = tempfile::tempdir().unwrap();
            fifo(&dir.path().join(name));
            assert_eq!(unreadable(dir.path()), Some(dir.path().join(name)));
        }
        for name in ["commondir", "info/exclude"] {
            let dir = tempfile::tempdir().unwrap();
            let data = dir.path().join("data");
            fifo(&data.join(name));
            if name != "commondir" {
                fs::write(data.join("commondir"), data.to_str().unwrap()).unwrap();
            }
            fs::write(dir.path().join(".git"), format!("gitdir: {}\n", data.display())).unwrap();
            assert_eq!(unreadable(dir.path()), Some(data.join(name)));
        }
        let dir = tempfile::tempdir().unwrap();
        for name in [".git", ".gitignore"] {
            fs::File::create(dir.path().join(name)).unwrap().set_len(1 << 40).unwrap();
            assert_eq!(unreadable(dir.path()), Some(dir.path().join(name)));
        }
    }

    #[test]
    fn regular_files_are_readable() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join(".git/info")).unwrap();
        assert_eq!(unreadable(dir.path()), None);
        for name in [".gitignore", ".ignore", ".git/info/exclude"] {
            fs::write(dir.path().join(name), "*.log\n").unwrap();
        }
        assert_eq!(unreadable(dir.path()), None);
    }
}
