//! Files and directories that only their owner can access, for everything that is created in the home directory. The
//! modes are set explicitly: a umask would be inherited by the commands that this process starts.
//!
//! What exists already keeps its mode, because the user may have widened it.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// The mode of files: readable and writable by the owner only.
pub const FILE: u32 = 0o600;
/// The mode of directories: accessible to the owner only.
pub const FOLDER: u32 = 0o700;

/// Creates a directory and its missing parents, each with mode [`FOLDER`].
pub fn create_dir_all(path: impl AsRef<Path>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER).create(path)
}

/// Returns options that create files with mode [`FILE`].
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.mode(FILE);
    options
}

/// Creates or overwrites a file. A new file has mode [`FILE`].
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
    fn new_files_are_private_and_existing_ones_keep_their_mode() {
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
