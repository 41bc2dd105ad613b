//! The little that patches need of a file system.

use std::io;
use std::path::{Path, PathBuf};

/// Larger files are not patched: a patch holds files in memory, several versions of each.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    /// The permission bits.
    pub mode: u32,
}

/// Looking at files. Paths are absolute.
pub trait Files {
    /// The file itself or the one that a link points to.
    fn read(&self, path: &Path) -> io::Result<File>;

    /// Whether anything is there, a broken link included.
    fn exists(&self, path: &Path) -> bool;

    fn is_dir(&self, path: &Path) -> bool;

    /// The path with links resolved: all of them, or all but a link in the last place. What does not exist
    /// stays as it is.
    fn resolve(&self, path: &Path, last: bool) -> io::Result<PathBuf>;
}

/// Changing files. Paths come from [`Files::resolve`]: there are no links in them.
pub trait FilesMut: Files {
    /// Makes or replaces a file, whole or not at all. Without a mode an existing file keeps its own.
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Only an empty one.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
}

/// Nothing can be there.
pub(crate) fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
