//! A workspace and its surroundings, which attempts must not change: files, sockets, a terminal, shared memory, and
//! another process.
#![allow(unsafe_code, reason = "no crate wraps System V shared memory")]

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use loomd_config::config_toml::FileAccess;
use loomd_config::permissions::{FileRule, Permissions, RulePath};
use loomd_exec::sandbox::{ResourceLimits, Roots, Sandbox, Surroundings};
use loomd_exec::{Command, Environment};
use loomd_protocol::{AbsolutePathBuf, ReadOnlyAccess, SandboxPolicy};
use rustix::io::FdFlags;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use tempfile::{NamedTempFile, TempDir};

use super::attempts::Policy;

pub struct World {
    _folder: TempDir,
    workspace: PathBuf,
    outside: PathBuf,
    bystander: Child,
    tcp: Vec<TcpListener>,
    udp: Vec<UdpSocket>,
    sockets: Vec<UnixListener>,
    datagrams: UnixDatagram,
    terminal: OwnedFd,
    _their_terminal: File,
    shared: NamedTempFile,
    left_open: OwnedFd,
    memory: Ipc,
    queue: Ipc,
    variables: Vec<(&'static str, String)>,
    home: PathBuf,
    roots: Roots,
}

/// The helper of sandboxes, which also makes attempts that no common program makes.
pub fn fixture() -> PathBuf {
    std::env::var_os("LOOMD_EXEC_FIXTURE").map_or_else(|| env!("CARGO_BIN_EXE_exec-fixture").into(), PathBuf::from)
}

impl World {
    pub fn new(setup: &str, policy: Policy) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let [workspace, outside] = ["workspace", "outside"].map(|name| base.join(name));
        for path in [".git/hooks", ".agents", ".codex", "inner"] {
            fs::create_dir_all(workspace.join(path)).unwrap();
        }
        fs::create_dir_all(outside.join("empty")).unwrap();
        for file in [".git/config", ".codex/config.toml", ".agents/AGENTS.md"] {
            fs::write(workspace.join(file), "keep\n").unwrap();
        }
        fs::write(outside.join("victim"), "keep\n").unwrap();
        fs::write(outside.join("secret"), "escaped\n").unwrap();
        files_of_another_user(&outside);
        let home = if policy == Policy::HomeInside { workspace.join("home") } else { base.join("home") };
        fs::create_dir_all(home.join("memories")).unwrap();
        fs::write(home.join("config.toml"), "keep\n").unwrap();
        for file in ["auth.json", ".credentials.json", ".auth.json.1"] {
            fs::write(home.join(file), "escaped\n").unwrap();
        }
        sh(setup, &workspace, &outside);
        let bystander = bystander(&outside);

        let tcp4 = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let udp4 = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (tcp6, udp6) = (TcpListener::bind((Ipv6Addr::LOCALHOST, 0)), UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)));
        let port = |address: std::io::Result<std::net::SocketAddr>| address.map_or(1, |address| address.port());
        let [socket, datagram] = ["socket", "datagram"].map(|name| outside.join(name));
        let name = format!("loomd-escape-{}", base.display());
        let without_file = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        let sockets = vec![UnixListener::bind(&socket).unwrap(), without_file];
        let datagrams = UnixDatagram::bind(&datagram).unwrap();
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let their_terminal = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let shared = NamedTempFile::new_in("/dev/shm").unwrap();
        let left_open = OwnedFd::from(File::options().append(true).open(outside.join("victim")).unwrap());
        rustix::io::fcntl_setfd(&left_open, FdFlags::empty()).unwrap();
        let (memory, queue) = (Ipc::memory(), Ipc::queue());

        let variables = vec![
            ("W", workspace.display().to_string()),
            ("O", outside.display().to_string()),
            ("B", bystander.id().to_string()),
            ("SERVER", std::process::id().to_string()),
            ("FD", left_open.as_raw_fd().to_string()),
            ("SHM", shared.path().display().to_string()),
            ("PTS", their_terminal.clone()),
            ("TCP4", port(tcp4.local_addr()).to_string()),
            ("TCP6", port(tcp6.as_ref().map_or_else(|_| tcp4.local_addr(), TcpListener::local_addr)).to_string()),
            ("UDP4", port(udp4.local_addr()).to_string()),
            ("UDP6", port(udp6.as_ref().map_or_else(|_| udp4.local_addr(), UdpSocket::local_addr)).to_string()),
            ("SOCKET", socket.display().to_string()),
            ("ABSTRACT", name),
            ("DATAGRAM", datagram.display().to_string()),
            ("SYSV", memory.number().to_string()),
            ("QUEUE", queue.number().to_string()),
            ("H", home.display().to_string()),
            ("ATTEMPT", format!("{} --attempt", fixture().display())),
            ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".into()),
        ];
        let world = Self {
            _folder: folder,
            workspace,
            outside,
            bystander,
            tcp: [Some(tcp4), tcp6.ok()].into_iter().flatten().collect(),
            udp: [Some(udp4), udp6.ok()].into_iter().flatten().collect(),
            sockets,
            datagrams,
            _their_terminal: File::options().read(true).write(true).open(their_terminal).unwrap(),
            terminal,
            shared,
            left_open,
            memory,
            queue,
            variables,
            home,
            roots: Roots::default(),
        };
        world.never_block();
        world
    }

    fn never_block(&self) {
        self.tcp.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        self.udp.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        self.sockets.iter().for_each(|socket| socket.set_nonblocking(true).unwrap());
        self.datagrams.set_nonblocking(true).unwrap();
        rustix::io::ioctl_fionbio(&self.terminal, true).unwrap();
    }

    pub fn command(&self, script: &str) -> Command {
        let env: Environment = self.variables.iter().cloned().collect();
        Command::new(["bash", "-c", script], &self.workspace, env)
    }

    pub fn sandbox(&self, named: Policy) -> Sandbox {
        let workspace = |roots: &[PathBuf], network_access, read_only_access| SandboxPolicy::WorkspaceWrite {
            writable_roots: roots.iter().filter_map(AbsolutePathBuf::new).collect(),
            read_only_access,
            network_access,
            exclude_tmpdir_env_var: true,
            exclude_slash_tmp: true,
        };
        let all = ReadOnlyAccess::FullAccess;
        let readable_roots = AbsolutePathBuf::new(self.workspace.join("docs")).into_iter().collect();
        let some = ReadOnlyAccess::Restricted { include_platform_defaults: true, readable_roots };
        let policy = match named {
            Policy::ReadOnly => SandboxPolicy::ReadOnly { access: all, network_access: false },
            Policy::Workspace | Policy::Doors | Policy::Limited | Policy::HomeInside => workspace(&[], false, all),
            Policy::DeepRoots => {
                let roots = ["job/repo", "later", "l/a/b"].map(|root| self.workspace.join(root));
                workspace(&roots, false, all)
            }
            Policy::WorkspaceAndNetwork => workspace(&[], true, all),
            Policy::NestedRoots => workspace(&[self.workspace.join("inner")], false, all),
            Policy::RestrictedReads => workspace(&[], false, some),
            Policy::Closed => return self.closing(&self.outside),
            Policy::ClosedByLink => return self.closing(&self.workspace.join("link")),
            Policy::ClosedInside => return self.closing(&self.workspace.join("deep/er/shut")),
            Policy::ClosedFile => return self.closing(&self.outside.join("secret")),
        };
        let sandbox = Sandbox::new(&policy, self.surroundings()).unwrap();
        if named == Policy::Limited {
            return sandbox.with_limits(ResourceLimits { processes: Some(400), memory: Some(512 << 20) });
        }
        sandbox
    }

    /// As they are for all commands of one thread.
    fn surroundings(&self) -> Surroundings<'_> {
        Surroundings { home: Some(&self.home), roots: Some(&self.roots), ..Surroundings::new(&self.workspace) }
    }

    /// A sandbox in which everything except this path can be read, and the workspace be written.
    fn closing(&self, path: &Path) -> Sandbox {
        let rule = |place, access| FileRule { path: place, access };
        let files = vec![
            rule(RulePath::Root, FileAccess::Read),
            rule(RulePath::Project(PathBuf::new()), FileAccess::Write),
            rule(RulePath::Path(AbsolutePathBuf::new(path).unwrap()), FileAccess::None),
        ];
        let permissions = Permissions { files, ..Permissions::default() };
        Sandbox::of_permissions(&permissions, self.surroundings())
    }

    /// Everything that attempts may not change, as text.
    pub fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for name in [".git", ".agents", ".codex", "repo"] {
            describe(&self.workspace.join(name), &mut found);
        }
        describe(&self.outside, &mut found);
        describe(&self.home, &mut found);
        describe(self.shared.path(), &mut found);
        // A placeholder is removed by another process, a little later.
        let codex = self.workspace.join(".codex");
        if found.get(&codex).is_some_and(|text| text == "folder 555") {
            found.remove(&codex);
        }
        found
    }

    /// Whether anything arrived at a socket, a terminal or a queue, or the other process was affected.
    pub fn was_reached(&self) -> bool {
        let mut buffer = [0; 16];
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.bystander.id())).unwrap();
        let state = stat.rsplit_once(") ").unwrap().1.chars().next();
        self.tcp.iter().any(|socket| socket.accept().is_ok())
            || self.udp.iter().any(|socket| socket.recv(&mut buffer).is_ok())
            || self.sockets.iter().any(|socket| socket.accept().is_ok())
            || self.datagrams.recv(&mut buffer).is_ok()
            || rustix::io::read(&self.terminal, &mut buffer).is_ok()
            || state != Some('S')
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.bystander.kill().unwrap();
        self.bystander.wait().unwrap();
        let _ = (&self.left_open, &self.memory, &self.queue);
    }
}

fn sh(script: &str, cwd: &Path, outside: &Path) {
    let mut command = std::process::Command::new("sh");
    let done = command.args(["-ec", script]).current_dir(cwd).env("O", outside).status().unwrap();
    assert!(done.success(), "{script}");
}

/// Files of another user, where we can make such.
fn files_of_another_user(outside: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let (program, file) = (outside.join("somebody"), outside.join("theirs"));
    fs::copy("/usr/bin/id", &program).unwrap();
    fs::write(&file, "escaped\n").unwrap();
    for (path, mode) in [(&program, 0o4755), (&file, 0o600)] {
        std::os::unix::fs::chown(path, Some(1), Some(1)).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
}

/// A process with secrets and open files that has nothing to do with any sandbox.
fn bystander(outside: &Path) -> Child {
    let child = std::process::Command::new("sh")
        .args(["-c", "exec 9>>victim 8<secret; exec sleep 1000"])
        .env("escaped", "yes")
        .current_dir(outside)
        .stdin(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let name = format!("/proc/{}/comm", child.id());
    let state = format!("/proc/{}/stat", child.id());
    while fs::read_to_string(&name).unwrap() != "sleep\n" || !fs::read_to_string(&state).unwrap().contains(") S ") {
        std::thread::sleep(Duration::from_millis(1));
    }
    child
}

fn describe(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let Ok(data) = path.symlink_metadata() else { return };
    let mode = data.mode() & 0o7777;
    let text = if data.is_symlink() {
        format!("link to {}", fs::read_link(path).unwrap().display())
    } else if data.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            describe(&entry.unwrap().path(), found);
        }
        format!("folder {mode:o}")
    } else if data.is_file() {
        let content = fs::read(path).unwrap_or_default();
        let content =
            if content.len() > 1024 { content.len().to_string() } else { String::from_utf8(content).unwrap() };
        format!("file {mode:o} {} {content}", data.mtime())
    } else {
        format!("special {mode:o}")
    };
    found.insert(path.to_owned(), text);
}

/// Memory or a queue that is known by a number.
enum Ipc {
    Memory(i32),
    Queue(i32),
}

impl Ipc {
    fn memory() -> Self {
        // SAFETY: makes something new; no memory of ours is involved.
        Self::Memory(unsafe { libc::shmget(libc::IPC_PRIVATE, 64, 0o600) })
    }

    fn queue() -> Self {
        // SAFETY: as above.
        Self::Queue(unsafe { libc::msgget(libc::IPC_PRIVATE, 0o600) })
    }

    fn number(&self) -> i32 {
        match self {
            Self::Memory(id) | Self::Queue(id) => *id,
        }
    }
}

impl Drop for Ipc {
    fn drop(&mut self) {
        // SAFETY: removes what we made; nothing of it is mapped here.
        let removed = unsafe {
            match *self {
                Self::Memory(id) => libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()),
                Self::Queue(id) => libc::msgctl(id, libc::IPC_RMID, std::ptr::null_mut()),
            }
        };
        _ = writeln!(std::io::sink(), "{removed}");
    }
}
