//! Files and folders that only their owner can reach, for everything that is created in the home directory. The
//! modes are set explicitly: a umask would be inherited by the commands that we start.
//!
//! What exists already keeps its mode: it may be wider because the user wants it so.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Read and written by its owner only.
pub const FILE: u32 = 0o600;
/// Entered and listed by its owner only.
pub const FOLDER: u32 = 0o700;

/// Creates a folder and the missing ones above it, each with mode [`FOLDER`].
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Options for opening a file that is created with mode [`FILE`].
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// Creates or overwrites a file. A new one has mode [`FILE`].
pub fn write(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    options().write(true).create(true).truncate(true).open(path)?.write_all(bytes.as_ref())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn new_folders_and_files_are_closed_to_others_and_existing_ones_keep_their_mode() {
        let place = tempfile::tempdir().unwrap();
        let wide = place.path().join("wide");
        fs::create_dir(&wide).unwrap();
        fs::set_permissions(&wide, fs::Permissions::from_mode(0o755)).unwrap();
        create_dir_all(wide.join("a/b")).unwrap();
        let file = wide.join("a/b/file");
        write(&file, "new").unwrap();
        assert_eq!(
            [&wide, &wide.join("a"), &wide.join("a/b"), &file].map(|path| mode(path)),
            [0o755, 0o700, 0o700, 0o600]
        );
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        write(&file, "x").unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"x".to_vec(), 0o644));
    }
}
