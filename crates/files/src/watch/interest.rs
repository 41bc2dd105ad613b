//! From a watched path to the folders that tell about it, and from a change in a folder to what is
//! reported.

use std::ffi::OsStr;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use loomd_protocol::AbsolutePathBuf;

/// Some changes in some folder concern a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interest {
    /// Links resolved: the operating system knows each folder once.
    pub folder: PathBuf,
    pub of: Of,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// The watched path itself is this entry.
    Itself(OsString),
    /// The watched path leads here, through a link.
    Target(OsString),
    /// Every entry is a child of the watched path.
    Children,
    /// The watched path may come to be below this entry, which does not exist.
    Missing(OsString),
}

/// What a change means for a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Meaning {
    pub report: Option<AbsolutePathBuf>,
    /// Other folders may have to be watched now.
    pub look_again: bool,
}

/// The interests of a watch, as things are now.
pub(super) fn interests(path: &AbsolutePathBuf) -> Vec<Interest> {
    let mut found = Vec::new();
    let Some(name) = path.file_name() else {
        return vec![Interest { folder: path.to_path_buf(), of: Of::Children }];
    };
    let parent = path.parent().unwrap_or(path);
    match parent.canonicalize() {
        Ok(folder) if folder.is_dir() => found.push(Interest { folder, of: Of::Itself(name.into()) }),
        _ => found.extend(missing(parent)),
    }
    if let Ok(canonical) = path.canonicalize() {
        if canonical.is_dir() {
            found.push(Interest { folder: canonical, of: Of::Children });
        } else if path.is_symlink()
            && let (Some(folder), Some(name)) = (canonical.parent(), canonical.file_name())
        {
            found.push(Interest { folder: folder.into(), of: Of::Target(name.into()) });
        }
    }
    found
}

/// The nearest folder above that exists, and the name below it that does not.
fn missing(path: &Path) -> Option<Interest> {
    let mut name = path.file_name()?;
    for above in path.ancestors().skip(1) {
        match above.canonicalize() {
            Ok(folder) if folder.is_dir() => return Some(Interest { folder, of: Of::Missing(name.into()) }),
            _ => name = above.file_name()?,
        }
    }
    None
}

impl Interest {
    /// What a change of `changed`, an entry of the folder or the folder itself, means for a watch of `path`.
    /// `structural` changes are those that make or remove names.
    pub fn meaning(&self, path: &AbsolutePathBuf, changed: &Path, structural: bool) -> Option<Meaning> {
        if changed == self.folder {
            let report = (self.of == Of::Children).then(|| path.clone());
            return Some(Meaning { report, look_again: structural });
        }
        let name = changed.file_name().filter(|_| changed.parent() == Some(self.folder.as_path()))?;
        let is = |wanted: &OsStr| name == wanted;
        match &self.of {
            Of::Children => Some(Meaning { report: Some(AbsolutePathBuf::resolve(path, name)), look_again: false }),
            Of::Itself(wanted) => is(wanted).then(|| Meaning { report: Some(path.clone()), look_again: structural }),
            Of::Target(wanted) => is(wanted).then(|| Meaning { report: Some(path.clone()), look_again: structural }),
            Of::Missing(wanted) => is(wanted).then_some(Meaning { report: None, look_again: structural }),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_path_has_folders_that_tell_about_it() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("d")).unwrap();
        fs::write(root.join("d/f"), "").unwrap();
        std::os::unix::fs::symlink("d", root.join("dl")).unwrap();
        std::os::unix::fs::symlink("d/f", root.join("fl")).unwrap();
        let check = |path: &str, expected: &[(&str, Of)]| {
            let expected: Vec<_> = expected
                .iter()
                .map(|(folder, of)| Interest { folder: root.join(folder).components().collect(), of: of.clone() })
                .collect();
            assert_eq!(interests(&AbsolutePathBuf::new(root.join(path)).unwrap()), expected, "{path}");
        };
        check("d", &[("", Of::Itself("d".into())), ("d", Of::Children)]);
        check("d/f", &[("d", Of::Itself("f".into()))]);
        check("d/none", &[("d", Of::Itself("none".into()))]);
        check("dl", &[("", Of::Itself("dl".into())), ("d", Of::Children)]);
        check("dl/f", &[("d", Of::Itself("f".into()))]);
        check("fl", &[("", Of::Itself("fl".into())), ("d", Of::Target("f".into()))]);
        check("d/x/y/z", &[("d", Of::Missing("x".into()))]);
    }

    #[test]
    fn changes_are_reported_as_they_are_spelled_in_the_watch() {
        let path = AbsolutePathBuf::new("/w/link").unwrap();
        let below = |name: &str| AbsolutePathBuf::resolve(&path, name);
        let check = |of: Of, changed: &str, structural, report: Option<AbsolutePathBuf>, look_again| {
            let interest = Interest { folder: "/real".into(), of };
            let meaning = interest.meaning(&path, Path::new(changed), structural);
            assert_eq!(meaning, Some(Meaning { report, look_again }), "{changed}");
        };
        check(Of::Children, "/real/z", true, Some(below("z")), false);
        check(Of::Children, "/real", true, Some(path.clone()), true);
        check(Of::Itself("a".into()), "/real/a", false, Some(path.clone()), false);
        check(Of::Itself("a".into()), "/real/a", true, Some(path.clone()), true);
        check(Of::Missing("a".into()), "/real/a", true, None, true);
        let interest = Interest { folder: "/real".into(), of: Of::Itself("a".into()) };
        for other in ["/real/b", "/real/a/b", "/", "/elsewhere/a"] {
            assert_eq!(interest.meaning(&path, Path::new(other), true), None, "{other}");
        }
    }
}
