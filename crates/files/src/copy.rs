//! `fs/copy`. The destination is the final name, never a folder to copy into.

use std::fs::{self, Metadata};
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use crate::error::{FsError, Result};

/// Copies a file, folder or link. The source is not followed if it is a link. A folder is merged into an existing
/// one.
pub fn copy(source: &Path, destination: &Path, recursive: bool) -> Result<()> {
    let kind = fs::symlink_metadata(source)?.file_type();
    if kind.is_dir() {
        if !recursive {
            return Err(FsError::refused("fs/copy requires recursive: true when sourcePath is a directory"));
        }
        if resolved(destination)?.starts_with(source.canonicalize()?) {
            return Err(FsError::refused("fs/copy cannot copy a directory to itself or one of its descendants"));
        }
        copy_folder(source, destination)
    } else if kind.is_symlink() {
        copy_link(source, destination)
    } else if kind.is_file() {
        copy_file(source, destination)
    } else {
        Err(FsError::refused("fs/copy only supports regular files, directories, and symlinks"))
    }
}

/// Iterative, because folders may be nested deeper than the stack allows.
fn copy_folder(source: &Path, destination: &Path) -> Result<()> {
    let mut folders = vec![(source.to_path_buf(), destination.to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push((from, to));
            } else if kind.is_symlink() {
                copy_link(&from, &to)?;
            } else if kind.is_file() {
                copy_file(&from, &to)?;
            }
        }
    }
    Ok(())
}

/// Copies a file, except onto itself, which would truncate it.
fn copy_file(source: &Path, destination: &Path) -> Result<()> {
    let identity = |metadata: Metadata| (metadata.dev(), metadata.ino());
    if let Ok(there) = fs::metadata(destination)
        && identity(there) == identity(fs::metadata(source)?)
    {
        return Ok(());
    }
    Ok(loomd_regular::copy(source, destination)?)
}

/// Copies the text of the link, so a relative one stays relative.
fn copy_link(source: &Path, destination: &Path) -> Result<()> {
    Ok(symlink(fs::read_link(source)?, destination)?)
}

/// The path with links resolved as far as it exists.
fn resolved(path: &Path) -> Result<PathBuf> {
    for existing in path.ancestors() {
        if let Ok(canonical) = existing.canonicalize() {
            let rest = path.strip_prefix(existing).unwrap_or(Path::new(""));
            return Ok(canonical.join(rest));
        }
    }
    Ok(path.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_copied_onto_itself() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("f"), "text").unwrap();
        fs::hard_link(at("f"), at("same")).unwrap();
        symlink("f", at("link")).unwrap();
        for destination in ["f", "same", "link"] {
            copy(&at("f"), &at(destination), false).unwrap();
            assert_eq!(fs::read_to_string(at("f")).unwrap(), "text", "{destination}");
        }
    }

    #[test]
    fn a_folder_is_not_copied_into_itself_even_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("d/e")).unwrap();
        symlink("d", at("link")).unwrap();
        for destination in ["d", "d/x/y", "link/x", "d/e"] {
            let error = copy(&at("d"), &at(destination), true).unwrap_err();
            assert_eq!(error.to_string(), "fs/copy cannot copy a directory to itself or one of its descendants");
        }
        assert_eq!(fs::read_dir(at("d")).unwrap().count(), 1);
        copy(&at("d"), &at("dd"), true).unwrap();
        assert!(at("dd/e").is_dir(), "a name that begins alike is no descendant");
    }

    #[test]
    fn copy_errors_name_the_reason() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir(at("d")).unwrap();
        fs::write(at("f"), "").unwrap();
        symlink("f", at("link")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("fifo"), rustix::fs::Mode::RWXU).unwrap();
        for (source, destination, expected) in [
            ("none", "x", "No such file or directory (os error 2)"),
            ("d", "x", "fs/copy requires recursive: true when sourcePath is a directory"),
            ("fifo", "x", "fs/copy only supports regular files, directories, and symlinks"),
            ("f", "fifo", "is not a regular file"),
            ("f", "d", "Is a directory (os error 21)"),
            ("f", "no/x", "No such file or directory (os error 2)"),
            ("link", "f", "File exists (os error 17)"),
        ] {
            assert_eq!(copy(&at(source), &at(destination), false).unwrap_err().to_string(), expected, "{source}");
        }
    }
}
