//! Applies a plan, all of it or nothing: the steps before a failed one are undone.

use std::io;
use std::path::{Path, PathBuf};

use crate::plan::{NetChange, Plan};
use crate::{File, FilesMut};

/// Why a plan was not applied. The text is for the model.
#[derive(Debug, thiserror::Error)]
#[error("Failed to {step} {shown}: {source}{}", left_behind(left))]
pub struct ApplyError {
    pub step: Step,
    /// The path as the patch has it.
    pub shown: String,
    pub source: io::Error,
    /// Paths that could not be restored.
    pub left: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The file has changed since the plan was made. A new plan may succeed.
    Compare,
    CreateParents,
    Write,
    Delete,
    RemoveOriginal,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Compare => "apply the patch to",
            Self::CreateParents => "create parent directories for",
            Self::Write => "write file",
            Self::Delete => "delete file",
            Self::RemoveOriginal => "remove original",
        })
    }
}

fn left_behind(left: &[PathBuf]) -> String {
    if left.is_empty() {
        return String::new();
    }
    let paths: Vec<_> = left.iter().map(|path| path.display().to_string()).collect();
    format!(". These could not be put back as they were: {}", paths.join(", "))
}

impl Plan {
    /// Changes the files, if they are still what they were when the plan was made.
    pub fn apply(&self, files: &dyn FilesMut) -> Result<(), ApplyError> {
        self.compare(files)?;
        let mut done = Vec::new();
        let Err((step, net, source)) = self.execute(files, &mut done) else { return Ok(()) };
        let left = done.into_iter().rev().filter_map(|done| done.undo(files)).collect();
        Err(ApplyError { step, shown: net.shown.clone(), source, left })
    }

    fn compare(&self, files: &dyn FilesMut) -> Result<(), ApplyError> {
        for (path, net) in &self.files {
            let now = files.read(path).ok();
            let target = files.resolve(path, net.after.is_some()).ok();
            if now != net.before || target.as_ref() != Some(&net.target) {
                let source = io::Error::other("it has changed since the patch was checked");
                return Err(ApplyError { step: Step::Compare, shown: net.shown.clone(), source, left: Vec::new() });
            }
        }
        Ok(())
    }

    fn execute<'a>(
        &'a self,
        files: &dyn FilesMut,
        done: &mut Vec<UndoStep<'a>>,
    ) -> Result<(), (Step, &'a NetChange, io::Error)> {
        let writes = || self.files.values().filter_map(|net| Some((net, net.after.as_ref()?)));
        let removals = || self.files.values().filter(|net| net.after.is_none() && net.before.is_some());
        // Files in place of a new folder are removed first. All others are removed last, after their content is
        // written elsewhere.
        let in_the_way = |net: &NetChange| {
            writes().any(|(other, _)| other.target != net.target && other.target.starts_with(&net.target))
        };
        for net in removals().filter(|net| in_the_way(net)) {
            remove(net, files, done)?;
        }
        for (net, after) in writes() {
            create_parents(&net.target, files, done).map_err(|error| (Step::CreateParents, net, error))?;
            files.write(&net.target, after.text.as_bytes(), after.mode).map_err(|error| (Step::Write, net, error))?;
            done.push(UndoStep::Wrote(net));
        }
        for net in removals().filter(|net| !in_the_way(net)) {
            remove(net, files, done)?;
        }
        Ok(())
    }
}

fn remove<'a>(
    net: &'a NetChange,
    files: &dyn FilesMut,
    done: &mut Vec<UndoStep<'a>>,
) -> Result<(), (Step, &'a NetChange, io::Error)> {
    let step = if net.moved { Step::RemoveOriginal } else { Step::Delete };
    files.remove(&net.target).map_err(|error| (step, net, error))?;
    done.push(UndoStep::Removed(net));
    Ok(())
}

fn create_parents<'a>(path: &'a Path, files: &dyn FilesMut, done: &mut Vec<UndoStep<'a>>) -> io::Result<()> {
    let missing: Vec<_> = path.ancestors().skip(1).take_while(|folder| !files.is_dir(folder)).collect();
    for folder in missing.into_iter().rev() {
        files.create_dir(folder)?;
        done.push(UndoStep::Created(folder));
    }
    Ok(())
}

enum UndoStep<'a> {
    Created(&'a Path),
    Wrote(&'a NetChange),
    Removed(&'a NetChange),
}

impl UndoStep<'_> {
    /// Returns the path if it could not be restored.
    fn undo(self, files: &dyn FilesMut) -> Option<PathBuf> {
        let (path, result) = match self {
            Self::Created(folder) => (folder, files.remove_dir(folder)),
            Self::Wrote(NetChange { target, before: None, .. }) => (target.as_path(), files.remove(target)),
            Self::Wrote(NetChange { target, before: Some(File { bytes, mode }), .. })
            | Self::Removed(NetChange { target, before: Some(File { bytes, mode }), .. }) => {
                (target.as_path(), files.write(target, bytes, Some(*mode)))
            }
            Self::Removed(NetChange { target, before: None, .. }) => (target.as_path(), Ok(())),
        };
        result.is_err().then(|| path.to_owned())
    }
}
