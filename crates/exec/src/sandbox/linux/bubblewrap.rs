//! Confinement by bubblewrap, for systems that let it make namespaces but not us.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::{Signal, set_parent_process_death_signal};

use super::devices::SHARED_MEMORY;
use super::entries::{EntryKind, VisibleEntry};
use super::helper::{INSIDE, complain};
use super::mounts::KERNEL_SWITCHES;
use super::namespaces::wait_for;
use super::sys::{Fork, exit, fork, ignore_keyboard};
use crate::helper::{INHERITED, THIS_PROGRAM};
use crate::sandbox::Sandbox;
use crate::sandbox::layers::Layer;

/// The size of file systems that contain only mount points.
const FRAME_BYTES: &str = "1048576";

/// The program, unless it lies where commands can write, or in the folder that they work in.
pub(super) fn find(search: Option<OsString>, sandbox: &Sandbox, cwd: &Path) -> Option<PathBuf> {
    let search = search?;
    let folders = std::env::split_paths(&search).filter(|folder| folder.is_absolute());
    let found = folders.map(|folder| folder.join("bwrap")).find(|path| path.is_file())?;
    let real = found.canonicalize().ok()?;
    let theirs = sandbox.can_write(&real) || (real.starts_with(cwd) && cwd != Path::new("/"));
    (!theirs).then_some(found)
}

/// Runs the command and returns its exit code. `channel` is the socket for the listeners of its loopback ports; this
/// process does not keep it.
pub(super) fn run(
    program: &Path,
    sandbox: &Sandbox,
    cwd: &Path,
    argv: &[OsString],
    channel: Option<OwnedFd>,
) -> io::Result<i32> {
    ignore_keyboard();
    match fork(0)? {
        Fork::Child => {
            let error = exec(program, sandbox, cwd, argv, channel.as_ref());
            exit(complain("cannot start bubblewrap", &error))
        }
        Fork::Parent(bubblewrap) => {
            drop(channel);
            wait_for(bubblewrap)
        }
    }
}

/// Executes the confined command; only returns when that failed. Inside the sandbox this program runs once more as its
/// first process, for what bubblewrap does not do. It is executed by a descriptor, because its file may not be visible
/// there.
fn exec(program: &Path, sandbox: &Sandbox, cwd: &Path, argv: &[OsString], channel: Option<&OwnedFd>) -> io::Error {
    let run = || -> io::Result<io::Error> {
        if let Some(link) = sandbox.writable.iter().flat_map(|root| &root.protected).find(|path| path.is_symlink()) {
            return Err(io::Error::other(format!("it cannot protect a link: {}", link.display())));
        }
        set_parent_process_death_signal(Some(Signal::KILL))?;
        let this_program = rustix::fs::open(THIS_PROGRAM, OFlags::PATH, Mode::empty())?;
        let mut command = std::process::Command::new(program);
        command.args(arguments(sandbox, cwd)).arg("--");
        command
            .arg(format!("{INHERITED}{}", this_program.as_raw_fd()))
            .arg(INSIDE)
            .arg(serde_json::to_string(sandbox)?);
        // Only inside are there ports to open.
        if let Some(channel) = channel {
            fcntl_setfd(channel, FdFlags::empty())?;
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
    // Root would keep all capabilities, and could undo the mounts below.
    add("--cap-drop", &[Path::new("ALL")]);
    if !sandbox.network {
        add("--unshare-net", &[]);
    }
    match &sandbox.readable {
        None => add("--ro-bind", &[Path::new("/"), Path::new("/")]),
        Some(roots) => {
            add("--size", &[Path::new(FRAME_BYTES)]);
            add("--tmpfs", &[Path::new("/")]);
            let mut outer_first: Vec<_> = roots.iter().collect();
            outer_first.sort_by_key(|root| root.path.components().count());
            for root in &outer_first {
                add("--ro-bind", &[&root.path, &root.path]);
            }
            let is_there = |name: &Path| roots.iter().any(|root| name.starts_with(&root.path));
            for link in outer_first.iter().filter(|root| root.name != root.path && !is_there(&root.name)) {
                add("--symlink", &[&link.path, &link.name]);
            }
        }
    }
    add("--dev", &[Path::new("/dev")]);
    add("--size", &[Path::new(SHARED_MEMORY)]);
    add("--perms", &[Path::new("1777")]);
    add("--tmpfs", &[Path::new("/dev/shm")]);
    add("--remount-ro", &[Path::new("/dev")]);
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
            Layer::Writable(_) | Layer::Pinned(_) => add("--bind", &[path, path]),
            Layer::Protected(_) => add("--ro-bind-try", &[path, path]),
            Layer::Concealed(concealed) => {
                let visible = concealed.visible_entries(path).unwrap_or_default();
                add("--size", &[Path::new(FRAME_BYTES)]);
                add("--tmpfs", &[path]);
                for VisibleEntry { path, kind } in &visible {
                    match kind {
                        EntryKind::Link(target) => add("--symlink", &[target, path]),
                        EntryKind::Folder | EntryKind::File => add("--ro-bind-try", &[path, path]),
                    }
                }
                covers.push(path);
            }
            Layer::ReadOnly(_) => add("--ro-bind", &[path, path]),
            Layer::Closed(_) if path.is_dir() => {
                let holds_more = layers[index + 1..].iter().any(|inner| inner.path().starts_with(path));
                add("--perms", &[Path::new(if holds_more { "0111" } else { "0000" })]);
                add("--size", &[Path::new(FRAME_BYTES)]);
                add("--tmpfs", &[path]);
                covers.push(path);
            }
            // A device of this name could be opened nowhere but in `/dev`.
            Layer::Closed(_) => add("--ro-bind", &[Path::new("/dev/null"), path]),
        }
    }
    for cover in covers.into_iter().chain(sandbox.readable.as_ref().map(|_| Path::new("/"))) {
        add("--remount-ro", &[cover]);
    }
    add("--chdir", &[cwd]);
    arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sandbox::{Mechanism, ReadableRoot, WritableRoot};

    fn check(sandbox: &Sandbox, expected: &str) {
        let arguments = arguments(sandbox, Path::new("/w"));
        let arguments: Vec<_> = arguments.iter().map(|argument| argument.to_string_lossy()).collect();
        assert_eq!(arguments.join(" "), expected);
    }

    #[test]
    fn a_sandbox_is_translated_to_bubblewrap_arguments() {
        let (protected, absent) = (vec!["/w/.git".into()], vec!["/w/.codex".into()]);
        let root = WritableRoot { path: "/w".into(), identity: None, protected, absent };
        let mut sandbox =
            Sandbox { mechanism: Mechanism::Bubblewrap, writable: vec![root], ..Sandbox::new_read_only(false) };
        let start = "--die-with-parent --unshare-user --unshare-pid --as-pid-1 --unshare-ipc --cap-drop ALL";
        let switches = KERNEL_SWITCHES.iter().map(|name| format!("--ro-bind-try /proc/{name} /proc/{name} "));
        let switches: String = switches.collect();
        let shared = format!("--size {SHARED_MEMORY} --perms 1777 --tmpfs /dev/shm --remount-ro /dev");
        let end = "--bind /w /w --ro-bind-try /w/.git /w/.git --ro-bind-try /w/.codex /w/.codex";
        let end = format!("--dev /dev {shared} --proc /proc {switches}{end}");
        check(&sandbox, &format!("{start} --unshare-net --ro-bind / / {end} --chdir /w"));
        sandbox.network = true;
        let readable = |name: &str, path: &str| ReadableRoot { name: name.into(), path: path.into(), identity: None };
        sandbox.readable = Some(vec![readable("/bin", "/usr/bin"), readable("/usr", "/usr")]);
        let frame = format!("--size {FRAME_BYTES} --tmpfs / --ro-bind /usr /usr --ro-bind /usr/bin /usr/bin");
        check(&sandbox, &format!("{start} {frame} --symlink /usr/bin /bin {end} --remount-ro / --chdir /w"));
    }

    #[test]
    fn bubblewrap_in_a_writable_folder_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("bwrap"), "").unwrap();
        let real = folder.path().canonicalize().unwrap();
        let search = || Some(folder.path().as_os_str().to_owned());
        let root = WritableRoot { path: real.clone(), identity: None, protected: vec![], absent: vec![] };
        let closed = Sandbox::new_read_only(false);
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
