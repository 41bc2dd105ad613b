//! [`Files`] on this machine. A file is never half written, and a symbolic link created meanwhile is not followed.

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::files::{File, Files, FilesMut, MAX_FILE_BYTES, missing};
use crate::path_at::PathAt;

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
        let place = PathAt::of(path)?;
        // A link is replaced like a missing file: when the path was resolved it did not exist, or was dangling.
        let old = place.existing()?.filter(|old| !old.is_symlink());
        if old.as_ref().is_some_and(|old| !old.is_file()) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        match replacement(&place, bytes, mode, old.as_ref()) {
            Ok(Some(draft)) => draft.persist(),
            // Renaming would lose links or the owner of the file, or is not permitted where writing is.
            Ok(None) => overwrite(&place, bytes, old.as_ref()),
            Err(error) if old.is_some() && error.kind() == io::ErrorKind::PermissionDenied => {
                overwrite(&place, bytes, old.as_ref())
            }
            Err(error) => Err(error),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        PathAt::of(path)?.unlink(AtFlags::empty())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        PathAt::of(path)?.create_dir()
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        PathAt::of(path)?.unlink(AtFlags::REMOVEDIR)
    }
}

/// Overwrites the existing file, if it is still `old`. Never through a link, and never into a FIFO.
fn overwrite(place: &PathAt, bytes: &[u8], old: Option<&fs::Metadata>) -> io::Result<()> {
    let mut file = place.open(OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?;
    let now = file.metadata()?;
    if !now.is_file() || old.map(identity) != Some(identity(&now)) {
        return Err(io::Error::other("it was replaced while the patch was applied"));
    }
    file.set_len(0)?;
    file.write_all(bytes)
}

fn identity(metadata: &fs::Metadata) -> (u64, u64) {
    (metadata.dev(), metadata.ino())
}

/// A complete file beside the old one. `None` if the old one has several names or another owner, which a new file
/// would not have.
fn replacement<'a>(
    place: &'a PathAt,
    bytes: &[u8],
    mode: Option<u32>,
    old: Option<&fs::Metadata>,
) -> io::Result<Option<TempFile<'a>>> {
    let (mut file, draft) = TempFile::create(place)?;
    let owner = |it: &fs::Metadata| (it.uid(), it.gid());
    if let Some(old) = old
        && (old.nlink() > 1 || owner(old) != owner(&file.metadata()?))
    {
        return Ok(None);
    }
    if let Some(mode) = mode.or(old.map(self::mode)) {
        file.set_permissions(fs::Permissions::from_mode(mode))?;
    }
    file.write_all(bytes)?;
    Ok(Some(draft))
}

/// A temporary file, to be renamed to its final name. Removed when dropped before.
struct TempFile<'a> {
    place: &'a PathAt,
    /// `None` once it has its final name.
    name: Option<String>,
}

impl<'a> TempFile<'a> {
    fn create(place: &'a PathAt) -> io::Result<(fs::File, Self)> {
        let mut attempts = 0;
        loop {
            let name = format!(".loomd-{:016x}.tmp", fastrand::u64(..));
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
            match place.sibling(&name).open(flags, NEW_FILE) {
                Ok(file) => return Ok((file, Self { place, name: Some(name) })),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempts < ATTEMPTS => attempts += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Renames the file to its final name, replacing whatever has it, also a link.
    fn persist(mut self) -> io::Result<()> {
        if let Some(name) = &self.name {
            self.place.take_name_of(name)?;
        }
        self.name = None;
        Ok(())
    }
}

impl Drop for TempFile<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            _ = self.place.sibling(name).unlink(AtFlags::empty());
        }
    }
}

/// Names that are tried for a temporary file.
const ATTEMPTS: usize = 16;

/// The usual mode for a new file, from which the umask takes bits.
const NEW_FILE: Mode = Mode::from_raw_mode(0o666);

fn mode(metadata: &fs::Metadata) -> u32 {
    metadata.permissions().mode() & 0o7777
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_replaced_file_keeps_its_mode_and_no_temporary_file_remains() {
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
    fn a_new_file_has_the_default_mode() {
        let folder = tempfile::tempdir().unwrap();
        let [ours, plain] = ["ours", "plain"].map(|name| folder.path().join(name));
        Disk.write(&ours, b"", None).unwrap();
        fs::write(&plain, "").unwrap();
        assert_eq!(Disk.read(&ours).unwrap(), Disk.read(&plain).unwrap());
    }

    #[test]
    fn links_are_resolved_up_to_missing_components() {
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
    fn a_link_created_after_resolving_is_not_followed() {
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
    fn a_fifo_is_neither_read_nor_written() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().canonicalize().unwrap().join("pipe");
        rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        assert_eq!(Disk.read(&pipe).unwrap_err().to_string(), "is not a regular file");
        let old = fs::metadata(folder.path()).unwrap();
        assert!(overwrite(&PathAt::of(&pipe).unwrap(), b"new", Some(&old)).is_err());
    }

    #[test]
    fn a_file_replaced_after_the_check_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| folder.path().canonicalize().unwrap().join(name));
        fs::write(&one, "one").unwrap();
        fs::write(&two, "two").unwrap();
        let old = fs::metadata(&one).unwrap();
        fs::rename(&two, &one).unwrap();
        let error = overwrite(&PathAt::of(&one).unwrap(), b"new", Some(&old)).unwrap_err();
        assert_eq!(error.to_string(), "it was replaced while the patch was applied");
        assert_eq!(fs::read(&one).unwrap(), b"two");
    }

    #[test]
    fn only_regular_files_are_read() {
        let error = Disk.read(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "is not a regular file");
        let error = Disk.read(Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "Is a directory (os error 21)");
    }
}
