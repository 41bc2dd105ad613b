//! The file system operations that patches need.

use std::io;
use std::path::{Path, PathBuf};

/// Larger files are not patched: a patch holds several versions of each file in memory.
pub const MAX_FILE_BYTES: u64 = 64 << 20;

/// A file as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    pub bytes: Vec<u8>,
    /// The permission bits.
    pub mode: u32,
}

/// Read access. Paths are absolute.
pub trait Files {
    /// Reads a file, following links.
    fn read(&self, path: &Path) -> io::Result<File>;

    /// Whether anything exists there, also a dangling link.
    fn exists(&self, path: &Path) -> bool;

    fn is_dir(&self, path: &Path) -> bool;

    /// The path with links resolved: all of them, or all but a link in the last component. Missing components stay.
    fn resolve(&self, path: &Path, last: bool) -> io::Result<PathBuf>;
}

/// Write access. Paths come from [`Files::resolve`]: they contain no links.
pub trait FilesMut: Files {
    /// Creates or replaces a file, all of it or nothing. Without a mode an existing file keeps its own.
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
}

/// Whether the error means that nothing exists at the path.
pub(crate) fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}
