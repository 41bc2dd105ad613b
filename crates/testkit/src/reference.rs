//! The reference's program, for tests that run on both servers.

use std::path::{Path, PathBuf};

/// How far down in the installed package the program lies, at most.
const DEPTH: usize = 8;

/// The program that `LOOMD_REFERENCE` names, or the one that `cargo xtask bench` has installed in the folder of the build
/// whose `CARGO_TARGET_TMPDIR` this is. Without one there is nothing to compare with, and a line says so.
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
