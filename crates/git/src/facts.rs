//! [`Facts`]: commit, branch and origin of a folder, for the metadata of a thread. Read from git's files; the git
//! program is used only if these have an unsupported format.

use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::program::{Launcher, Program};
use crate::repository::MAX_LINE_BYTES;
use crate::{Repository, config};

/// Largest configuration file; these are written by hand.
const MAX_CONFIG_BYTES: u64 = 4 << 20;

/// Largest file of packed references: enough for a million of them.
const MAX_PACKED_BYTES: u64 = 128 << 20;

/// Largest number of symbolic references in a chain.
const MAX_SYMBOLIC: usize = 5;

/// The current state of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub commit_hash: String,
    /// `None` if no branch is checked out.
    pub branch: Option<String>,
    /// The URL of the remote `origin`.
    pub origin_url: Option<String>,
}

/// `None` outside a repository, and in one without commits.
pub async fn facts(folder: &Path, launcher: &impl Launcher) -> Option<Facts> {
    // Checking each folder above costs less than a switch to another thread, and most callers are in no repository.
    let repository = Repository::find(folder)?;
    // The files may be large, so they are not read on a worker of the runtime.
    let read = tokio::task::spawn_blocking(move || {
        let (head, origin) = (head(&repository), origin(&repository));
        (repository, head, origin)
    });
    let (repository, head, origin) = read.await.ok()?;
    let program = Program::new(launcher, &repository, folder);
    let head = match head {
        Head::At { commit_hash, branch } => (commit_hash, branch),
        Head::Unborn => return None,
        Head::Unsupported => {
            let commit_hash = program.first_line(&["rev-parse", "HEAD"]).await?;
            let branch = program.first_line(&["rev-parse", "--abbrev-ref", "HEAD"]).await;
            // Git's output if no branch is checked out.
            (commit_hash, branch.filter(|branch| branch != "HEAD"))
        }
    };
    let origin_url = match origin {
        Ok(url) => url,
        Err(Unsupported) => program.first_line(&["remote", "get-url", "origin"]).await,
    };
    Some(Facts { commit_hash: head.0, branch: head.1, origin_url })
}

#[derive(Debug, PartialEq, Eq)]
enum Head {
    At {
        commit_hash: String,
        branch: Option<String>,
    },
    /// The branch has no commit yet, or `HEAD` cannot be read.
    Unborn,
    Unsupported,
}

fn head(repository: &Repository) -> Head {
    // The reftable format is left to git.
    if repository.common_dir.join("reftable").exists() {
        return Head::Unsupported;
    }
    let text = match loomd_regular::read_to_string(&repository.git_dir.join("HEAD"), MAX_LINE_BYTES) {
        Ok(text) => text,
        // Git could not read it either, and might block on it.
        Err(_) => return Head::Unborn,
    };
    let Some(mut name) = symbolic(&text) else {
        return match hash(&text) {
            Some(commit_hash) => Head::At { commit_hash, branch: None },
            None => Head::Unsupported,
        };
    };
    let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
    for _ in 0..MAX_SYMBOLIC {
        match reference(repository, &name) {
            None => return Head::Unborn,
            Some(text) => match (symbolic(&text), hash(&text)) {
                (Some(other), _) => name = other,
                (None, Some(commit_hash)) => return Head::At { commit_hash, branch },
                (None, None) => return Head::Unsupported,
            },
        }
    }
    Head::Unsupported
}

/// The content of a reference, from its own file or the packed ones.
fn reference(repository: &Repository, name: &str) -> Option<String> {
    // A name must not lead out of the folder.
    if name.split('/').any(|part| matches!(part, "" | "." | "..")) {
        return None;
    }
    if let Ok(text) = loomd_regular::read_to_string(&repository.common_dir.join(name), MAX_LINE_BYTES) {
        return Some(text);
    }
    packed(repository, name).ok().flatten()
}

/// A packed reference. The file is read line by line, as it may be large.
fn packed(repository: &Repository, name: &str) -> io::Result<Option<String>> {
    let (file, _) = loomd_regular::open(&repository.common_dir.join("packed-refs"))?;
    let mut list = BufReader::new(file.take(MAX_PACKED_BYTES));
    let mut line = Vec::new();
    while list.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line)? > 0 {
        if let Some((hash, packed)) = str::from_utf8(line.trim_ascii_end()).ok().and_then(|line| line.split_once(' '))
            && packed == name
        {
            return Ok(Some(hash.to_owned()));
        }
        line.clear();
    }
    Ok(None)
}

fn symbolic(text: &str) -> Option<String> {
    text.strip_prefix("ref:").map(|name| name.trim().to_owned())
}

fn hash(text: &str) -> Option<String> {
    let text = text.trim();
    (matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())).then(|| text.to_owned())
}

/// The files have a format that only git supports.
struct Unsupported;

fn origin(repository: &Repository) -> Result<Option<String>, Unsupported> {
    let read = |path: &Path| -> io::Result<String> { loomd_regular::read_to_string(path, MAX_CONFIG_BYTES) };
    let Ok(own) = read(&repository.common_dir.join("config")) else { return Ok(None) };
    let unusual = |text: &str| {
        let text = text.to_ascii_lowercase();
        ["insteadof", "[include", "worktreeconfig"].iter().any(|word| text.contains(word))
    };
    let shared = shared_files().into_iter().filter_map(|file| read(&file).ok());
    if unusual(&own) || shared.into_iter().any(|text| unusual(&text)) {
        return Err(Unsupported);
    }
    Ok(config::value(&own, "remote", "origin", "url").filter(|url| !url.is_empty()))
}

/// The configuration files of the user and of the machine.
fn shared_files() -> Vec<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = set("HOME");
    let user = set("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let files = [home.map(|home| home.join(".gitconfig")), user.map(|folder| folder.join("git/config"))];
    files.into_iter().flatten().chain([PathBuf::from("/etc/gitconfig")]).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const ONE: &str = "1111111111111111111111111111111111111111";

    fn check(files: &[(&str, &str)], expected: Head) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(".git").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        assert_eq!(head(&Repository::at(dir.path()).unwrap()), expected, "{files:?}");
    }

    fn at(branch: Option<&str>) -> Head {
        Head::At { commit_hash: ONE.into(), branch: branch.map(Into::into) }
    }

    #[test]
    fn a_branch_is_found_in_its_file_or_among_packed_references() {
        check(&[("HEAD", "ref: refs/heads/a/b\n"), ("refs/heads/a/b", &format!("{ONE}\n"))], at(Some("a/b")));
        let packed =
            format!("# pack-refs with: peeled\n{} refs/heads/mainx\n{ONE} refs/heads/main\n^{ONE}\n", "2".repeat(40));
        check(&[("HEAD", "ref: refs/heads/main\n"), ("packed-refs", &packed)], at(Some("main")));
    }

    #[test]
    fn a_detached_head_has_no_branch() {
        check(&[("HEAD", &format!("{ONE}\n"))], at(None));
    }

    #[test]
    fn an_unborn_branch_has_no_commit() {
        check(&[("HEAD", "ref: refs/heads/main\n")], Head::Unborn);
    }

    #[test]
    fn unsupported_formats_are_left_to_git() {
        check(&[("HEAD", "nonsense")], Head::Unsupported);
        check(&[("HEAD", "ref: refs/heads/a"), ("refs/heads/a", "ref: refs/heads/a")], Head::Unsupported);
        check(&[("HEAD", "ref: refs/heads/.invalid"), ("reftable/tables.list", "")], Head::Unsupported);
    }

    #[test]
    fn a_blocking_file_counts_as_missing() {
        for name in ["HEAD", "refs/heads/main", "packed-refs", "config"] {
            let dir = tempfile::tempdir().unwrap();
            let git = dir.path().join(".git");
            fs::create_dir_all(git.join("refs/heads")).unwrap();
            fs::write(git.join("HEAD"), "ref: refs/heads/main").unwrap();
            if git.join(name).exists() {
                fs::remove_file(git.join(name)).unwrap();
            }
            rustix::fs::mkfifoat(rustix::fs::CWD, git.join(name), rustix::fs::Mode::RWXU).unwrap();
            let repository = Repository::at(dir.path()).unwrap();
            assert_eq!(head(&repository), Head::Unborn, "{name}");
            assert!(matches!(origin(&repository), Ok(None)), "{name}");
        }
    }

    #[test]
    fn a_reference_name_cannot_lead_out_of_the_repository() {
        check(&[("HEAD", "ref: ../../secret"), ("config", "")], Head::Unborn);
    }
}
