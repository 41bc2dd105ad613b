//! `fs/remove`. Links are removed, never followed.

use std::fs;
use std::io;
use std::path::Path;

use crate::error::Result;

/// Removes a path. With `force` a missing path is no error.
pub fn remove(path: &Path, recursive: bool, force: bool) -> Result<()> {
    let removed = fs::symlink_metadata(path).and_then(|metadata| match (metadata.is_dir(), recursive) {
        (true, true) => fs::remove_dir_all(path),
        (true, false) => fs::remove_dir(path),
        (false, _) => fs::remove_file(path),
    });
    match removed {
        Err(error) if force && error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => Ok(removed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_named_path_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("full/deep")).unwrap();
        std::os::unix::fs::symlink("full", at("link")).unwrap();
        remove(&at("link"), true, false).unwrap();
        assert!(at("full/deep").exists() && fs::symlink_metadata(at("link")).is_err());
        let check = |name: &str, recursive, force, expected: Result<(), &str>| {
            let done = remove(&at(name), recursive, force).map_err(|error| error.to_string());
            assert_eq!(done, expected.map_err(str::to_owned), "{name}");
        };
        check("full", false, true, Err("Directory not empty (os error 39)"));
        check("full", true, true, Ok(()));
        check("full", true, true, Ok(()));
        check("full", true, false, Err("No such file or directory (os error 2)"));
    }
}
