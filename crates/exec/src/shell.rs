//! The shell that runs a script, and its arguments.
#![allow(unsafe_code)]

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;

/// A shell of a known kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shell {
    pub kind: ShellKind,
    pub path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShellKind {
    Zsh,
    Bash,
    Sh,
    PowerShell,
}

impl ShellKind {
    fn of(path: &Path) -> Option<Self> {
        match path.file_name()?.to_str()? {
            "zsh" => Some(Self::Zsh),
            "bash" => Some(Self::Bash),
            "sh" => Some(Self::Sh),
            "pwsh" | "powershell" => Some(Self::PowerShell),
            _ => None,
        }
    }
}

impl Shell {
    /// The login shell of the user of this process, else the best one that is installed. `search` is a `PATH`.
    pub fn of_user(search: &str) -> Self {
        Self::select(login_shell().as_deref(), search, &Path::exists)
    }

    fn select(login_shell: Option<&Path>, search: &str, exists: &dyn Fn(&Path) -> bool) -> Self {
        if let Some(path) = login_shell
            && let Some(kind) = ShellKind::of(path)
            && exists(path)
        {
            return Self { kind, path: path.to_owned() };
        }
        let found = ["bash", "zsh"].into_iter().find_map(|name| look_up(name, search, exists));
        found.unwrap_or_else(Self::sh)
    }

    /// The shell with a path or name. A name is looked up, first as that of this shell.
    pub fn named(&self, name: &str, search: &str) -> Self {
        self.choose(name, search, &Path::exists)
    }

    fn choose(&self, name: &str, search: &str, exists: &dyn Fn(&Path) -> bool) -> Self {
        let path = Path::new(name);
        let Some(kind) = ShellKind::of(path) else { return Self::sh() };
        if name.contains('/') && exists(path) {
            return Self { kind, path: path.to_owned() };
        }
        if self.kind == kind {
            return self.clone();
        }
        let base = path.file_name().and_then(OsStr::to_str).unwrap_or(name);
        look_up(base, search, exists).unwrap_or_else(Self::sh)
    }

    fn sh() -> Self {
        Self { kind: ShellKind::Sh, path: "/bin/sh".into() }
    }

    /// The arguments that run a script. A login shell reads the user's profile first.
    pub fn argv(&self, script: &str, login: bool) -> Vec<String> {
        let shell = self.path.to_string_lossy().into_owned();
        let flags: &[&str] = match (self.kind, login) {
            (ShellKind::PowerShell, true) => &["-Command"],
            (ShellKind::PowerShell, false) => &["-NoProfile", "-Command"],
            (_, true) => &["-lc"],
            (_, false) => &["-c"],
        };
        let flags = flags.iter().map(ToString::to_string);
        [shell].into_iter().chain(flags).chain([script.to_owned()]).collect()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("login shell is disabled by config; omit `login` or set it to false.")]
pub struct LoginShellDisabled;

/// Whether a script runs in a login shell, by the request and the configuration.
pub fn login(requested: Option<bool>, allowed: bool) -> Result<bool, LoginShellDisabled> {
    match requested {
        Some(true) if !allowed => Err(LoginShellDisabled),
        requested => Ok(requested.unwrap_or(allowed)),
    }
}

fn look_up(name: &str, search: &str, exists: &dyn Fn(&Path) -> bool) -> Option<Shell> {
    let kind = ShellKind::of(Path::new(name))?;
    let folders = search.split(':').filter(|folder| !folder.is_empty()).chain(["/bin"]);
    let path = folders.map(|folder| Path::new(folder).join(name)).find(|path| exists(path))?;
    Some(Shell { kind, path })
}

/// The login shell in the user database. `$SHELL` may be another one, inherited from the parent process.
fn login_shell() -> Option<PathBuf> {
    // More than any entry needs; a longer one is treated as missing.
    let mut buffer = [0; 16 * 1024];
    let mut result = ptr::null_mut();
    // SAFETY: all pointers are to live memory of the given length. On success `result` points to `entry`, whose
    // strings lie in `buffer` and end with NUL.
    unsafe {
        let mut entry: libc::passwd = std::mem::zeroed();
        let code = libc::getpwuid_r(libc::getuid(), &mut entry, buffer.as_mut_ptr(), buffer.len(), &mut result);
        if code != 0 || result.is_null() || entry.pw_shell.is_null() {
            return None;
        }
        let shell = CStr::from_ptr(entry.pw_shell).to_bytes();
        Some(PathBuf::from(OsStr::from_bytes(shell)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEARCH: &str = "/opt/bin:/usr/bin";

    fn exists_in<'a>(files: &'a [&'a str]) -> impl Fn(&Path) -> bool + 'a {
        |path| files.iter().any(|file| Path::new(file) == path)
    }

    #[test]
    fn the_login_shell_is_selected_when_its_kind_is_known() {
        let check = |login_shell: Option<&str>, files: &[&str], expected: &str| {
            let shell = Shell::select(login_shell.map(Path::new), SEARCH, &exists_in(files));
            assert_eq!(shell.path, Path::new(expected), "{login_shell:?} {files:?}");
        };
        check(Some("/bin/zsh"), &["/bin/zsh", "/bin/bash"], "/bin/zsh");
        check(Some("/bin/sh"), &["/bin/sh", "/bin/bash"], "/bin/sh");
        check(Some("/bin/zsh"), &["/bin/bash"], "/bin/bash");
        check(Some("/usr/bin/fish"), &["/usr/bin/fish", "/usr/bin/bash", "/usr/bin/zsh"], "/usr/bin/bash");
        check(Some("/usr/sbin/nologin"), &["/usr/bin/zsh"], "/usr/bin/zsh");
        check(None, &[], "/bin/sh");
        check(None, &["/opt/bin/zsh", "/bin/bash"], "/bin/bash");
    }

    #[test]
    fn a_named_shell_is_a_path_or_is_looked_up() {
        let user = Shell { kind: ShellKind::Zsh, path: "/home/me/zsh".into() };
        let check = |name: &str, files: &[&str], expected: &str| {
            assert_eq!(user.choose(name, SEARCH, &exists_in(files)).path, Path::new(expected), "{name} {files:?}");
        };
        check("/x/bash", &["/x/bash", "/bin/bash"], "/x/bash");
        check("/x/bash", &["/bin/bash"], "/bin/bash");
        check("bash", &["/opt/bin/bash", "/bin/bash"], "/opt/bin/bash");
        check("zsh", &["/opt/bin/zsh"], "/home/me/zsh");
        check("bash", &[], "/bin/sh");
        check("fish", &["/opt/bin/fish"], "/bin/sh");
        check("", &[], "/bin/sh");
    }

    #[test]
    fn a_shell_gets_the_flags_of_its_kind() {
        let check = |kind: ShellKind, login: bool, expected: &[&str]| {
            assert_eq!(Shell { kind, path: "/s".into() }.argv("ls -a", login), expected);
        };
        check(ShellKind::Bash, true, &["/s", "-lc", "ls -a"]);
        check(ShellKind::Sh, false, &["/s", "-c", "ls -a"]);
        check(ShellKind::PowerShell, true, &["/s", "-Command", "ls -a"]);
        check(ShellKind::PowerShell, false, &["/s", "-NoProfile", "-Command", "ls -a"]);
    }

    #[test]
    fn a_login_shell_can_be_disabled() {
        let cases = [(None, true), (None, false), (Some(true), true), (Some(true), false), (Some(false), true)];
        let seen = cases.map(|(requested, allowed)| login(requested, allowed));
        assert_eq!(seen, [Ok(true), Ok(false), Ok(true), Err(LoginShellDisabled), Ok(false)]);
    }

    #[test]
    fn the_user_shell_falls_back_to_one_that_exists() {
        assert!(Shell::of_user("/usr/bin:/bin").path.exists());
    }
}
