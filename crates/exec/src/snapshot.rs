//! Snapshots: the state of the user's shell after its start-up files, in a file, so that commands need not run them
//! again. When a snapshot cannot be taken, commands run in a login shell.
//!
//! A command may have written the start-up files, where it may write to the user's home. So a snapshot is taken in a
//! sandbox and serves only commands in the same one: they would have run those files themselves, with the same rights.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use loomd_config::config_toml::ShellEnvironmentPolicy;
use tokio_util::sync::CancellationToken;

use crate::environment::{NETWORK_DISABLED, SESSION, THREAD_ID, permits};
use crate::sandbox::Sandbox;
use crate::{
    Command, Environment, EnvironmentRequest, Limits, Outcome, RETAINED_BYTES, Shell, ShellKind, environment, run,
};

/// The timeout of start-up files, which may do anything.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Printed before the snapshot, because start-up files may print, too.
const MARKER: &str = "# shell snapshot";

/// Exported variables that belong to one run of a shell and are not part of a snapshot.
const OF_ONE_SHELL: &[&str] = &["OLDPWD", "PWD", "SHLVL", "_"];

/// A file that a shell sources in place of the user's start-up files. Removed when dropped.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    shell: Shell,
    cwd: PathBuf,
    sandbox: Option<Sandbox>,
}

/// The shell of a snapshot, and how its start-up files are run.
#[derive(Clone, Debug)]
pub struct SnapshotRequest<'a> {
    /// Where snapshots are kept.
    pub folder: &'a Path,
    pub thread_id: &'a str,
    pub shell: &'a Shell,
    pub cwd: PathBuf,
    /// The server's environment.
    pub environment: &'a Environment,
    /// The policy for variables of the server and of start-up files.
    pub policy: &'a ShellEnvironmentPolicy,
    /// The sandbox of the commands that the snapshot is for.
    pub sandbox: Option<Sandbox>,
    /// See [`Sandbox::wrap`].
    pub helper: Option<&'a Path>,
}

/// Where snapshots are kept in the home directory.
pub fn snapshot_folder(home: &Path) -> PathBuf {
    home.join("shell_snapshots")
}

impl Snapshot {
    /// Runs the user's shell once and stores its state; `None` when that fails.
    pub async fn take(request: SnapshotRequest<'_>) -> Option<Self> {
        let shell_path = request.shell.path.to_str()?;
        let dump = dump_script(request.shell.kind)?;
        let finished = request.run([shell_path, "-lc", &dump]).await?;
        let text = String::from_utf8(finished).ok()?;
        let (_, text) = text.split_once(MARKER)?;
        // A zero byte ends the shell's definitions, and each variable after them.
        let mut parts = text.split('\0');
        let text = parts.next()?;
        let exports: String = parts.filter_map(|variable| export(variable, request.policy)).collect();
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let path = request.folder.join(format!("{}.{nanos}.sh", request.thread_id));
        write(&path, &format!("{MARKER}{text}{exports}")).ok()?;
        // From here on the file is removed however this ends.
        let shell = request.shell.clone();
        let snapshot = Self { path, shell, cwd: request.cwd.clone(), sandbox: request.sandbox.clone() };
        request.run([shell_path, "-c", "set -e; . \"$0\"", snapshot.path.to_str()?]).await?;
        Some(snapshot)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The command with the snapshot in place of the start-up files, if a login shell of the same kind runs it in the
    /// same folder and `sandbox`; any other command unchanged. The variables in `set`, from the user's policy, and
    /// those that the server forces take precedence over the snapshot.
    pub fn apply(&self, command: Command, sandbox: Option<&Sandbox>, set: &BTreeMap<String, String>) -> Command {
        if sandbox != self.sandbox.as_ref() {
            return command;
        }
        let script = match &command.argv[..] {
            [shell, flag, script] if Path::new(shell) == self.shell.path && flag == "-lc" => script.clone(),
            _ => return command,
        };
        let Some(path) = self.path.to_str().filter(|_| command.cwd == self.cwd && self.path.exists()) else {
            return command;
        };
        let ours = SESSION.iter().filter(|(name, value)| command.env.get(name) == Some(value)).map(|(name, _)| *name);
        let names = set.keys().map(String::as_str).chain(ours).chain([THREAD_ID, NETWORK_DISABLED]);
        let kept: Vec<_> = names.filter(|name| is_name(name) && command.env.get(name).is_some()).collect();
        let shell = command.argv[0].clone();
        let argv = vec![shell.clone(), "-c".into(), wrapper(&kept), shell, path.to_owned(), script];
        Command { argv, ..command }
    }
}

impl Drop for Snapshot {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the snapshots of threads that are no longer `wanted`, left behind when a server was killed.
pub fn remove_stale_snapshots(folder: &Path, wanted: impl Fn(&str) -> bool) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let thread = path.file_name().and_then(|name| name.to_str()?.split('.').next());
        if path.extension().is_some_and(|extension| extension == "sh") && !thread.is_some_and(&wanted) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// The script of the wrapper. Its arguments are the shell, the snapshot and the script. Values are passed in variables,
/// because every user can read a command line.
fn wrapper(kept: &[&str]) -> String {
    let save = kept.iter().enumerate().map(|(index, name)| format!("__kept_{index}=\"${name}\"\n"));
    let restore = kept.iter().enumerate().map(|(index, name)| format!("export {name}=\"$__kept_{index}\"\n"));
    let (save, restore): (String, String) = (save.collect(), restore.collect());
    format!("{save}. \"$1\" >/dev/null 2>&1\n{restore}exec \"$0\" -c \"$2\"")
}

fn is_name(name: &str) -> bool {
    !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn dump_script(kind: ShellKind) -> Option<String> {
    let (startup, dump) = match kind {
        ShellKind::Bash => ("$HOME/.bashrc", "declare -f; set +o; alias -p"),
        ShellKind::Zsh => ("${ZDOTDIR:-$HOME}/.zshrc", "functions; setopt | sed 's/^/setopt /'; alias -L"),
        ShellKind::Sh => ("${ENV:-/dev/null}", "set +o; alias"),
        ShellKind::PowerShell => return None,
    };
    let startup = format!("if [ -r \"{startup}\" ]; then . \"{startup}\"; fi >/dev/null 2>&1");
    // Each shell prints exported variables in its own way; with zero bytes between them there is nothing to parse.
    Some(format!("{startup}\necho '{MARKER}'\n{dump}\nprintf '\\0'\n/usr/bin/env -0"))
}

/// A line that exports a variable, unless the policy keeps it from commands.
fn export(variable: &str, policy: &ShellEnvironmentPolicy) -> Option<String> {
    let (name, value) = variable.split_once('=')?;
    let wanted = is_name(name) && !OF_ONE_SHELL.contains(&name) && permits(policy, name);
    wanted.then(|| format!("export {name}='{}'\n", value.replace('\'', r"'\''")))
}

impl SnapshotRequest<'_> {
    /// The output of a program, if it succeeds in time.
    async fn run<const N: usize>(&self, argv: [&str; N]) -> Option<Vec<u8>> {
        let request = EnvironmentRequest::default();
        let command = Command::new(argv, &self.cwd, environment(self.environment, self.policy, request));
        let command = match &self.sandbox {
            Some(sandbox) => sandbox.wrap(&command, self.helper).ok()?,
            None => command,
        };
        let limits = Limits { timeout: Some(TIMEOUT), retained: RETAINED_BYTES };
        let finished = run(&command, limits, &CancellationToken::new(), |_, _| {}).await.ok()?;
        let done = matches!(finished.outcome, Outcome::Ended(exit) if exit.code() == 0);
        (done && finished.stdout.len() < RETAINED_BYTES).then_some(finished.stdout)
    }
}

/// Writes a file that only its owner can read: exported variables may be secrets.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        loomd_private::create_dir_all(folder)?;
    }
    loomd_private::options().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}
