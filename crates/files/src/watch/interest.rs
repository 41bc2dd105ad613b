//! Maps a watched path to the folders to watch for it, and a change in a folder to the paths to report.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use loomd_protocol::AbsolutePathBuf;

/// A folder whose changes concern a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    /// With links resolved: the operating system has one watch per folder.
    pub folder: PathBuf,
    pub of: Relation,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// The watched path itself is this entry.
    Itself(OsString),
    /// The watched path is a link to this entry.
    Target(OsString),
    /// Every entry is a child of the watched path.
    Children,
    /// The watched path may be created below this entry, which does not exist.
    Missing(OsString),
}

/// What a change means for a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Effect {
    pub report: Option<AbsolutePathBuf>,
    /// Whether other folders may have to be watched now.
    pub recheck: bool,
}

/// The current interests of a watch.
pub(super) fn interests(path: &AbsolutePathBuf) -> Vec<Interest> {
    let mut found = Vec::new();
    let Some(name) = path.file_name() else {
        return vec![Interest { folder: path.to_path_buf(), of: Relation::Children }];
    };
    let parent = path.parent().unwrap_or(path);
    match parent.canonicalize() {
        Ok(folder) if folder.is_dir() => found.push(Interest { folder, of: Relation::Itself(name.into()) }),
        _ => found.extend(missing(parent)),
    }
    if let Ok(canonical) = path.canonicalize() {
        if canonical.is_dir() {
            found.push(Interest { folder: canonical, of: Relation::Children });
        } else if path.is_symlink()
            && let (Some(folder), Some(name)) = (canonical.parent(), canonical.file_name())
        {
            found.push(Interest { folder: folder.into(), of: Relation::Target(name.into()) });
        }
    }
    found
}

/// The nearest existing folder above, and the missing name below it.
fn missing(path: &Path) -> Option<Interest> {
    let mut name = path.file_name()?;
    for above in path.ancestors().skip(1) {
        match above.canonicalize() {
            Ok(folder) if folder.is_dir() => return Some(Interest { folder, of: Relation::Missing(name.into()) }),
            _ => name = above.file_name()?,
        }
    }
    None
}

impl Interest {
    /// The effect of a change of `changed`, an entry of the folder or the folder itself, on a watch of `path`.
    /// `structural` changes create or remove names.
    pub fn effect(&self, path: &AbsolutePathBuf, changed: &Path, structural: bool) -> Option<Effect> {
        if changed == self.folder {
            let report = (self.of == Relation::Children).then(|| path.clone());
            return Some(Effect { report, recheck: structural });
        }
        let name = changed.file_name().filter(|_| changed.parent() == Some(self.folder.as_path()))?;
        let is = |wanted: &OsStr| name == wanted;
        match &self.of {
            Relation::Children => Some(Effect { report: Some(AbsolutePathBuf::resolve(path, name)), recheck: false }),
            Relation::Itself(wanted) => is(wanted).then(|| Effect { report: Some(path.clone()), recheck: structural }),
            Relation::Target(wanted) => is(wanted).then(|| Effect { report: Some(path.clone()), recheck: structural }),
            Relation::Missing(wanted) => is(wanted).then_some(Effect { report: None, recheck: structural }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_path_has_folders_to_watch() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/f"), "").unwrap();
        std::os::unix::fs::symlink("d", root.join("dl")).unwrap();
        std::os::unix::fs::symlink("d/f", root.join("fl")).unwrap();
        let check = |path: &str, expected: &[(&str, Relation)]| {
            let expected: Vec<_> = expected
                .iter()
                .map(|(folder, of)| Interest { folder: root.join(folder).components().collect(), of: of.clone() })
                .collect();
            assert_eq!(interests(&AbsolutePathBuf::new(root.join(path)).unwrap()), expected, "{path}");
        };
        check("d", &[("", Relation::Itself("d".into())), ("d", Relation::Children)]);
        check("d/f", &[("d", Relation::Itself("f".into()))]);
        check("d/none", &[("d", Relation::Itself("none".into()))]);
        check("dl", &[("", Relation::Itself("dl".into())), ("d", Relation::Children)]);
        check("dl/f", &[("d", Relation::Itself("f".into()))]);
        check("fl", &[("", Relation::Itself("fl".into())), ("d", Relation::Target("f".into()))]);
        check("d/x/y/z", &[("d", Relation::Missing("x".into()))]);
    }

    #[test]
    fn changes_are_reported_in_the_spelling_of_the_watch() {
        let path = AbsolutePathBuf::new("/w/link").unwrap();
        let below = |name: &str| AbsolutePathBuf::resolve(&path, name);
        let check = |of: Relation, changed: &str, structural, report: Option<AbsolutePathBuf>, recheck| {
            let interest = Interest { folder: "/real".into(), of };
            let effect = interest.effect(&path, Path::new(changed), structural);
            assert_eq!(effect, Some(Effect { report, recheck }), "{changed}");
        };
        check(Relation::Children, "/real/z", true, Some(below("z")), false);
        check(Relation::Children, "/real", true, Some(path.clone()), true);
        check(Relation::Itself("a".into()), "/real/a", false, Some(path.clone()), false);
        check(Relation::Itself("a".into()), "/real/a", true, Some(path.clone()), true);
        check(Relation::Missing("a".into()), "/real/a", true, None, true);
        let interest = Interest { folder: "/real".into(), of: Relation::Itself("a".into()) };
        for other in ["/real/b", "/real/a/b", "/", "/elsewhere/a"] {
            assert_eq!(interest.effect(&path, Path::new(other), true), None, "{other}");
        }
    }
}
