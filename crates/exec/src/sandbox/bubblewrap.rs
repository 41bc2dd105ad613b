//! Confinement by bubblewrap, for systems that let it make namespaces but not us.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};

use super::Sandbox;
use super::helper::INSIDE;
use super::layers::Layer;
use super::mounts::KERNEL_SWITCHES;
use super::sys::ignore_keyboard;
use crate::helper::{INHERITED, THIS_PROGRAM};

/// The program, unless it lies where commands can write, or in the folder that they work in.
pub(super) fn find(search: Option<OsString>, sandbox: &Sandbox, cwd: &Path) -> Option<PathBuf> {
    let search = search?;
    let folders = std::env::split_paths(&search).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join("bwrap")).find(|path| path.is_file())?;
    let real = found.canonicalize().ok()?;
    let theirs = sandbox.can_write(&real) || (real.starts_with(cwd) && cwd != Path::new("/"));
    (!theirs).then_some(found)
}

/// Becomes the confined command; only returns when that failed. Inside we are called once more, as the first
/// process there, for what bubblewrap does not do; by a descriptor, because our file may be out of sight. `line` is
/// where the sandbox's doors are handed out.
pub(super) fn exec(
    program: &Path,
    sandbox: &Sandbox,
    cwd: &Path,
    argv: &[OsString],
    line: Option<&OwnedFd>,
) -> io::Error {
    let run = || -> io::Result<io::Error> {
        if let Some(link) = sandbox.writable.iter().flat_map(|root| &root.protected).find(|path| path.is_symlink()) {
            return Err(io::Error::other(format!("it cannot protect a link: {}", link.display())));
        }
        ignore_keyboard();
        let this_program = rustix::fs::open(THIS_PROGRAM, OFlags::PATH, Mode::empty())?;
        let mut command = std::process::Command::new(program);
        command.args(arguments(sandbox, cwd)).arg("--");
        command
            .arg(format!("{INHERITED}{}", this_program.as_raw_fd()))
            .arg(INSIDE)
            .arg(serde_json::to_string(sandbox)?);
        // Only inside are there ports to open.
        if let Some(line) = line {
            fcntl_setfd(line, FdFlags::empty())?;
        }
        Ok(command.args(argv).exec())
    };
    run().unwrap_or_else(|error| error)
}

/// Whether the program is there and this system lets it confine commands.
pub(super) fn works(sandbox: &Sandbox, cwd: &Path, argv: &[OsString]) -> bool {
    let Some(program) = find(std::env::var_os("PATH"), sandbox, cwd) else { return false };
    let mut command = std::process::Command::new(program);
    command.args(arguments(sandbox, cwd)).arg("--").args(argv);
    command.stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

fn arguments(sandbox: &Sandbox, cwd: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = Vec::new();
    let mut add = |flag: &str, paths: &[&Path]| {
        arguments.push(flag.into());
        arguments.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    add("--die-with-parent", &[]);
    add("--unshare-user", &[]);
    add("--unshare-pid", &[]);
    add("--as-pid-1", &[]);
    add("--unshare-ipc", &[]);
    // Root would keep them all, and with them the right to undo what follows.
    add("--cap-drop", &[Path::new("ALL")]);
    if !sandbox.network {
        add("--unshare-net", &[]);
    }
    match &sandbox.readable {
        None => add("--ro-bind", &[Path::new("/"), Path::new("/")]),
        Some(roots) => {
            add("--tmpfs", &[Path::new("/")]);
            for root in roots {
                add("--ro-bind-try", &[root, root]);
            }
        }
    }
    add("--dev", &[Path::new("/dev")]);
    add("--proc", &[Path::new("/proc")]);
    for name in KERNEL_SWITCHES {
        let path = Path::new("/proc").join(name);
        add("--ro-bind-try", &[&path, &path]);
    }
    let layers = sandbox.overlay();
    let mut covers = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        let path = layer.path();
        match layer {
            Layer::Writable(root) => {
                add("--bind", &[path, path]);
                for kept in root.protected.iter().chain(&root.absent) {
                    add("--ro-bind-try", &[kept, kept]);
                }
            }
            Layer::Pinned(_) => add("--bind", &[path, path]),
            Layer::ReadOnly(_) => add("--ro-bind", &[path, path]),
            Layer::Closed(_) if path.is_dir() => {
                let holds_more = layers[index + 1..].iter().any(|inner| inner.path().starts_with(path));
                add("--perms", &[Path::new(if holds_more { "0111" } else { "0000" })]);
                add("--tmpfs", &[path]);
                covers.push(path);
            }
            // A device of this name could be opened nowhere but in `/dev`.
            Layer::Closed(_) => add("--ro-bind", &[Path::new("/dev/null"), path]),
        }
    }
    for cover in covers {
        add("--remount-ro", &[cover]);
    }
    add("--chdir", &[cwd]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::super::{Means, WritableRoot};
    use super::*;

    fn check(sandbox: &Sandbox, expected: &str) {
        let arguments = arguments(sandbox, Path::new("/w"));
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(arguments.join(" "), expected);
    }

    #[test]
    fn a_sandbox_becomes_arguments() {
        let root =
            WritableRoot { path: "/w".into(), protected: vec!["/w/.git".into()], absent: vec!["/w/.codex".into()] };
        let mut sandbox =
            Sandbox { means: Means::Bubblewrap, writable: vec![root], ..Sandbox::with_readable(None, false) };
        let start = "--die-with-parent --unshare-user --unshare-pid --as-pid-1 --unshare-ipc --cap-drop ALL";
        let switches = KERNEL_SWITCHES.iter().map(|name| format!("--ro-bind-try /proc/{name} /proc/{name} "));
        let switches: String = switches.collect();
        let end = "--bind /w /w --ro-bind-try /w/.git /w/.git --ro-bind-try /w/.codex /w/.codex --chdir /w";
        let end = format!("--dev /dev --proc /proc {switches}{end}");
        check(&sandbox, &format!("{start} --unshare-net --ro-bind / / {end}"));
        sandbox.network = true;
        sandbox.readable = Some(vec!["/usr".into()]);
        check(&sandbox, &format!("{start} --tmpfs / --ro-bind-try /usr /usr {end}"));
    }

    #[test]
    fn a_program_from_the_workspace_is_not_trusted() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bwrap"), "").unwrap();
        let real = folder.path().canonicalize().unwrap();
        let search = || Some(folder.path().as_os_str().to_owned());
        let root = WritableRoot { path: real.clone(), protected: vec![], absent: vec![] };
        let closed = Sandbox::with_readable(None, false);
        let open = Sandbox { writable: vec![root], ..closed.clone() };
        let elsewhere = Path::new("/elsewhere");
        assert_eq!(find(search(), &closed, elsewhere), Some(folder.path().join("bwrap")));
        assert_eq!(find(search(), &closed, Path::new("/")), Some(folder.path().join("bwrap")));
        assert_eq!(find(search(), &closed, &real), None);
        assert_eq!(find(search(), &open, elsewhere), None);
        assert_eq!(find(Some("relative".into()), &closed, elsewhere), None);
        assert_eq!(find(None, &closed, elsewhere), None);
    }
}
