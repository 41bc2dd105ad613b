//! Shells that are like the user's without running the user's start-up files each time.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use loomd_exec::{
    Command, Environment, Limits, Shell, ShellKind, Snapshot, remove_stale_snapshots, run, snapshot_folder,
};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

struct User {
    home: TempDir,
    shell: Shell,
    env: Environment,
}

impl User {
    fn new(startup: &str) -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::write(home.path().join(".bashrc"), startup).unwrap();
        let path = ["/usr/bin/bash", "/bin/bash"].map(PathBuf::from).into_iter().find(|path| path.exists()).unwrap();
        let home_path = home.path().to_str().unwrap();
        let env = Environment::from_iter([("HOME", home_path), ("PATH", "/usr/bin:/bin"), ("GIVEN", "given")]);
        Self { shell: Shell { kind: ShellKind::Bash, path }, env, home }
    }

    fn folder(&self) -> PathBuf {
        snapshot_folder(self.home.path())
    }

    async fn snapshot(&self) -> Option<Snapshot> {
        Snapshot::take(&self.folder(), "T", &self.shell, Path::new("/"), &self.env).await
    }

    fn command(&self, script: &str) -> Command {
        Command::new(self.shell.argv(script, true), "/", self.env.clone())
    }
}

async fn output(command: &Command) -> String {
    let done = run(command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
    assert_eq!(done.outcome.exit_code(), 0, "{}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).unwrap()
}

#[tokio::test]
async fn a_command_finds_what_the_start_up_files_exported() {
    let user =
        User::new("echo noise; echo more >&2; export FROM_RC='a \"b\" $c'; GIVEN=changed; alias x=y; f() { :; }");
    fs::write(user.home.path().join(".bash_profile"), "export FROM_PROFILE=p").unwrap();
    let snapshot = user.snapshot().await.unwrap();
    let command = snapshot.apply(
        user.command("echo \"$FROM_RC|$FROM_PROFILE|$GIVEN|$PWD|$0\"; printf '%s\\n' 'it'\\''s'"),
        &BTreeMap::new(),
    );
    assert_eq!(output(&command).await, format!("a \"b\" $c|p|changed|/|{}\nit's\n", user.shell.path.display()));
    let kept = fs::read_to_string(snapshot.path()).unwrap();
    assert!(kept.starts_with("# shell snapshot\n") && kept.contains("alias x=") && !kept.contains("noise"), "{kept}");
}

#[tokio::test]
async fn what_the_policy_sets_or_we_force_outlives_it() {
    let user = User::new("export SET=rc TERM=rc GIVEN=rc");
    let snapshot = user.snapshot().await.unwrap();
    let mut command = user.command("echo $SET $TERM $GIVEN $CODEX_THREAD_ID");
    for (name, value) in [("SET", "policy"), ("TERM", "dumb"), ("CODEX_THREAD_ID", "T")] {
        command.env.set(name, value);
    }
    let command = snapshot.apply(command, &BTreeMap::from([("SET".into(), "policy".into())]));
    assert_eq!(output(&command).await, "policy dumb rc T\n");
    assert!(!command.argv.iter().any(|word| word.contains("policy")), "values are not on the command line");
}

#[tokio::test]
async fn other_commands_are_left_alone() {
    let user = User::new("");
    let snapshot = user.snapshot().await.unwrap();
    let mut elsewhere = user.command("true");
    elsewhere.cwd = "/tmp".into();
    let plain = Command::new(user.shell.argv("true", false), "/", user.env.clone());
    let other = Command::new(["/bin/sh", "-lc", "true"], "/", user.env.clone());
    for command in [elsewhere, plain, other] {
        assert_eq!(snapshot.apply(command.clone(), &BTreeMap::new()), command);
    }
}

#[tokio::test]
async fn a_snapshot_is_removed_with_its_owner_and_never_half_there() {
    let user = User::new("exit 1");
    assert!(user.snapshot().await.is_none());
    let user = User::new("");
    let snapshot = user.snapshot().await.unwrap();
    let path = snapshot.path().to_owned();
    fs::write(user.folder().join("gone.1.sh"), "").unwrap();
    fs::write(user.folder().join("other.txt"), "").unwrap();
    remove_stale_snapshots(&user.folder(), |thread| thread == "T").unwrap();
    assert!(path.exists() && !user.folder().join("gone.1.sh").exists());
    drop(snapshot);
    assert!(!path.exists() && user.folder().join("other.txt").exists());
}
