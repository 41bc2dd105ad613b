//! The files of this machine. Changes are made so that a file is never half written and that a link put
//! in the way leads nowhere.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::files::{File, Files, FilesMut, MAX_FILE_BYTES, missing};

/// The files of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn read(&self, path: &Path) -> io::Result<File> {
        let (bytes, metadata) = loomd_regular::read_with_metadata(path, MAX_FILE_BYTES)?;
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

impl FilesMut for Disk {
    fn write(&self, path: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
        let place = Place::of(path)?;
        // A link is replaced like nothing: it was not there, or led nowhere, when the path was resolved.
        let old = fs::symlink_metadata(&place.path).ok().filter(|old| !old.is_symlink());
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match replacement(&place.path, bytes, mode, old.as_ref()) {
            Ok(Some(file)) => file.persist(&place.path).map(drop).map_err(|error| error.error),
            // Replacing the file would lose something about it, or is not allowed where writing to it is.
            Ok(None) => overwrite(&place.path, bytes),
            Err(error) if old.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
                overwrite(&place.path, bytes)
            }
            Err(error) => Err(error),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(&Place::of(path)?.path)
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(&Place::of(path)?.path)
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(&Place::of(path)?.path)
    }
}

/// A path that cannot be led elsewhere. Changes are made by this process, which no sandbox holds back, while
/// commands in a sandbox may be running: were one of them to put a link in the place of a folder that was
/// looked at, we would write where it must not. So the folder is opened, links refused, and named by that.
struct Place {
    path: PathBuf,
    /// The path holds as long as this.
    #[cfg(target_os = "linux")]
    _folder: Option<std::os::fd::OwnedFd>,
}

impl Place {
    #[cfg(target_os = "linux")]
    fn of(path: &Path) -> io::Result<Self> {
        use std::os::fd::AsRawFd;

        use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};
        use rustix::io::Errno;

        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::IsADirectory.into());
        };
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match openat2(CWD, folder, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS) {
            Ok(folder) if Path::new(OPEN_FILES).is_dir() => {
                let path = Path::new(OPEN_FILES).join(folder.as_raw_fd().to_string()).join(name);
                Ok(Self { path, _folder: Some(folder) })
            }
            // Kernels and containers that do not have what this needs.
            Ok(_) | Err(Errno::NOSYS | Errno::PERM) => Ok(Self { path: path.into(), _folder: None }),
            Err(error) => Err(error.into()),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn of(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.into() })
    }
}

#[cfg(target_os = "linux")]
const OPEN_FILES: &str = "/proc/self/fd";

/// Writes into the file that is there. Never through a link.
fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true);
    #[cfg(target_os = "linux")]
    {
        use std::os::unix::fs::OpenOptionsExt;

        use rustix::fs::OFlags;
        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits() as i32);
    }
    let mut file = options.open(path)?;
    // A command may have put a FIFO in its place by now.
    loomd_regular::check(&file)?;
    file.set_len(0)?;
    file.write_all(bytes)
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
    // The error names a path that nobody knows.
    let mut file = builder.tempfile_in(folder).map_err(|error| io::Error::from(error.kind()))?;
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_link_that_appears_after_the_path_was_resolved_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [outside, inside] = ["outside", "inside"].map(|name| root.join(name));
        fs::create_dir(&outside).unwrap();
        fs::write(outside.join("file"), "theirs").unwrap();
        symlink(&outside, &inside).unwrap();
        let refused = [
            Disk.write(&inside.join("file"), b"ours", None),
            Disk.remove(&inside.join("file")),
            Disk.create_dir(&inside.join("folder")),
        ];
        assert!(refused.iter().all(|result| result.is_err()), "{refused:?}");
        symlink(outside.join("file"), root.join("link")).unwrap();
        Disk.write(&root.join("link"), b"ours", None).unwrap();
        assert_eq!(fs::read(outside.join("file")).unwrap(), b"theirs");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    }

    #[test]
    fn only_ordinary_files_are_read() {
        let error = Disk.read(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "is not a regular file");
        let error = Disk.read(Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "Is a directory (os error 21)");
    }
}
