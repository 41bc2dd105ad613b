//! Skill folders: copied unless the target has one of the same name, with their descriptions rewritten for this agent.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::MAX_BYTES;
use super::text::renamed;

/// Returns the skill folders of `source` that `target` lacks, by name.
pub(super) fn missing(source: &Path, target: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(source) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(error),
    };
    let mut folders = Vec::new();
    for entry in entries {
        let entry = entry?;
        if entry.file_type()?.is_dir() && !target.join(entry.file_name()).exists() {
            folders.push(entry.path());
        }
    }
    folders.sort();
    Ok(folders)
}

pub(super) fn copy(source: &Path, target: &Path) -> io::Result<()> {
    for folder in missing(source, target)? {
        if let Some(name) = folder.file_name() {
            copy_folder(&folder, &target.join(name))?;
        }
    }
    Ok(())
}

/// Copies a folder without symlinks, which would not resolve from the new location.
fn copy_folder(source: &Path, target: &Path) -> io::Result<()> {
    let mut folders = vec![(source.to_path_buf(), target.to_path_buf())];
    while let Some((from, to)) = folders.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let (from, to) = (entry.path(), to.join(entry.file_name()));
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push((from, to));
            } else if kind.is_file() {
                let is_description = entry.file_name().eq_ignore_ascii_case("SKILL.md");
                let text = is_description.then(|| loomd_regular::read_to_string(&from, MAX_BYTES).ok()).flatten();
                match text {
                    Some(text) => fs::write(to, renamed(&text))?,
                    None => loomd_regular::copy(&from, &to)?,
                }
            }
        }
    }
    Ok(())
}
