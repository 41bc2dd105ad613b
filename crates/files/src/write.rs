//! `fs/writeFile` and `fs/createDirectory`.
//!
//! An existing file is replaced atomically: readers see the old content or the new one. If that would lose its owner
//! or a second name, it is overwritten in place.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use uuid::Uuid;

use crate::error::{FsError, Result};
use crate::read::check_kind;

/// Creates or replaces a file; its folder must exist. Invalid base64 changes nothing.
pub fn write_file(path: &Path, data_base64: &str) -> Result<()> {
    let data = STANDARD
        .decode(data_base64)
        .map_err(|error| FsError::refused(format!("fs/writeFile requires valid base64 dataBase64: {error}")))?;
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return write_in_place(path, &data),
        Err(error) => return Err(error.into()),
    };
    if metadata.is_dir() {
        return Err(io::Error::from_raw_os_error(rustix::io::Errno::ISDIR.raw_os_error()).into());
    }
    check_kind(&metadata)?;
    let replaceable = metadata.nlink() == 1 && metadata.uid() == rustix::process::geteuid().as_raw();
    // A read-only file is not replaced, although its folder would permit it.
    drop(loomd_regular::open_to_write(path)?);
    if replaceable && replace(&path.canonicalize()?, &data, metadata.permissions().mode()).is_ok() {
        return Ok(());
    }
    write_in_place(path, &data)
}

pub fn create_directory(path: &Path, recursive: bool) -> Result<()> {
    if recursive {
        fs::create_dir_all(path)?
    } else {
        fs::create_dir(path)?
    }
    Ok(())
}

fn write_in_place(path: &Path, data: &[u8]) -> Result<()> {
    let mut file = loomd_regular::open_to_write(path)?;
    file.set_len(0)?;
    Ok(file.write_all(data)?)
}

fn replace(path: &Path, data: &[u8], mode: u32) -> io::Result<()> {
    let temporary = temporary_beside(path).ok_or(io::ErrorKind::InvalidFilename)?;
    let write = || {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        file.write_all(data)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o7777))?;
        keep_group(&file, path)?;
        fs::rename(&temporary, path)
    };
    let written = write();
    if written.is_err() {
        _ = fs::remove_file(&temporary);
    }
    written
}

/// Keeps the group, which determines who may read the file.
fn keep_group(file: &File, path: &Path) -> io::Result<()> {
    let (new, old) = (file.metadata()?.gid(), fs::metadata(path)?.gid());
    if new == old { Ok(()) } else { std::os::unix::fs::fchown(file, None, Some(old)) }
}

const TEMPORARY: (&str, &str) = (".loomd-", ".tmp");

fn temporary_beside(path: &Path) -> Option<PathBuf> {
    Some(path.parent()?.join(format!("{}{}{}", TEMPORARY.0, Uuid::now_v7().simple(), TEMPORARY.1)))
}

/// Whether this is one of our temporary files, which watches do not report.
pub(crate) fn is_temporary(name: &str) -> bool {
    name.strip_prefix(TEMPORARY.0).is_some_and(|rest| rest.ends_with(TEMPORARY.1))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn write(path: &Path, text: &str) {
        write_file(path, &STANDARD.encode(text)).unwrap();
    }

    #[test]
    fn an_existing_file_keeps_mode_links_and_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("f"), "old").unwrap();
        fs::set_permissions(at("f"), fs::Permissions::from_mode(0o640)).unwrap();
        symlink("f", at("link")).unwrap();
        write(&at("link"), "new");
        assert_eq!(fs::read_link(at("link")).unwrap(), Path::new("f"));
        assert_eq!(fs::read_to_string(at("f")).unwrap(), "new");
        assert_eq!(fs::metadata(at("f")).unwrap().permissions().mode() & 0o7777, 0o640);

        fs::hard_link(at("f"), at("g")).unwrap();
        write(&at("f"), "both");
        assert_eq!(fs::read_to_string(at("g")).unwrap(), "both");
        let mut names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["f", "g", "link"], "no temporary file remains");
    }

    #[test]
    fn writing_a_dangling_link_creates_its_target() {
        let dir = tempfile::tempdir().unwrap();
        symlink("target", dir.path().join("link")).unwrap();
        write(&dir.path().join("link"), "x");
        assert_eq!(fs::read_to_string(dir.path().join("target")).unwrap(), "x");
    }

    #[test]
    fn write_errors_name_the_reason_and_change_nothing() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("f"), "old").unwrap();
        let check = |name: &str, data: &str, expected: &str| {
            assert_eq!(write_file(&dir.path().join(name), data).unwrap_err().to_string(), expected);
        };
        let bad = |reason: &str| format!("fs/writeFile requires valid base64 dataBase64: {reason}");
        check("f", "%%%", &bad("Invalid symbol 37, offset 0."));
        check("f", "aGVsbG8=\n", &bad("Invalid symbol 10, offset 8."));
        check("f", "-_8=", &bad("Invalid symbol 45, offset 0."));
        check("f", "aGVsbG8", &bad("Invalid padding"));
        check("no/f", "", "No such file or directory (os error 2)");
        check(".", "", "Is a directory (os error 21)");
        assert_eq!(fs::read_to_string(dir.path().join("f")).unwrap(), "old");
    }

    #[test]
    fn directories_are_created_with_or_without_parents() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        create_directory(&at("a/b"), true).unwrap();
        create_directory(&at("a/b"), true).unwrap();
        fs::write(at("f"), "").unwrap();
        let check = |name: &str, recursive, expected: &str| {
            assert_eq!(create_directory(&at(name), recursive).unwrap_err().to_string(), expected);
        };
        check("a", false, "File exists (os error 17)");
        check("x/y", false, "No such file or directory (os error 2)");
        check("f", true, "File exists (os error 17)");
        check("f/g", true, "Not a directory (os error 20)");
    }
}
