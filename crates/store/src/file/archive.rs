//! Archiving, unarchiving and deleting a thread's file. Each is one rename or removal, so that a thread
//! is always in exactly one place.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::ThreadId;
use crate::error::{Error, Result, place};
use crate::path::{ARCHIVED, RolloutName, SESSIONS};

/// Moves an active rollout to the archive; returns its new path. Its time of change stays.
pub(crate) fn archive(home: &Path, path: &Path, id: ThreadId) -> Result<PathBuf> {
    if !path.starts_with(home.join(SESSIONS)) {
        return Err(misplaced(path, "must be in sessions directory".into()));
    }
    let name = path.file_name().and_then(|name| name.to_str());
    let Some(name) = name.filter(|name| name.ends_with(&format!("{id}.jsonl"))) else {
        return Err(wrong_name(path, id));
    };
    let target = home.join(ARCHIVED).join(name);
    move_file(path, &target)?;
    Ok(target)
}

/// Moves an archived rollout back to the folder of the day in its name; returns its new path. It counts as
/// changed now.
pub(crate) fn unarchive(home: &Path, path: &Path, id: ThreadId) -> Result<PathBuf> {
    let name = RolloutName::of(path).ok_or_else(|| wrong_name(path, id))?;
    let file = path.file_name().unwrap_or_default();
    let target = home.join(name.folder()).join(file);
    move_file(path, &target)?;
    let touched = File::options().append(true).open(&target).and_then(|file| file.set_modified(SystemTime::now()));
    touched.map_err(Error::io(&target))?;
    Ok(target)
}

/// Removes a rollout for good.
pub(crate) fn delete(path: &Path) -> Result<()> {
    fs::remove_file(path).map_err(Error::io(path))
}

fn wrong_name(path: &Path, id: ThreadId) -> Error {
    misplaced(path, format!("does not match thread id {id}"))
}

fn misplaced(path: &Path, rule: String) -> Error {
    Error::Misplaced { place: place(path), rule }
}

fn move_file(from: &Path, to: &Path) -> Result<()> {
    if let Some(folder) = to.parent() {
        loomd_private::create_dir_all(folder).map_err(Error::io(folder))?;
    }
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(Error::Exists { place: place(to) }),
        // Some file systems cannot promise it; then the check and the move are two steps.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => {
            if to.exists() {
                return Err(Error::Exists { place: place(to) });
            }
            fs::rename(from, to).map_err(Error::io(from))
        }
        Err(error) => Err(Error::io(from)(error)),
    }
}
