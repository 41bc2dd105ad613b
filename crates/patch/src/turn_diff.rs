//! [`TurnDiff`]: the net change of a turn as one git diff of all files that its patches touched, against their
//! content before the first of them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use sha1::{Digest, Sha1};

use crate::{File, Files, Plan, diff};

/// The folder that paths in a turn's diff are relative to: the root of the repository, or else `cwd`.
pub fn diff_base(cwd: &Path, files: &dyn Files) -> PathBuf {
    cwd.ancestors().find(|folder| files.exists(&folder.join(".git"))).unwrap_or(cwd).to_owned()
}

/// Collects the files that a turn's patches touch.
#[derive(Clone, Debug)]
pub struct TurnDiff {
    base: PathBuf,
    /// Each touched path before the turn.
    baseline: BTreeMap<PathBuf, Option<DiffSide>>,
    /// The original path of each moved file.
    origins: BTreeMap<PathBuf, PathBuf>,
}

/// Larger files are listed without their lines.
const MAX_SHOWN_BYTES: usize = 4 << 20;

/// Lines of context, as in git.
const CONTEXT: u32 = 3;

impl TurnDiff {
    pub fn new(base: PathBuf) -> Self {
        Self { base, baseline: BTreeMap::new(), origins: BTreeMap::new() }
    }

    /// Records the files of a plan as they were before it. To be called for each applied plan, in order.
    pub fn note(&mut self, plan: &Plan) {
        for (path, net) in &plan.files {
            self.baseline.entry(path.clone()).or_insert_with(|| net.before.as_ref().map(DiffSide::new));
        }
        for (from, to) in &plan.moves {
            let origin = self.origins.remove(from).unwrap_or_else(|| from.clone());
            self.origins.insert(to.clone(), origin);
        }
    }

    /// The diff against the current files. Empty if they are unchanged.
    pub fn unified(&self, files: &dyn Files) -> String {
        let now = |path: &PathBuf| files.read(path).ok().as_ref().map(DiffSide::new);
        let mut states: BTreeMap<_, _> =
            self.baseline.iter().map(|(path, before)| (path, (before.as_ref(), now(path)))).collect();

        // A deleted and a new file form one entry if the first was moved to the second.
        let mut renamed = BTreeMap::new();
        for (to, from) in &self.origins {
            if let Some((None, Some(_))) = states.get(to)
                && let Some((Some(_), None)) = states.get(from)
                && let Some((before, _)) = states.remove(from)
                && let Some((new, _)) = states.get_mut(to)
            {
                *new = before;
                renamed.insert(to, from);
            }
        }

        let mut text = String::new();
        for (path, (before, after)) in &states {
            let from = renamed.get(path).copied().unwrap_or(path);
            if *before != after.as_ref() || from != *path {
                // Writing to a string does not fail.
                let _ = entry(&mut text, &self.name(from), &self.name(path), *before, after.as_ref());
            }
        }
        text
    }

    /// The path relative to the base. A path outside of it loses its first slash, as `a/` is put before it.
    fn name(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.base).or_else(|_| path.strip_prefix("/")).unwrap_or(path);
        relative.to_string_lossy().into_owned()
    }
}

fn entry(
    text: &mut String,
    from: &str,
    to: &str,
    before: Option<&DiffSide>,
    after: Option<&DiffSide>,
) -> std::fmt::Result {
    let [old_name, new_name] = [quoted("a/", from), quoted("b/", to)];
    writeln!(text, "diff --git {old_name} {new_name}")?;
    match (before, after) {
        (None, Some(new)) => writeln!(text, "new file mode {}", new.mode())?,
        (Some(old), None) => writeln!(text, "deleted file mode {}", old.mode())?,
        (Some(old), Some(new)) if old.executable != new.executable => {
            writeln!(text, "old mode {}\nnew mode {}", old.mode(), new.mode())?;
        }
        _ => {}
    }
    if let (Some(old), Some(new)) = (before, after)
        && from != to
    {
        writeln!(text, "similarity index {}%", old.similarity(new))?;
        writeln!(text, "rename from {}\nrename to {}", quoted("", from), quoted("", to))?;
    }
    let id = |side: Option<&DiffSide>| side.map_or("0".repeat(40), |side| side.id.clone());
    let [old_id, new_id] = [before, after].map(id);
    if old_id == new_id {
        return Ok(());
    }
    writeln!(text, "index {old_id}..{new_id}")?;
    let old_name = if before.is_some() { old_name } else { "/dev/null".into() };
    let new_name = if after.is_some() { new_name } else { "/dev/null".into() };
    let lines = |side: Option<&DiffSide>| side.map_or(Some(String::new()), |side| side.text.clone());
    match (lines(before), lines(after)) {
        (Some(old), Some(new)) => {
            let hunks = diff::unified(&old, &new, CONTEXT);
            if !hunks.is_empty() {
                writeln!(text, "--- {old_name}\n+++ {new_name}")?;
            }
            text.push_str(&hunks);
            Ok(())
        }
        _ => writeln!(text, "Binary files {old_name} and {new_name} differ"),
    }
}

/// A path in git's notation: quoted if it has special characters.
fn quoted<'a>(prefix: &str, path: &'a str) -> Cow<'a, str> {
    if !path.chars().any(|c| c.is_control() || c == '"' || c == '\\') {
        return format!("{prefix}{path}").into();
    }
    let mut text = format!("\"{prefix}");
    for c in path.chars() {
        match c {
            '"' | '\\' => text.extend(['\\', c]),
            '\n' => text.push_str("\\n"),
            '\t' => text.push_str("\\t"),
            c if c.is_ascii_control() => text.push_str(&format!("\\{:03o}", u32::from(c))),
            c => text.push(c),
        }
    }
    text.push('"');
    text.into()
}

/// A file on one side of a diff.
#[derive(Clone, Debug, PartialEq, Eq)]
struct DiffSide {
    /// The git object id of the content.
    id: String,
    executable: bool,
    size: usize,
    /// `None` for binary and very large files.
    text: Option<String>,
}

impl DiffSide {
    fn new(file: &File) -> Self {
        let size = file.bytes.len();
        let hash = Sha1::new().chain_update(format!("blob {size}\0")).chain_update(&file.bytes).finalize();
        let shown = size <= MAX_SHOWN_BYTES && !file.bytes.contains(&0);
        Self {
            id: hash.iter().map(|byte| format!("{byte:02x}")).collect(),
            executable: file.mode & 0o100 != 0,
            size,
            text: shown.then(|| String::from_utf8(file.bytes.clone()).ok()).flatten(),
        }
    }

    fn mode(&self) -> &'static str {
        if self.executable { "100755" } else { "100644" }
    }

    /// Percentage of the larger file.
    fn similarity(&self, other: &Self) -> usize {
        let kept = match (&self.text, &other.text) {
            _ if self.id == other.id => return 100,
            (Some(one), Some(two)) => diff::kept(one, two),
            _ => 0,
        };
        kept * 100 / self.size.max(other.size).max(1)
    }
}
