//! The little that patches need of a file system, and the real one.

use std::fs;
use std::io::{self, Read, Write};
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

/// Changing files.
pub trait FilesMut: Files {
    /// Makes or replaces a file, whole or not at all. Without a mode an existing file keeps its own.
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()>;

    fn remove(&self, path: &Path) -> io::Result<()>;

    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Only an empty one.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
}

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<File> {
        // Opening a pipe would wait for its other end.
        let metadata = fs::metadata(path)?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        let file = fs::File::open(path)?;
        let mut bytes = Vec::new();
        // One more than the limit tells a file that is too large from one that just fits.
        file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > MAX_FILE_BYTES {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is too large"));
        }
        Ok(File { bytes, mode: mode(&metadata) })
    }

    fn exists(&self, path: &Path) -> bool {
        path.symlink_metadata().is_ok()
    }

    fn is_dir(&self, path: &Path) -> bool {
        path.is_dir()
    }

    fn resolve(&self, path: &Path, last: bool) -> io::Result<PathBuf> {
        if last || path.parent().is_none() {
            match path.canonicalize() {
                Err(error) if missing(&error) => {}
                result => return result,
            }
        }
        match (path.parent(), path.file_name()) {
            (Some(parent), Some(name)) => Ok(self.resolve(parent, true)?.join(name)),
            _ => Ok(path.to_owned()),
        }
    }
}

/// Nothing can be there.
pub(crate) fn missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

impl FilesMut for Disk {
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let old = fs::metadata(path).ok();
        if let Some(old) = &old
            && !old.is_file()
        {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match replacement(path, bytes, mode, old.as_ref()) {
            Ok(Some(file)) => file.persist(path).map(drop).map_err(|error| error.error),
            // Replacing the file would lose something about it, or is not allowed where writing to it is.
            Ok(None) => fs::write(path, bytes),
            Err(error) if old.is_some() && error.kind() == io::ErrorKind::PermissionDenied => fs::write(path, bytes),
            Err(error) => Err(error),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
}

/// A finished file beside the old one. `None` when the old one has other names or another owner, which a
/// new file would not have.
fn replacement(
    path: &Path,
    bytes: &[u8],
    mode: Option<u32>,
    old: Option<&fs::Metadata>,
) -> io::Result<Option<tempfile::NamedTempFile>> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".loomd-").suffix(".tmp");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(NEW_FILE));
    }
    let mut file = builder.tempfile_in(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        let owner = |it: &fs::Metadata| (it.uid(), it.gid());
        if let Some(old) = old
            && (old.nlink() > 1 || owner(old) != owner(&file.as_file().metadata()?))
        {
            return Ok(None);
        }
        if let Some(mode) = mode.or(old.map(self::mode)) {
            file.as_file().set_permissions(fs::Permissions::from_mode(mode))?;
        }
    }
    #[cfg(not(unix))]
    let _ = (mode, old);
    file.write_all(bytes)?;
    Ok(Some(file))
}

/// What a program asks for when it makes an ordinary file; the umask takes from it.
#[cfg(unix)]
const NEW_FILE: u32 = 0o666;

#[cfg(unix)]
fn mode(metadata: &fs::Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o7777
}

#[cfg(not(unix))]
fn mode(_: &fs::Metadata) -> u32 {
    0o644
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.sh");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).unwrap();
        Disk.write(&path, b"new", None).unwrap();
        assert_eq!(Disk.read(&path).unwrap(), File { bytes: b"new".into(), mode: 0o750 });
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_with_two_names_keeps_both() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().join(name));
        fs::write(&one, "old").unwrap();
        fs::hard_link(&one, &two).unwrap();
        Disk.write(&one, b"new", None).unwrap();
        assert_eq!((fs::read(&two).unwrap(), fs::metadata(&one).unwrap().nlink()), (b"new".to_vec(), 2));
    }

    #[test]
    fn a_new_file_has_the_mode_that_any_program_would_give_it() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, plain] = ["ours", "plain"].map(|name| folder.path().join(name));
        Disk.write(&ours, b"", None).unwrap();
        fs::write(&plain, "").unwrap();
        assert_eq!(Disk.read(&ours).unwrap(), Disk.read(&plain).unwrap());
    }

    #[test]
    fn links_are_resolved_as_far_as_there_are_files() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("real")).unwrap();
        fs::write(root.join("real/file"), "").unwrap();
        symlink("real", root.join("link")).unwrap();
        symlink("real/file", root.join("alias")).unwrap();
        symlink("nowhere", root.join("broken")).unwrap();
        let resolve = |path: &str, last| {
            let resolved = Disk.resolve(&root.join(path), last).unwrap();
            resolved.strip_prefix(&root).unwrap().to_str().unwrap().to_owned()
        };
        assert_eq!(resolve("link/new/deep", true), "real/new/deep");
        assert_eq!(resolve("alias", true), "real/file");
        assert_eq!(resolve("alias", false), "alias");
        assert_eq!(resolve("link/file", false), "real/file");
        assert_eq!(resolve("broken", true), "broken");
    }

    #[test]
    fn only_ordinary_files_are_read() {
        let error = Disk.read(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
        let error = Disk.read(Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "Is a directory (os error 21)");
    }
}
