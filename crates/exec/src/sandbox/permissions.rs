//! Makes the sandbox of a permission profile.

use std::path::{Path, PathBuf};

use loomd_config::config_toml::FileAccess;
use loomd_config::permissions::{Permissions, RulePath};

use super::plan::{PLATFORM, real};
use super::roots::{Grant, Root};
use super::{Exception, Sandbox, Surroundings, WritableRoot};

impl Sandbox {
    /// The sandbox of a profile. Commands reach the network only if that is granted to it.
    pub fn of_permissions(permissions: &Permissions, surroundings: Surroundings) -> Self {
        let mut everything = FileAccess::None;
        let mut rules: Vec<(PathBuf, FileAccess)> = Vec::new();
        for rule in &permissions.files {
            match &rule.path {
                RulePath::Root => everything = rule.access,
                // The folders of the system are never granted for more than reading.
                RulePath::Minimal if rule.access == FileAccess::None => {}
                RulePath::Minimal => rules.extend(PLATFORM.iter().map(|path| (path.into(), FileAccess::Read))),
                RulePath::Tmpdir => {
                    let tmpdir = surroundings.tmpdir.filter(|path| path.is_absolute());
                    rules.extend(tmpdir.map(|path| (path.to_owned(), rule.access)));
                }
                RulePath::Project(_) | RulePath::Path(_) => {
                    let path = rule.path.resolve(surroundings.cwd);
                    rules.extend(path.map(|path| (path.into_path_buf(), rule.access)));
                }
            }
        }
        // Outer paths first: a rule about an inner path adds to that about the outer one.
        rules.sort_by_key(|(path, _)| path.components().count());
        let mut sandbox = match everything {
            FileAccess::Write => Self::of_network_only(),
            FileAccess::None | FileAccess::Read => Self::new_read_only(false),
        };
        let grants: Vec<_> = rules.into_iter().map(|(path, access)| (surroundings.find(&path), access)).collect();
        let writable = |sandbox: &mut Self, late: bool| {
            for (grant, access) in grants.iter().filter(|(grant, _)| grant.root.is_none() == late) {
                match access {
                    FileAccess::Write => sandbox.grant_write(grant),
                    FileAccess::Read => sandbox.narrow(grant, true),
                    FileAccess::None => sandbox.narrow(grant, false),
                }
            }
        };
        // Paths that existed when they were first used come first: a command may have created the others in them since.
        writable(&mut sandbox, false);
        writable(&mut sandbox, true);
        if everything == FileAccess::None {
            sandbox.readable = Some(Vec::new());
            for (grant, _) in grants.iter().filter(|(_, access)| *access == FileAccess::Read) {
                sandbox.grant_read(grant);
            }
        }
        sandbox.unix_sockets = permissions.network.dangerously_allow_all_unix_sockets == Some(true);
        sandbox.protect_configuration(surroundings);
        sandbox.conceal(surroundings.home);
        sandbox
    }

    /// Makes a path read-only or inaccessible, whatever is granted around it.
    fn narrow(&mut self, grant: &Grant, readable: bool) {
        if let Some(Root { path, identity, .. }) = grant.root.clone().or_else(|| Root::resolve(&grant.path)) {
            self.writable.retain(|root| root.path != path || path == Path::new("/"));
            self.exceptions.retain(|exception| exception.path != path);
            self.exceptions.push(Exception { path, identity, readable });
            return;
        }
        let Some(path) = real(&grant.path) else { return };
        // A path that does not exist cannot be covered, so commands must not create it.
        let root = self.writable.iter_mut().rev().find(|root| path.starts_with(&root.path));
        if let Some(root) = root.filter(|_| path.parent().is_some_and(Path::is_dir)) {
            root.absent.push(path);
        }
    }

    /// A sandbox that restricts the network and no files.
    pub fn of_network_only() -> Self {
        let root = WritableRoot { path: "/".into(), identity: None, protected: Vec::new(), absent: Vec::new() };
        Self { writable: vec![root], ..Self::new_read_only(false) }
    }

    /// Whether there are files that commands cannot access although their user can.
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
    fn the_innermost_rule_about_a_file_applies() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let cwd = base.join("w");
        for path in ["w/.git", "w/docs/in", "w/secret/open", "shut/w", "tmp"] {
            fs::create_dir_all(base.join(path)).unwrap();
        }
        fs::write(base.join("w/key"), "k").unwrap();
        let rule = |place: RulePath, access| FileRule { path: place, access };
        let project = |path: &str, access| rule(RulePath::Project(path.into()), access);
        let other = |path: &str, access| rule(RulePath::Path(AbsolutePathBuf::new(base.join(path)).unwrap()), access);
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
            rule(RulePath::Tmpdir, FileAccess::Write),
        ];
        let check = |first: FileRule, expected: &[(&str, &str)]| {
            let files = std::iter::once(first).chain(inside.iter().cloned()).collect();
            let permissions = Permissions { files, ..Permissions::default() };
            let surroundings = Surroundings { tmpdir: Some(&base.join("tmp")), ..Surroundings::new(&cwd) };
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
        check(rule(RulePath::Root, FileAccess::Read), &and(&[("f", "r"), ("w/.git/f", "r"), ("w/.codex", "r")]));
        check(rule(RulePath::Minimal, FileAccess::Read), &and(&[("f", "-"), ("/usr/f", "r"), ("w/.git/f", "r")]));
        check(rule(RulePath::Root, FileAccess::Write), &and(&[("f", "rw")]));
    }

    #[test]
    fn a_profile_that_allows_everything_confines_no_files() {
        let files = vec![FileRule { path: RulePath::Root, access: FileAccess::Write }];
        let permissions = Permissions { files, ..Permissions::default() };
        let surroundings = Surroundings::new(Path::new("/"));
        assert!(!Sandbox::of_permissions(&permissions, surroundings).confines_files());
    }
}
