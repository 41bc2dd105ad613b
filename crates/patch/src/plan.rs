//! [`Plan`]: the changes of a patch, not yet applied. Holds every touched file before and after; each hunk sees the
//! results of the hunks before it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::path::{Path, PathBuf};

use loomd_protocol::{AbsolutePathBuf, FileUpdateChange, PatchChangeKind};

use crate::files::missing;
use crate::lines::{NotFound, patched};
use crate::parse::{Hunk, Patch};
use crate::{File, Files, diff};

/// Plans the changes of a patch. Reads files and changes nothing.
pub fn plan(patch: &Patch, cwd: &Path, files: &dyn Files) -> Result<Plan, PlanError> {
    let mut plan = Plan::default();
    for hunk in &patch.hunks {
        match hunk {
            Hunk::Add { path, content } => plan.add(&absolute(cwd, path), path, content, files)?,
            Hunk::Delete { path } => plan.delete(&absolute(cwd, path), path, files)?,
            Hunk::Update { path, move_to, chunks } => {
                let target = move_to.as_ref().map(|target| (absolute(cwd, target), target.as_str()));
                plan.update(&absolute(cwd, path), path, target, files, |text| patched(text, chunks))?;
            }
        }
    }
    plan.resolve(files)?;
    Ok(plan)
}

/// Why a patch cannot be applied to the files.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error("Failed to read file to update {}: {source}", path.display())]
    ReadUpdated { path: PathBuf, source: io::Error },
    #[error("Failed to read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("Failed to find context '{context}' in {}", path.display())]
    Context { context: String, path: PathBuf },
    #[error("Failed to find expected lines in {}:\n{lines}", path.display())]
    Lines { path: PathBuf, lines: String },
    #[error("Failed to resolve {}: {source}", path.display())]
    Resolve { path: PathBuf, source: io::Error },
    /// The patch changes one file under two names, so one change would be lost.
    #[error("{} and {} are the same file", one.display(), two.display())]
    SameFile { one: PathBuf, two: PathBuf },
}

/// The changes of a patch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// Every touched path.
    pub(crate) files: BTreeMap<PathBuf, NetChange>,
    /// The changes as clients see them.
    changes: Vec<Change>,
    /// Moves of files, in order.
    pub(crate) moves: Vec<(PathBuf, PathBuf)>,
    added: Vec<String>,
    modified: Vec<String>,
    deleted: Vec<String>,
}

/// A path that a plan would write or remove.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchedPath<'a> {
    /// As in the patch, made absolute and without `..`.
    pub path: &'a Path,
    /// The path with links resolved, which is written or removed.
    pub target: &'a Path,
}

/// One path before and after the whole patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NetChange {
    pub before: Option<File>,
    pub after: Option<NewContent>,
    /// The path as the patch last wrote it.
    pub shown: String,
    /// Whether the file was moved away, as opposed to deleted.
    pub moved: bool,
    pub target: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewContent {
    pub text: String,
    /// Set only for a file whose mode comes from another path.
    pub mode: Option<u32>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    path: PathBuf,
    kind: Kind,
    moved_to: Option<PathBuf>,
    before: String,
    after: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Add,
    Delete,
    Update,
}

/// Lines of context in the diffs of a file change.
const CONTEXT: u32 = 1;

impl Plan {
    /// The changes for a `fileChange` item, sorted by path.
    pub fn changes(&self) -> Vec<FileUpdateChange> {
        let mut changes: Vec<_> = self.changes.iter().map(Change::shown).collect();
        changes.sort_by(|one, two| one.path.cmp(&two.path));
        changes
    }

    /// Every path that would be written or removed, sorted; targets of moves included.
    pub fn touched(&self) -> impl Iterator<Item = TouchedPath<'_>> {
        self.files.iter().map(|(path, net)| TouchedPath { path, target: &net.target })
    }

    /// The result for the model after the plan was applied.
    pub fn summary(&self) -> String {
        let mut text = "Success. Updated the following files:\n".to_owned();
        for (letter, paths) in [('A', &self.added), ('M', &self.modified), ('D', &self.deleted)] {
            for path in paths {
                text.push(letter);
                text.push(' ');
                text.push_str(path);
                text.push('\n');
            }
        }
        text
    }

    fn add(&mut self, path: &Path, shown: &str, content: &str, files: &dyn Files) -> Result<(), PlanError> {
        self.net(path, shown, files)?.after = Some(NewContent { text: content.into(), mode: None });
        self.added.push(shown.into());
        let change =
            Change { path: path.into(), kind: Kind::Add, moved_to: None, before: String::new(), after: content.into() };
        match self.changes.iter_mut().find(|change| change.path == path && change.moved_to.is_none()) {
            Some(earlier) => *earlier = change,
            None => self.changes.push(change),
        }
        Ok(())
    }

    fn delete(&mut self, path: &Path, shown: &str, files: &dyn Files) -> Result<(), PlanError> {
        let read = |source| PlanError::Read { path: path.into(), source };
        let (text, _) = self.text(path, files).map_err(read)?;
        let net = self.net(path, shown, files)?;
        net.after = None;
        net.moved = false;
        let before = net.before.as_ref().map(|file| String::from_utf8_lossy(&file.bytes).into_owned());
        self.deleted.push(shown.into());
        match self.changes.iter().rposition(|change| change.location() == path) {
            // A file that the patch itself added is not added.
            Some(at) if self.changes[at].kind == Kind::Add && before.is_none() => {
                self.changes.remove(at);
            }
            Some(at) => {
                let moved = self.changes[at].moved_to.take().is_some();
                self.changes[at].kind = Kind::Delete;
                match before {
                    // A file was moved here over another one. Now both are gone.
                    Some(before) if moved => self.changes.push(Change::delete(path, before)),
                    Some(before) => self.changes[at].before = before,
                    None => {}
                }
            }
            None => self.changes.push(Change::delete(path, text)),
        }
        Ok(())
    }

    fn update(
        &mut self,
        path: &Path,
        shown: &str,
        target: Option<(PathBuf, &str)>,
        files: &dyn Files,
        patched: impl FnOnce(&str) -> Result<String, NotFound>,
    ) -> Result<(), PlanError> {
        let read = |source| PlanError::ReadUpdated { path: path.into(), source };
        let (before, mode) = self.text(path, files).map_err(read)?;
        let after = patched(&before).map_err(|lost| match lost {
            NotFound::Context(context) => PlanError::Context { context, path: path.into() },
            NotFound::Lines(lines) => PlanError::Lines { path: path.into(), lines },
        })?;
        let at = match self.changes.iter().rposition(|change| change.location() == path) {
            Some(at) => at,
            None => {
                let path = path.into();
                self.changes.push(Change { path, kind: Kind::Update, moved_to: None, before, after: String::new() });
                self.changes.len() - 1
            }
        };
        let change = &mut self.changes[at];
        change.after.clone_from(&after);
        match &target {
            Some((target, _)) if change.kind == Kind::Add => change.path.clone_from(target),
            Some((target, _)) => change.moved_to = (*target != change.path).then(|| target.clone()),
            None => {}
        }
        self.modified.push(target.as_ref().map_or(shown, |(_, shown)| *shown).into());
        match target {
            Some((target, target_shown)) if target != path => {
                let source = self.net(path, shown, files)?;
                source.after = None;
                source.moved = true;
                self.net(&target, target_shown, files)?.after = Some(NewContent { text: after, mode: Some(mode) });
                self.moves.push((path.into(), target));
            }
            _ => {
                let net = self.net(path, shown, files)?;
                let mode = net.after.as_ref().and_then(|after| after.mode);
                net.after = Some(NewContent { text: after, mode });
            }
        }
        Ok(())
    }

    /// The text of a file after the hunks so far, and its mode.
    fn text(&self, path: &Path, files: &dyn Files) -> io::Result<(String, u32)> {
        let file = match self.files.get(path) {
            Some(NetChange { after: Some(after), before, .. }) => {
                let mode = after.mode.or(before.as_ref().map(|file| file.mode));
                return Ok((after.text.clone(), mode.unwrap_or(NEW_FILE)));
            }
            // The same error as for a file that never existed.
            Some(NetChange { after: None, .. }) => return Err(io::Error::from_raw_os_error(NOT_FOUND)),
            None => files.read(path)?,
        };
        let invalid = |_| io::Error::new(io::ErrorKind::InvalidData, "stream did not contain valid UTF-8");
        Ok((String::from_utf8(file.bytes).map_err(invalid)?, file.mode))
    }

    /// The entry of a path, without a change at first.
    fn net(&mut self, path: &Path, shown: &str, files: &dyn Files) -> Result<&mut NetChange, PlanError> {
        let net = match self.files.entry(path.into()) {
            Entry::Occupied(entry) => entry.into_mut(),
            Entry::Vacant(entry) => {
                let before = match files.read(path) {
                    Ok(file) => Some(file),
                    // No file; a directory in its place is reported when it is written.
                    Err(error) if missing(&error) || error.kind() == io::ErrorKind::IsADirectory => None,
                    Err(source) => return Err(PlanError::Read { path: path.into(), source }),
                };
                let target = PathBuf::new();
                entry.insert(NetChange { before, after: None, shown: String::new(), moved: false, target })
            }
        };
        shown.clone_into(&mut net.shown);
        Ok(net)
    }

    /// Resolves the links in all paths.
    fn resolve(&mut self, files: &dyn Files) -> Result<(), PlanError> {
        let mut names: BTreeMap<&Path, &Path> = BTreeMap::new();
        for (path, net) in &mut self.files {
            let resolved = files.resolve(path, net.after.is_some());
            net.target = resolved.map_err(|source| PlanError::Resolve { path: path.clone(), source })?;
        }
        for (path, net) in &self.files {
            if let Some(other) = names.insert(&net.target, path) {
                return Err(PlanError::SameFile { one: other.into(), two: path.clone() });
            }
        }
        Ok(())
    }
}

impl Change {
    fn delete(path: &Path, before: String) -> Self {
        Self { path: path.into(), kind: Kind::Delete, moved_to: None, before, after: String::new() }
    }

    /// The path of the file after the hunks so far.
    fn location(&self) -> &Path {
        self.moved_to.as_ref().unwrap_or(&self.path)
    }

    fn shown(&self) -> FileUpdateChange {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let (kind, diff) = match self.kind {
            Kind::Add => (PatchChangeKind::Add, self.after.clone()),
            Kind::Delete => (PatchChangeKind::Delete, self.before.clone()),
            Kind::Update => {
                let move_path = self.moved_to.as_deref().map(text);
                let mut diff = diff::unified(&self.before, &self.after, CONTEXT);
                if let Some(target) = &move_path {
                    diff.push_str("\n\nMoved to: ");
                    diff.push_str(target);
                }
                (PatchChangeKind::Update { move_path }, diff)
            }
        };
        FileUpdateChange { path: text(&self.path), kind, diff }
    }
}

/// The mode of a file that the patch adds, for a hunk that moves it.
const NEW_FILE: u32 = 0o644;

/// `ENOENT`.
const NOT_FOUND: i32 = 2;

fn absolute(cwd: &Path, path: &str) -> PathBuf {
    let path = cwd.join(path);
    AbsolutePathBuf::new(&path).map_or(path, AbsolutePathBuf::into_path_buf)
}
