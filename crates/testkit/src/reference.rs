//! The reference's program, for tests that run on both servers.

use std::path::{Path, PathBuf};

/// Largest depth of the program in the installed package.
const DEPTH: usize = 8;

/// The program in `LOOMD_REFERENCE`, or the one that `cargo xtask bench` has installed in the build folder of this
/// `CARGO_TARGET_TMPDIR`. `None`, with a line on stderr, if there is none.
pub fn reference(target_tmpdir: &str) -> Option<PathBuf> {
    let named = std::env::var_os("LOOMD_REFERENCE").map(PathBuf::from);
    let found = named.or_else(|| find(&Path::new(target_tmpdir).parent()?.join("reference"), DEPTH));
    if found.is_none() {
        eprintln!("skipped: no reference program; set LOOMD_REFERENCE");
    }
    found
}

/// The native program inside the package.
fn find(folder: &Path, depth: usize) -> Option<PathBuf> {
    let mut folders = Vec::new();
    for entry in std::fs::read_dir(folder).ok()?.flatten() {
        let path = entry.path();
        if path.is_symlink() {
            continue;
        }
        if path.is_file() && path.file_name()? == "codex" && path.components().any(|part| part.as_os_str() == "vendor")
        {
            return Some(path);
        }
        if path.is_dir() && depth > 0 {
            folders.push(path);
        }
    }
    folders.into_iter().find_map(|folder| find(&folder, depth - 1))
}
