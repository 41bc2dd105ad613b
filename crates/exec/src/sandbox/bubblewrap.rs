//! Confinement by bubblewrap, for systems that let it make namespaces but not us.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::io::{FdFlags, fcntl_setfd};
use seccompiler::BpfProgram;

use super::Sandbox;
use super::layers::Layer;
use super::mounts::KERNEL_SWITCHES;
use super::namespaces::become_program;
use super::seccomp::{network_filter, tcp_filter};
use super::{doors, helper};
use crate::helper::{CHANNEL, THIS_PROGRAM, close_on_exec_from, take_channel};

/// The program, unless it lies where commands can write, or in the folder that they work in.
pub(super) fn find(search: Option<OsString>, sandbox: &Sandbox, cwd: &Path) -> Option<PathBuf> {
    let search = search?;
    let folders = std::env::split_paths(&search).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join("bwrap")).find(|path| path.is_file())?;
    let real = found.canonicalize().ok()?;
    let theirs = sandbox.can_write(&real) || (real.starts_with(cwd) && cwd != Path::new("/"));
    (!theirs).then_some(found)
}

/// The helper's first argument when it is to open a sandbox's doors from the inside and become the command.
pub(super) const INSIDE: &str = "--inside";
/// Where the helper is found inside, by the name that makes it one.
const HELPER: &str = "/dev/loomd-linux-sandbox";

/// Becomes the confined command; only returns when that failed. `line` is where the sandbox's doors are handed out.
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
        let mut command = std::process::Command::new(program);
        command.args(arguments(sandbox, cwd));
        let filter = match sandbox.network {
            true => None,
            false if line.is_none() => Some(filter_file(network_filter()?)?),
            false => Some(filter_file(tcp_filter()?)?),
        };
        if let Some(filter) = &filter {
            command.arg("--seccomp").arg(filter.as_raw_fd().to_string());
        }
        let Some(line) = line else { return Ok(command.arg("--").args(argv).exec()) };
        // Only inside are there ports to open, and only this program knows how.
        let itself = File::open(THIS_PROGRAM)?;
        // Bubblewrap keeps one as long as anything of the sandbox is left; the other is for the helper.
        let kept = line.try_clone()?;
        for passed in [itself.as_fd(), kept.as_fd(), line.as_fd()] {
            fcntl_setfd(passed, FdFlags::empty())?;
        }
        let link = format!("/proc/self/fd/{}", itself.as_raw_fd());
        command.args(["--symlink", link.as_str(), HELPER, "--sync-fd"]).arg(kept.as_raw_fd().to_string());
        let ports: Vec<_> = sandbox.doors.iter().map(u16::to_string).collect();
        Ok(command.args(["--", HELPER, INSIDE, ports.join(",").as_str()]).args(argv).exec())
    };
    run().unwrap_or_else(|error| error)
}

/// The helper inside: opens the doors and becomes the command.
pub(super) fn inside(mut args: impl Iterator<Item = OsString>) -> i32 {
    let line = take_channel();
    let ports = args.next().and_then(|ports| ports.into_string().ok()).unwrap_or_default();
    let ports: Vec<u16> = ports.split(',').filter_map(|port| port.parse().ok()).collect();
    let opened = close_on_exec_from(CHANNEL.unsigned_abs()).and_then(|()| doors::open(&ports, &line));
    match opened {
        Ok(()) => become_program(&args.collect::<Vec<_>>()),
        Err(error) => helper::complain("cannot open the way to the proxy", &error),
    }
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

/// The filter in a file that bubblewrap inherits.
fn filter_file(filter: BpfProgram) -> io::Result<File> {
    let mut file = File::from(rustix::fs::memfd_create("filter", rustix::fs::MemfdFlags::empty())?);
    for instruction in filter {
        file.write_all(&instruction.code.to_ne_bytes())?;
        file.write_all(&[instruction.jt, instruction.jf])?;
        file.write_all(&instruction.k.to_ne_bytes())?;
    }
    file.rewind()?;
    Ok(file)
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
        let start = "--die-with-parent --unshare-user --unshare-pid --unshare-ipc --cap-drop ALL";
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
