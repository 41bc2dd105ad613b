//! A folder that commands see without some of its entries, and read-only: our home, with the credentials in it. The
//! folder is covered and its other entries are put back, so that an entry that is replaced or made later, as a
//! refreshed token is, does not come to light in a command that already runs.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ConcealedFolder {
    /// A path without links.
    pub folder: PathBuf,
    pub names: Vec<String>,
}

impl ConcealedFolder {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_and_their_temporary_files_are_hidden() {
        let names = ["auth.json", ".credentials.json"].map(str::to_owned).to_vec();
        let concealed = ConcealedFolder { folder: "/h".into(), names };
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
