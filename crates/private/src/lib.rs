//! Files and directories that only their owner can access, for everything that is created in the home directory. The
//! modes are set explicitly: a umask would be inherited by the commands that this process starts.
//!
//! What exists already keeps its mode, because the user may have widened it.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

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

/// Replaces or creates a file atomically, with mode [`FILE`], and its missing parents. It is on disk when this returns. A
/// symlink is replaced, not followed.
pub fn replace(path: impl AsRef<Path>, bytes: impl AsRef<[u8]>) -> io::Result<()> {
    let path = path.as_ref();
    let folder = path.parent().ok_or(io::ErrorKind::InvalidFilename)?;
    create_dir_all(folder)?;
    let (temporary, mut file) = temporary(path)?;
    let written = file.write_all(bytes.as_ref()).and_then(|()| file.sync_all());
    let replaced = written.and_then(|()| fs::rename(&temporary, path));
    if replaced.is_err() {
        _ = fs::remove_file(&temporary);
    } else {
        // Without this, a crash could restore the old file.
        _ = File::open(folder).and_then(|folder| folder.sync_all());
    }
    replaced
}

/// How many names of temporary files are tried; a crashed process with the same id may have left some.
const MAX_NAMES: usize = 100;

/// Creates a file beside `path` whose name begins with the name of `path`.
fn temporary(path: &Path) -> io::Result<(PathBuf, File)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let mut tries = 0;
    loop {
        let mut name = OsString::from(path.file_name().ok_or(io::ErrorKind::InvalidFilename)?);
        name.push(format!(".{}.{}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed)));
        let temporary = path.with_file_name(name);
        tries += 1;
        match options().write(true).create_new(true).open(&temporary) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tries < MAX_NAMES => {}
            opened => return opened.map(|file| (temporary, file)),
        }
    }
}

#[cfg(test)]
mod tests {
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
    #[test]
    fn a_replaced_file_is_private_and_a_link_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("real"), "theirs").unwrap();
        std::os::unix::fs::symlink("real", at("link")).unwrap();
        fs::write(at("wide"), "old").unwrap();
        fs::set_permissions(at("wide"), fs::Permissions::from_mode(0o644)).unwrap();
        for name in ["link", "wide", "new"] {
            replace(at(name), "mine").unwrap();
            assert_eq!((fs::read(at(name)).unwrap(), mode(&at(name))), (b"mine".to_vec(), 0o600), "{name}");
        }
        assert!(!at("link").is_symlink());
        assert_eq!(fs::read_to_string(at("real")).unwrap(), "theirs");
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 4, "nothing is left behind");
    }
}
