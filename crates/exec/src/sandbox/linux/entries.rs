//! The entries of a concealed folder that commands see.

use std::fs::{self, DirEntry};
use std::io;
use std::path::{Path, PathBuf};

use crate::sandbox::conceal::ConcealedFolder;

/// The most visible entries; a home has far fewer. Further entries are left out.
const MAX_VISIBLE: usize = 512;

/// An entry that commands see.
pub(super) struct VisibleEntry {
    pub path: PathBuf,
    pub kind: EntryKind,
}

pub(super) enum EntryKind {
    Folder,
    File,
    /// With its target.
    Link(PathBuf),
}

impl ConcealedFolder {
    /// The visible entries of the folder, which is mounted at `mount`. Sockets, pipes and devices are left out.
    pub(super) fn visible_entries(&self, mount: &Path) -> io::Result<Vec<VisibleEntry>> {
        let entries = fs::read_dir(mount)?.filter_map(Result::ok).filter(|entry| !self.hides(&entry.file_name()));
        Ok(entries.filter_map(|entry| visible_entry(&entry)).take(MAX_VISIBLE).collect())
    }
}

fn visible_entry(entry: &DirEntry) -> Option<VisibleEntry> {
    let path = entry.path();
    let kind = match entry.file_type().ok()? {
        kind if kind.is_dir() => EntryKind::Folder,
        kind if kind.is_file() => EntryKind::File,
        kind if kind.is_symlink() => EntryKind::Link(fs::read_link(&path).ok()?),
        _ => return None,
    };
    Some(VisibleEntry { path, kind })
}
