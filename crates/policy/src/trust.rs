//! Which programs can be trusted to be what their names say: those that no sandboxed command can have written or
//! replaced.

use std::fmt;
use std::path::Path;

/// Where the programs of the system are.
const SYSTEM: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];

/// The facts that decide whether a program belongs to the system or the user, or may have been written by a sandboxed
/// command.
#[derive(Clone, Copy)]
pub struct Trust<'a> {
    /// The `PATH` in which the names of programs are looked up.
    pub search: &'a str,
    /// Where the command runs.
    pub cwd: &'a Path,
    /// The shell of the user, wherever it is.
    pub login_shell: Option<&'a Path>,
    /// Whether sandboxed commands may, or may have been able to, write to this path.
    pub can_write: &'a dyn Fn(&Path) -> bool,
}

impl fmt::Debug for Trust<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { search, login_shell, .. } = self;
        f.debug_struct("Trust").field("search", search).field("login_shell", login_shell).finish_non_exhaustive()
    }
}

/// The origin of the program that the first word of a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The system or the user.
    Fixed,
    /// The system or the user so far, but a sandboxed command could put another program first in the `PATH`.
    Replaceable,
    /// Possibly a sandboxed command.
    Unknown,
}

impl Trust<'_> {
    /// Whether the first word of a command means the well-known program of that name, by its name or by a path
    /// in a folder of the system, or the user's shell.
    pub fn is_trusted(&self, program: &str) -> bool {
        let path = Path::new(program);
        let known = match program.rsplit_once('/') {
            Some((folder, _)) => SYSTEM.contains(&folder) || self.login_shell == Some(path),
            None => true,
        };
        known && self.origin(program) != Origin::Unknown
    }

    /// The origin of the program that this word runs. A name that is not found in the `PATH` is a builtin of the shell,
    /// or in a folder that only the user's shell has in its `PATH`.
    pub fn origin(&self, program: &str) -> Origin {
        if program.contains('/') {
            return if self.is_fixed(&self.cwd.join(program)) { Origin::Fixed } else { Origin::Unknown };
        }
        let mut origin = Origin::Fixed;
        for folder in self.search.split(':') {
            let folder = self.cwd.join(folder);
            if !self.is_fixed(&folder) {
                origin = Origin::Replaceable;
            }
            let path = folder.join(program);
            if path.exists() {
                return if self.is_fixed(&path) { origin } else { Origin::Unknown };
            }
        }
        origin
    }

    /// Whether neither the path nor its target can be written.
    fn is_fixed(&self, path: &Path) -> bool {
        let real = path.canonicalize();
        !(self.can_write)(path) && !real.is_ok_and(|real| (self.can_write)(&real))
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::Origin::{Fixed, Replaceable, Unknown};
    use super::*;

    #[test]
    fn a_program_that_commands_can_write_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (workspace, tools) = (base.join("workspace"), base.join("tools"));
        for folder in [&workspace, &tools] {
            std::fs::create_dir(folder).unwrap();
        }
        std::fs::write(workspace.join("planted"), "").unwrap();
        std::fs::write(tools.join("mytool"), "").unwrap();
        symlink(workspace.join("planted"), tools.join("linked")).unwrap();
        let writable: &dyn Fn(&Path) -> bool = &|path| path.starts_with(&workspace);
        let shell = tools.join("zsh");
        let check = |search: &[&Path], program: &str, expected: (bool, Origin)| {
            let search: Vec<_> = search.iter().map(|folder| folder.to_str().unwrap()).collect();
            let search = search.join(":");
            let trust = Trust { search: &search, cwd: &workspace, login_shell: Some(&shell), can_write: writable };
            assert_eq!((trust.is_trusted(program), trust.origin(program)), expected, "{program} in {search}");
        };
        let path = |folder: &PathBuf, name: &str| folder.join(name).to_str().unwrap().to_owned();
        check(&[&tools], "mytool", (true, Fixed));
        check(&[&tools, &workspace], "mytool", (true, Fixed));
        check(&[&workspace, &tools], "mytool", (true, Replaceable));
        check(&[&tools, &workspace], "planted", (false, Unknown));
        check(&[&tools], "linked", (false, Unknown));
        check(&[&tools], "absent", (true, Fixed));
        check(&[&tools, Path::new(".")], "absent", (true, Replaceable));
        check(&[Path::new(""), &tools], "mytool", (true, Replaceable));
        check(&[Path::new(""), &tools], "planted", (false, Unknown));
        check(&[&tools], &path(&tools, "mytool"), (false, Fixed));
        check(&[&tools], &path(&workspace, "planted"), (false, Unknown));
        check(&[&tools], &path(&tools, "zsh"), (true, Fixed));
        check(&[&tools], "./mytool", (false, Unknown));
        check(&[&tools], "/bin/ls", (true, Fixed));
        check(&[&tools], "/bin/../bin/ls", (false, Fixed));
        check(&[&tools], "/usr/bin/absent", (true, Fixed));
    }

    #[test]
    fn a_folder_of_the_system_that_commands_can_write_is_not_trusted() {
        let cwd = Path::new("/");
        let trust = Trust { search: "/usr/bin", cwd, login_shell: Some(Path::new("/bin/sh")), can_write: &|_| true };
        for program in ["/bin/ls", "/bin/sh", "ls"] {
            assert!(!trust.is_trusted(program), "{program}");
        }
    }
}
