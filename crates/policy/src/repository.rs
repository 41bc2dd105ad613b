//! Whether reading a Git repository runs a program that the repository names. Filters, diff drivers and the like cannot
//! be turned off from outside, so `git` in a repository that has any is not known to be safe. The rest is turned off by
//! [`restrain_git`](crate::restrain_git).

use std::path::{Path, PathBuf};

/// The largest file of a repository that is read.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// Parts of configuration that names programs or includes more configuration, without blanks and in lower case, as the
/// text is compared.
const NAMES_PROGRAMS: &[&str] = &[
    "[include",
    "[filter",
    "[gpg",
    "[submodule",
    "textconv=",
    "command=",
    "external=",
    "program=",
    "driver=",
    "promisor",
    "partialclone",
    "objectformat",
];

/// Whether `git` in this folder starts no program except its own, in the restrained environment. False for a repository
/// that cannot be read or parsed.
pub(crate) fn is_inert(folder: &Path) -> bool {
    let Ok(folder) = folder.canonicalize() else { return !folder.exists() };
    for place in folder.ancestors() {
        let git = place.join(".git");
        if git.symlink_metadata().is_ok() {
            return git_folder(&git).is_some_and(|git| is_inert_repository(&git));
        }
        // A bare repository, which older versions of git find by themselves.
        if place.join("HEAD").exists() && place.join("objects").exists() && place.join("refs").exists() {
            return false;
        }
    }
    true
}

/// The repository that a `.git` is or points at.
fn git_folder(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.to_owned());
    }
    let text = String::from_utf8(read(git)?).ok()?;
    Some(git.parent()?.join(text.strip_prefix("gitdir:")?.trim()))
}

fn is_inert_repository(git: &Path) -> bool {
    let common = match git.join("commondir") {
        file if file.symlink_metadata().is_ok() => {
            let Some(text) = read(&file).and_then(|text| String::from_utf8(text).ok()) else { return false };
            git.join(text.trim())
        }
        _ => git.to_owned(),
    };
    let files =
        [git.join("config"), git.join("config.worktree"), common.join("config"), common.join("config.worktree")];
    let harmless =
        |file: &PathBuf| file.symlink_metadata().is_err() || read(file).is_some_and(|text| names_no_program(&text));
    let index = git.join("index");
    files.iter().all(harmless)
        && (index.symlink_metadata().is_err()
            || read(&index).is_some_and(|index| has_submodules(&index) == Some(false)))
}

fn read(file: &Path) -> Option<Vec<u8>> {
    loomd_regular::read(file, MAX_BYTES).ok()
}

fn names_no_program(config: &[u8]) -> bool {
    let text = String::from_utf8_lossy(config);
    let text: String = text.chars().filter(|c| !c.is_whitespace()).flat_map(char::to_lowercase).collect();
    // `core.sshCommand` is only used for the network.
    let text = text.replace("sshcommand=", "");
    !NAMES_PROGRAMS.iter().any(|name| text.contains(name))
}

/// Whether an index has a submodule, which has configuration of its own. `None` for an index that cannot be parsed.
fn has_submodules(index: &[u8]) -> Option<bool> {
    const HEADER: usize = 12;
    const ENTRY: usize = 62;
    const SUBMODULE: u32 = 0o160_000;
    const FOLDER: u32 = 0o040_000;
    let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
    let (version, count) = (number(4)?, number(8)?);
    if index.get(..4)? != b"DIRC" || !(2..=4).contains(&version) {
        return None;
    }
    let mut at = HEADER;
    for _ in 0..count {
        // A folder stands for entries that are not in the index.
        if matches!(number(at + 24)? & 0o170_000, SUBMODULE | FOLDER) {
            return Some(true);
        }
        let flags = u16::from_be_bytes(index.get(at + 60..at + 62)?.try_into().ok()?);
        let extended = if flags & 0x4000 != 0 { 2 } else { 0 };
        let mut name = at + ENTRY + extended;
        if version == 4 {
            while index.get(name)? & 0x80 != 0 {
                name += 1;
            }
            name += 1;
        }
        let end = name + index.get(name..)?.iter().position(|byte| *byte == 0)?;
        at = if version == 4 { end + 1 } else { at + (end - at + 8) / 8 * 8 };
    }
    // An index may be in two files.
    let split = index.get(at..at + 4).is_some_and(|name| name == b"link");
    if split { None } else { Some(false) }
}
