//! `fs/getMetadata` and `fs/readDirectory`.

use std::fs;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use loomd_protocol::{FsGetMetadataResponse, FsReadDirectoryEntry};

use crate::error::Result;

/// Follows links, and reports whether the path is one.
pub fn metadata(path: &Path) -> Result<FsGetMetadataResponse> {
    let metadata = fs::metadata(path)?;
    Ok(FsGetMetadataResponse {
        is_directory: metadata.is_dir(),
        is_file: metadata.is_file(),
        created_at_ms: metadata.created().map_or(0, milliseconds),
        modified_at_ms: metadata.modified().map_or(0, milliseconds),
        is_symlink: fs::symlink_metadata(path)?.is_symlink(),
    })
}

/// The direct children, sorted by name. Links count as their targets; dangling ones are left out.
pub fn read_directory(path: &Path) -> Result<Vec<FsReadDirectoryEntry>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        let kind = match entry.file_type() {
            Ok(kind) if !kind.is_symlink() => kind,
            // A link, or removed meanwhile.
            _ => match fs::metadata(entry.path()) {
                Ok(metadata) => metadata.file_type(),
                Err(_) => continue,
            },
        };
        entries.push(FsReadDirectoryEntry {
            file_name: entry.file_name().to_string_lossy().into_owned(),
            is_directory: kind.is_dir(),
            is_file: kind.is_file(),
        });
    }
    entries.sort_unstable_by(|one, other| one.file_name.cmp(&other.file_name));
    Ok(entries)
}

/// Milliseconds since 1970; negative before.
fn milliseconds(time: SystemTime) -> i64 {
    let whole = |duration: std::time::Duration| i64::try_from(duration.as_millis()).unwrap_or(i64::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => whole(since),
        Err(before) => -whole(before.duration()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn entries_are_sorted_and_dangling_links_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("b"), "").unwrap();
        fs::create_dir(at("a")).unwrap();
        symlink("a", at("link")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        let entry =
            |name: &str, is_directory, is_file| FsReadDirectoryEntry { file_name: name.into(), is_directory, is_file };
        assert_eq!(
            read_directory(dir.path()).unwrap(),
            [entry("a", true, false), entry("b", false, true), entry("link", true, false)]
        );
        assert_eq!(read_directory(&at("b")).unwrap_err().to_string(), "Not a directory (os error 20)");
        let link = metadata(&at("link")).unwrap();
        assert_eq!((link.is_directory, link.is_file, link.is_symlink), (true, false, true));
        assert_eq!(metadata(&at("dangling")).unwrap_err().to_string(), "No such file or directory (os error 2)");
    }
}
