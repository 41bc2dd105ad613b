//! What a user's shell is like once its start-up files have run, kept in a file, so that each command need not
//! run them again. Only a convenience: whatever goes wrong, commands run in a login shell as without it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio_util::sync::CancellationToken;

use crate::environment::{NETWORK_DISABLED, SESSION, THREAD_ID};
use crate::{Command, Environment, Limits, Outcome, RETAINED_BYTES, Shell, ShellKind, run};

/// Start-up files may do anything, also wait for a network.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Stands before what we asked for, because start-up files may print too.
const MARKER: &str = "# shell snapshot";

/// A file that a shell can read to be like the user's. Removed when dropped.
#[derive(Debug)]
pub struct Snapshot {
    path: PathBuf,
    shell: Shell,
    cwd: PathBuf,
}

/// Where snapshots are kept in the home directory.
pub fn snapshot_folder(home: &Path) -> PathBuf {
    home.join("shell_snapshots")
}

impl Snapshot {
    /// Runs the user's shell once and keeps what it is like; `None` when that does not work out.
    pub async fn take(folder: &Path, thread_id: &str, shell: &Shell, cwd: &Path, env: &Environment) -> Option<Self> {
        let shell_path = shell.path.to_str()?;
        let dump = dump_script(shell.kind)?;
        let finished = run_quietly([shell_path, "-lc", &dump], cwd, env).await?;
        let text = String::from_utf8(finished).ok()?;
        let (_, text) = text.split_once(MARKER)?;
        let nanos = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
        let path = folder.join(format!("{thread_id}.{nanos}.sh"));
        write(&path, &format!("{MARKER}{text}")).ok()?;
        // From here on the file is removed however this ends.
        let snapshot = Self { path, shell: shell.clone(), cwd: cwd.to_owned() };
        run_quietly([shell_path, "-c", "set -e; . \"$0\"", snapshot.path.to_str()?], cwd, env).await?;
        Some(snapshot)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The command with the start-up files replaced by the snapshot, if it is one that a login shell of the same
    /// kind runs in the same folder; any other as it is. `set` names what the user's policy sets: that, and what
    /// we force on commands ourselves, outlives the snapshot.
    pub fn apply(&self, command: Command, set: &BTreeMap<String, String>) -> Command {
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

/// The words of the wrapper are the shell, the snapshot and the script. Values are handed over in variables,
/// because a command line can be read by everybody.
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
        ShellKind::Bash => ("$HOME/.bashrc", "declare -f; set +o; alias -p; export -p"),
        ShellKind::Zsh => ("${ZDOTDIR:-$HOME}/.zshrc", "functions; setopt | sed 's/^/setopt /'; alias -L; export -p"),
        ShellKind::Sh => ("${ENV:-/dev/null}", "set +o; alias; export -p"),
        ShellKind::PowerShell => return None,
    };
    // A folder is where a command runs, not what the user's shell is like.
    let unset = "unset OLDPWD; export -n PWD 2>/dev/null || typeset +x PWD 2>/dev/null || true";
    Some(format!("if [ -r \"{startup}\" ]; then . \"{startup}\"; fi >/dev/null 2>&1\necho '{MARKER}'\n{unset}\n{dump}"))
}

async fn run_quietly<const N: usize>(argv: [&str; N], cwd: &Path, env: &Environment) -> Option<Vec<u8>> {
    let command = Command::new(argv, cwd, env.clone());
    let limits = Limits { timeout: Some(TIMEOUT), retained: RETAINED_BYTES };
    let finished = run(&command, limits, &CancellationToken::new(), |_, _| {}).await.ok()?;
    let whole =
        matches!(finished.outcome, Outcome::Ended(exit) if exit.code() == 0) && finished.stdout.len() < RETAINED_BYTES;
    whole.then_some(finished.stdout)
}

/// Only its owner may read it: exported variables may be secrets.
fn write(path: &Path, text: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
