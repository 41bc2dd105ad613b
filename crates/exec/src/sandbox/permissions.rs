//! From a permission profile to what exactly may be touched, given where it applies.

use std::path::{Path, PathBuf};

use loomd_config::config_toml::FileAccess;
use loomd_config::permissions::{Permissions, Place};

use super::plan::{PLATFORM, real};
use super::{Exception, Sandbox, Surroundings, WritableRoot};

impl Sandbox {
    /// The sandbox of a profile. Commands reach the network only if that is granted to it.
    pub fn of_permissions(permissions: &Permissions, surroundings: Surroundings) -> Self {
        let mut everything = FileAccess::None;
        let mut rules: Vec<(PathBuf, FileAccess)> = Vec::new();
        for rule in &permissions.files {
            match &rule.place {
                Place::Root => everything = rule.access,
                // These belong to the system, so no more than reading is ever granted.
                Place::Minimal if rule.access == FileAccess::None => {}
                Place::Minimal => rules.extend(PLATFORM.iter().map(|path| (path.into(), FileAccess::Read))),
                Place::Tmpdir => {
                    let tmpdir = surroundings.tmpdir.filter(|path| path.is_absolute());
                    rules.extend(tmpdir.map(|path| (path.to_owned(), rule.access)));
                }
                Place::Project(_) | Place::Path(_) => {
                    let path = rule.place.path(surroundings.cwd);
                    rules.extend(path.map(|path| (path.into_path_buf(), rule.access)));
                }
            }
        }
        // Outer ones first: what is said about the inside is said in addition.
        rules.sort_by_key(|(path, _)| path.components().count());
        let readable = match everything {
            FileAccess::None => {
                let read = rules.iter().filter(|(_, access)| *access == FileAccess::Read);
                Some(read.map(|(path, _)| path.clone()).collect())
            }
            FileAccess::Read | FileAccess::Write => None,
        };
        let mut sandbox = Self::with_readable(readable, false);
        if everything == FileAccess::Write {
            sandbox = Self::of_network_only();
        }
        for (path, access) in rules {
            match access {
                FileAccess::Write => sandbox.grant_write(&path),
                FileAccess::Read => sandbox.narrow(&path, true),
                FileAccess::None => sandbox.narrow(&path, false),
            }
        }
        sandbox.protect_absent(surroundings.cwd);
        sandbox
    }

    /// Lets commands only read something, or not even that, whatever they may do around it.
    fn narrow(&mut self, path: &Path, readable: bool) {
        let Some(path) = real(path) else { return };
        if path.symlink_metadata().is_ok() {
            self.writable.retain(|root| root.path != path || path == Path::new("/"));
            self.exceptions.retain(|exception| exception.path != path);
            self.exceptions.push(Exception { path, readable });
            return;
        }
        // What cannot be covered because it is not there must not come to be either.
        let root = self.writable.iter_mut().rev().find(|root| path.starts_with(&root.path));
        if let Some(root) = root.filter(|_| path.parent().is_some_and(Path::is_dir)) {
            root.absent.push(path);
        }
    }

    /// Leaves commands everything but the network.
    pub fn of_network_only() -> Self {
        let root = WritableRoot { path: "/".into(), protected: Vec::new(), absent: Vec::new() };
        Self { writable: vec![root], ..Self::with_readable(None, false) }
    }

    /// Whether there are files that commands cannot touch though their user can.
    pub fn confines_files(&self) -> bool {
        let all = |root: &WritableRoot| root.path == Path::new("/") && root.protected.is_empty();
        !(self.exceptions.is_empty() && self.writable.iter().any(all))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use loomd_config::permissions::FileRule;
    use loomd_protocol::AbsolutePathBuf;

    use super::*;

    /// What can be done to a file: nothing, reading, or writing as well.
    fn rights(sandbox: &Sandbox, path: &Path) -> &'static str {
        match (sandbox.can_read(path), sandbox.can_write(path)) {
            (true, true) => "rw",
            (true, false) => "r",
            (false, false) => "-",
            (false, true) => "w",
        }
    }

    #[test]
    fn of_all_rules_about_a_file_the_innermost_counts() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let cwd = base.join("w");
        for path in ["w/.git", "w/docs/in", "w/secret/open", "shut/w", "tmp"] {
            fs::create_dir_all(base.join(path)).unwrap();
        }
        fs::write(base.join("w/key"), "k").unwrap();
        let rule = |place: Place, access| FileRule { place, access };
        let project = |path: &str, access| rule(Place::Project(path.into()), access);
        let other = |path: &str, access| rule(Place::Path(AbsolutePathBuf::new(base.join(path)).unwrap()), access);
        let inside = [
            project("", FileAccess::Write),
            project("docs", FileAccess::Read),
            project("docs/in", FileAccess::Write),
            project("secret", FileAccess::None),
            project("secret/open", FileAccess::Read),
            project("key", FileAccess::None),
            project("later", FileAccess::None),
            other("shut", FileAccess::None),
            other("shut/w", FileAccess::Write),
            rule(Place::Tmpdir, FileAccess::Write),
        ];
        let check = |first: FileRule, expected: &[(&str, &str)]| {
            let files = std::iter::once(first).chain(inside.iter().cloned()).collect();
            let permissions = Permissions { files, ..Permissions::default() };
            let surroundings = Surroundings { cwd: &cwd, tmpdir: Some(&base.join("tmp")) };
            let sandbox = Sandbox::of_permissions(&permissions, surroundings);
            let found: Vec<_> = expected.iter().map(|(path, _)| (*path, rights(&sandbox, &base.join(path)))).collect();
            assert_eq!(found, expected);
            assert!(sandbox.network_disabled() && sandbox.confines_files());
        };
        let same = [
            ("w/new", "rw"),
            ("w/docs/d", "r"),
            ("w/docs/in/f", "rw"),
            ("w/secret", "-"),
            ("w/secret/open/f", "r"),
            ("w/key", "-"),
            ("w/later", "r"),
            ("shut/f", "-"),
            ("shut/w/f", "rw"),
            ("tmp/f", "rw"),
        ];
        let and = |more: &[(&'static str, &'static str)]| [&same[..], more].concat();
        check(rule(Place::Root, FileAccess::Read), &and(&[("f", "r"), ("w/.git/f", "r"), ("w/.codex", "r")]));
        check(rule(Place::Minimal, FileAccess::Read), &and(&[("f", "-"), ("/usr/f", "r"), ("w/.git/f", "r")]));
        check(rule(Place::Root, FileAccess::Write), &and(&[("f", "rw")]));
    }

    #[test]
    fn a_profile_that_allows_everything_confines_no_files() {
        let files = vec![FileRule { place: Place::Root, access: FileAccess::Write }];
        let permissions = Permissions { files, ..Permissions::default() };
        let surroundings = Surroundings { cwd: Path::new("/"), tmpdir: None };
        assert!(!Sandbox::of_permissions(&permissions, surroundings).confines_files());
    }
}
