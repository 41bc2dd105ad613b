//! A private PostgreSQL server for the tests of one process, or of one test that stops it: its data is in a temporary
//! folder, and it ends with the process, however that ends.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine;
use parking_lot::Mutex;

use crate::Tls;
use crate::tls::KEY;

/// How often another port is tried: the one that was found free may be taken by then.
const ATTEMPTS: usize = 10;
/// How long the server may take to start.
const START: Duration = Duration::from_secs(120);

/// Ends the server when the pipe to this process closes, and removes its data; ends it with a signal, and keeps its
/// data, when the signal's name comes through the pipe.
const KEEPER: &str = r#"folder=$1; shift; "$@" & server=$!
if read -r signal; then kill -"$signal" $server; wait $server
else kill -QUIT $server; wait $server; rm -rf "$folder"; fi"#;

/// A running server. User `postgres` needs no password on the unix socket; others do, and TLS is required over TCP.
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    port: u16,
    databases: AtomicUsize,
    /// Only the unix socket is listened on.
    local: bool,
    /// Holds the pipe that keeps the server running; `None` while it is stopped.
    keeper: Mutex<Option<Child>>,
}

impl Postgres {
    /// The server of this process, started by the first caller. `None`, after a line that says so, when PostgreSQL is
    /// not installed.
    pub fn shared() -> Option<&'static Self> {
        static SERVER: OnceLock<Option<Postgres>> = OnceLock::new();
        let server = SERVER.get_or_init(|| programs().map(|programs| Self::create(programs, false)));
        if server.is_none() {
            println!("skipped: no PostgreSQL");
        }
        server.as_ref()
    }

    /// A server of the caller's own, which may stop it. It has no TCP port that another process could take meanwhile:
    /// only [`Postgres::url`] and [`Postgres::url_as`] reach it. `None` as with [`Postgres::shared`].
    pub fn private() -> Option<Self> {
        let programs = programs();
        if programs.is_none() {
            println!("skipped: no PostgreSQL");
        }
        programs.map(|programs| Self::create(programs, true))
    }

    /// Stops the server: running statements are given up, connections closed. Returns when it has ended.
    pub fn stop(&self) {
        self.end_by("INT");
    }

    /// Stops the server as a crash does: connections break, and it recovers when it is started again.
    pub fn crash(&self) {
        self.end_by("QUIT");
    }

    /// Starts the server again after it was stopped, with the same data at the same address.
    pub fn start(&self) {
        let mut keeper = self.keeper.lock();
        assert!(keeper.is_none(), "the server runs");
        let data = self.folder.join("data");
        let started = start(&self.programs, &self.folder, &data, self.port, self.local);
        *keeper = Some(started.unwrap_or_else(|| panic!("PostgreSQL does not start: {}", log(&self.folder))));
    }

    /// Stops the server and starts it again.
    pub fn restart(&self) {
        self.stop();
        self.start();
    }

    fn end_by(&self, signal: &str) {
        let mut keeper = self.keeper.lock().take().expect("a running server");
        let mut pipe = keeper.stdin.take().expect("the pipe to the server");
        writeln!(pipe, "{signal}").expect("the server runs");
        drop(keeper.wait());
    }

    fn create(programs: PathBuf, local: bool) -> Self {
        let folder = tempfile::Builder::new().prefix("loomd-pg").tempdir().expect("a temporary folder").keep();
        let user = ordinary_user();
        let data = folder.join("data");
        if let Some((uid, gid)) = user {
            chown(&folder, Some(uid), Some(gid)).expect("a folder of the server's user");
        }
        let options = ["-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C", "--no-sync"];
        let made = as_user(Command::new(programs.join("initdb")), user).args(options).arg("-D").arg(&data).output();
        let made = made.expect("initdb");
        assert!(made.status.success(), "initdb: {}", String::from_utf8_lossy(&made.stderr));
        configure(&data, &folder, user);
        for _ in 0..ATTEMPTS {
            // Of a unix socket, the port is only part of its name.
            let port = if local { 5432 } else { free_port() };
            if let Some(keeper) = start(&programs, &folder, &data, port, local) {
                let (databases, keeper) = (AtomicUsize::new(0), Mutex::new(Some(keeper)));
                return Self { programs, folder, port, databases, local, keeper };
            }
        }
        panic!("PostgreSQL does not start: {}", log(&folder));
    }

    /// Makes an empty database and returns its name.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        name
    }

    /// The URL of a database over the unix socket, as the user who may do everything.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// The unix socket.
    pub fn socket(&self) -> PathBuf {
        self.folder.join(format!(".s.PGSQL.{}", self.port))
    }

    /// The same as another user, with a password.
    pub fn url_as(&self, user: &str, password: &str, database: &str) -> String {
        format!("postgres://{user}:{password}@/{database}?host={}&port={}", self.folder.display(), self.port)
    }

    /// The URL of a database over TCP, where TLS is required. `options` go to the URL's query.
    pub fn tcp_url(&self, user: &str, password: &str, database: &str, options: &str) -> String {
        format!("postgres://{user}:{password}@localhost:{}/{database}?{options}", self.port)
    }

    /// The file of the certificate that the server has over TCP.
    pub fn certificate(&self) -> PathBuf {
        self.folder.join("data/server.crt")
    }

    /// Runs statements in a database, as the user who may do everything, and returns what they select, unaligned.
    pub fn sql(&self, database: &str, statements: &str) -> String {
        let mut psql = Command::new(self.programs.join("psql"));
        psql.args(["-X", "-q", "-t", "-A", "-v", "ON_ERROR_STOP=1", "-U", "postgres", "-d", database]);
        psql.arg("-h").arg(&self.folder).args(["-p", &self.port.to_string(), "-c", statements]);
        let done = psql.stdin(Stdio::null()).output().expect("psql");
        assert!(done.status.success(), "{statements}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    }
}

impl Drop for Postgres {
    /// Ends the server and removes its data, also when it is stopped.
    fn drop(&mut self) {
        match self.keeper.get_mut().take() {
            Some(mut keeper) => {
                drop(keeper.stdin.take());
                drop(keeper.wait());
            }
            None => drop(fs::remove_dir_all(&self.folder)),
        }
    }
}

/// Starts the server; `None` when it ends before it takes connections, because its port was taken.
fn start(programs: &Path, folder: &Path, data: &Path, port: u16, local: bool) -> Option<Child> {
    let mut keeper = keeper(programs, folder, data, port, local);
    if is_ready(programs, folder, port, data) {
        return Some(keeper);
    }
    drop(keeper.kill());
    drop(keeper.wait());
    None
}

fn log(folder: &Path) -> String {
    fs::read_to_string(folder.join("log")).unwrap_or_default()
}

/// The folder of the newest installed server's programs.
fn programs() -> Option<PathBuf> {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let version = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let debian = installed.map(|entry| entry.path()).max_by_key(version).map(|path| path.join("bin"));
    let others = std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect::<Vec<_>>());
    let mut folders = debian.into_iter().chain(others.into_iter().flatten());
    folders.find(|folder| ["postgres", "initdb", "psql"].iter().all(|name| folder.join(name).is_file()))
}

/// The server refuses to run as root; a user and group that it can run as then.
fn ordinary_user() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    let ids = |name: &str| {
        let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
        let mut fields = line.split(':').skip(2);
        Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
    };
    Some(ids("postgres").or_else(|| ids("nobody")).expect("a user postgres or nobody"))
}

fn as_user(mut command: Command, user: Option<(u32, u32)>) -> Command {
    if let Some((uid, gid)) = user {
        command.uid(uid).gid(gid);
    }
    command.current_dir("/").stdin(Stdio::null());
    command
}

fn configure(data: &Path, folder: &Path, user: Option<(u32, u32)>) {
    let access = "local all postgres trust\nlocal all all scram-sha-256\nhostssl all all 127.0.0.1/32 scram-sha-256\n";
    let key = base64::engine::general_purpose::STANDARD.encode(KEY);
    let key: Vec<&str> = (0..key.len()).step_by(64).map(|at| &key[at..key.len().min(at + 64)]).collect();
    let key = format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", key.join("\n"));
    let settings = format!(
        "unix_socket_directories = '{}'\nlisten_addresses = '127.0.0.1'\nssl = on\nfsync = off\n\
         max_connections = 300\nshared_buffers = 32MB\npassword_encryption = 'scram-sha-256'\n",
        folder.display()
    );
    fs::write(data.join("postgresql.auto.conf"), settings).expect("the settings");
    for (name, content) in [("pg_hba.conf", access), ("server.crt", Tls::CERTIFICATE), ("server.key", &key)] {
        let path = data.join(name);
        fs::write(&path, content).expect("a file of the server");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("private files");
        if let Some((uid, gid)) = user {
            chown(&path, Some(uid), Some(gid)).expect("files of the server's user");
        }
    }
    // Tests of an ordinary user reach the socket and the certificate.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).expect("a folder to connect through");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a free port").port()
}

fn keeper(programs: &Path, folder: &Path, data: &Path, port: u16, local: bool) -> Child {
    let log = fs::File::create(folder.join("log")).expect("a log");
    let mut command = as_user(Command::new("sh"), ordinary_user());
    command.args(["-c", KEEPER, "sh"]).arg(folder).arg(programs.join("postgres")).arg("-D").arg(data);
    command.args(["-p", &port.to_string()]).stdin(Stdio::piped());
    if local {
        command.args(["-c", "listen_addresses="]);
    }
    command.stdout(log.try_clone().expect("a log")).stderr(log).spawn().expect("sh")
}

/// Waits until the server takes connections; false when it has ended.
fn is_ready(programs: &Path, folder: &Path, port: u16, data: &Path) -> bool {
    let began = Instant::now();
    let mut was_running = false;
    while began.elapsed() < START {
        let mut ask = Command::new(programs.join("psql"));
        ask.args(["-X", "-U", "postgres", "-d", "postgres", "-c", "SELECT 1", "-p", &port.to_string(), "-h"]);
        let answer = ask.arg(folder).stdin(Stdio::null()).output().expect("psql");
        if answer.status.success() {
            return true;
        }
        // The file is there while the server runs.
        let runs = data.join("postmaster.pid").exists();
        let log = log(folder);
        if (was_running && !runs) || log.contains("FATAL:  could not create any TCP/IP sockets") {
            return false;
        }
        was_running |= runs;
        std::thread::sleep(Duration::from_millis(50));
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_server_keeps_its_data_when_it_is_stopped_or_crashes_and_is_gone_in_the_end() {
        let Some(server) = Postgres::private() else { return };
        let name = server.create_database();
        server.sql(&name, "CREATE TABLE t AS SELECT 7 AS number");
        server.restart();
        assert_eq!(server.sql(&name, "SELECT number FROM t"), "7");
        server.crash();
        server.start();
        assert_eq!(server.sql(&name, "SELECT number FROM t"), "7");
        let folder = server.folder.clone();
        drop(server);
        assert!(!folder.exists());
        let Some(stopped) = Postgres::private() else { return };
        stopped.stop();
        let folder = stopped.folder.clone();
        drop(stopped);
        assert!(!folder.exists());
    }
}
