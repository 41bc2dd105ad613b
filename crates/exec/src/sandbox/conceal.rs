//! A folder that commands see without some of its entries, and read-only: our home, with the credentials in it. The
//! folder is covered and its other entries are put back, so that an entry that is replaced or made later, as a refreshed
//! token is, does not come to light in a command that already runs.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Far more than our home has; what goes beyond is not shown.
const MOST_SHOWN: usize = 512;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Concealed {
    /// Without links.
    pub folder: PathBuf,
    pub names: Vec<String>,
}

/// An entry of the folder that is shown.
pub(super) struct Shown {
    pub path: PathBuf,
    pub kind: Kind,
}

pub(super) enum Kind {
    Folder,
    File,
    /// With what it leads to.
    Link(PathBuf),
}

impl Concealed {
    /// Whether an entry of the folder is kept from commands: one of the names, or a file on its way to become it.
    pub fn hides(&self, entry: &OsStr) -> bool {
        let entry = entry.to_string_lossy();
        let plain = entry.trim_start_matches('.');
        self.names.iter().any(|name| plain.starts_with(name.trim_start_matches('.')))
    }

    /// Whether this keeps a path, which has no links in it, from being read.
    pub fn conceals(&self, path: &Path) -> bool {
        let inside = path.strip_prefix(&self.folder).ok();
        inside.and_then(|inside| inside.iter().next()).is_some_and(|first| self.hides(first))
    }

    /// What is left of the folder, seen at `at`. Sockets, pipes and devices are nothing for commands.
    pub fn shown(&self, at: &Path) -> io::Result<Vec<Shown>> {
        let entries = fs::read_dir(at)?.filter_map(Result::ok).filter(|entry| !self.hides(&entry.file_name()));
        Ok(entries.filter_map(|entry| shown(&entry)).take(MOST_SHOWN).collect())
    }
}

fn shown(entry: &DirEntry) -> Option<Shown> {
    let path = entry.path();
    let kind = match entry.file_type().ok()? {
        kind if kind.is_dir() => Kind::Folder,
        kind if kind.is_file() => Kind::File,
        kind if kind.is_symlink() => Kind::Link(fs::read_link(&path).ok()?),
        _ => return None,
    };
    Some(Shown { path, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_their_temporary_files_are_hidden() {
        let names = ["auth.json", ".credentials.json"].map(str::to_owned).to_vec();
        let concealed = Concealed { folder: "/h".into(), names };
        for (path, expected) in [
            ("/h/auth.json", true),
            ("/h/.auth.json.0198", true),
            ("/h/.credentials.json", true),
            ("/h/credentials.json.tmp", true),
            ("/h/config.toml", false),
            ("/h/sessions/auth.json", false),
            ("/h", false),
            ("/else/auth.json", false),
        ] {
            assert_eq!(concealed.conceals(Path::new(path)), expected, "{path}");
        }
    }
}
