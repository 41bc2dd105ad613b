//! Snapshots of the user's shell in place of its start-up files.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{
    Command, Environment, Limits, Shell, ShellKind, Snapshot, SnapshotRequest, remove_stale_snapshots, run,
    snapshot_folder,
};
use loomd_protocol::SandboxPolicy;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A program whose `main` calls `run_if_helper`.
const HELPER: &str = env!("CARGO_BIN_EXE_exec-fixture");

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
        self.snapshot_with("", None).await
    }

    async fn snapshot_with(&self, policy: &str, sandbox: Option<Sandbox>) -> Option<Snapshot> {
        Snapshot::take(SnapshotRequest {
            folder: &self.folder(),
            thread_id: "T",
            shell: &self.shell,
            cwd: "/".into(),
            environment: &self.env,
            policy: &toml::from_str(policy).unwrap(),
            sandbox,
            helper: Some(Path::new(HELPER)),
        })
        .await
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
        None,
        &BTreeMap::new(),
    );
    assert_eq!(output(&command).await, format!("a \"b\" $c|p|changed|/|{}\nit's\n", user.shell.path.display()));
    let kept = fs::read_to_string(snapshot.path()).unwrap();
    assert!(kept.starts_with("# shell snapshot\n") && kept.contains("alias x=") && !kept.contains("noise"), "{kept}");
}

#[tokio::test]
async fn variables_set_by_the_policy_or_the_server_override_the_snapshot() {
    let user = User::new("export SET=rc TERM=rc GIVEN=rc");
    let snapshot = user.snapshot().await.unwrap();
    let mut command = user.command("echo $SET $TERM $GIVEN $CODEX_THREAD_ID");
    for (name, value) in [("SET", "policy"), ("TERM", "dumb"), ("CODEX_THREAD_ID", "T")] {
        command.env.set(name, value);
    }
    let command = snapshot.apply(command, None, &BTreeMap::from([("SET".into(), "policy".into())]));
    assert_eq!(output(&command).await, "policy dumb rc T\n");
    assert!(!command.argv.iter().any(|word| word.contains("policy")), "values are not on the command line");
}

#[tokio::test]
async fn a_variable_that_the_policy_excludes_comes_back_neither_from_the_server_nor_from_start_up_files() {
    let mut user = User::new("export RC_SECRET=rc OTHER='two\nlines' MY_KEY=rc PATH=/usr/bin:/bin:/rc");
    for name in ["SERVER_SECRET", "API_TOKEN", "GIVEN"] {
        user.env.set(name, "from-the-server");
    }
    let shown = "env | grep -E '^(RC_SECRET|SERVER_SECRET|API_TOKEN|MY_KEY|GIVEN|OTHER|PATH)=|^lines' | LC_ALL=C sort";
    for (policy, expected) in [
        ("exclude = ['*_SECRET', 'given', 'API_*']", "MY_KEY=rc\nOTHER=two\nPATH=/usr/bin:/bin:/rc\nlines\n"),
        ("ignore_default_excludes = false", "GIVEN=from-the-server\nOTHER=two\nPATH=/usr/bin:/bin:/rc\nlines\n"),
        ("include_only = ['PATH', 'HOME', 'GIVEN']", "GIVEN=from-the-server\nPATH=/usr/bin:/bin:/rc\n"),
        ("inherit = 'core'\nexclude = ['RC_*', 'MY*']", "OTHER=two\nPATH=/usr/bin:/bin:/rc\nlines\n"),
    ] {
        let snapshot = user.snapshot_with(policy, None).await.unwrap();
        let kept = fs::read_to_string(snapshot.path()).unwrap();
        let excluded = ["SERVER_SECRET", "RC_SECRET=", "API_TOKEN"];
        assert!(!excluded.iter().any(|name| kept.contains(&format!("export {name}"))), "{policy}: {kept}");
        let env = loomd_exec::environment(&user.env, &toml::from_str(policy).unwrap(), Default::default());
        let mut command = user.command(shown);
        command.env = env;
        assert_eq!(output(&snapshot.apply(command, None, &BTreeMap::new())).await, expected, "{policy}");
    }
}

#[tokio::test]
async fn start_up_files_run_in_the_sandbox_of_the_commands_that_the_snapshot_is_for() {
    let outside = tempfile::tempdir().unwrap();
    let planted = format!("touch {}/escaped; export FROM_RC=rc", outside.path().display());
    let user = User::new(&planted);
    let policy = SandboxPolicy::ReadOnly { access: Default::default(), network_access: false };
    let sandbox = Sandbox::new(&policy, Surroundings::new(Path::new("/"))).unwrap();
    let snapshot = user.snapshot_with("", Some(sandbox.clone())).await.unwrap();
    assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    let command = user.command("echo $FROM_RC");
    let within = snapshot.apply(command.clone(), Some(&sandbox), &BTreeMap::new());
    let within = sandbox.wrap(&within, Some(Path::new(HELPER))).unwrap();
    assert_eq!(output(&within).await, "rc\n");
    // The snapshot of a confined shell is not sourced by a command that is confined less.
    let mut wider = sandbox.clone();
    wider.grant_network();
    for other in [None, Some(&wider)] {
        assert_eq!(snapshot.apply(command.clone(), other, &BTreeMap::new()), command);
    }
}

#[tokio::test]
async fn a_snapshot_applies_only_to_login_scripts_of_its_shell_and_folder() {
    let user = User::new("");
    let snapshot = user.snapshot().await.unwrap();
    let mut elsewhere = user.command("true");
    elsewhere.cwd = "/tmp".into();
    let plain = Command::new(user.shell.argv("true", false), "/", user.env.clone());
    let other = Command::new(["/bin/sh", "-lc", "true"], "/", user.env.clone());
    for command in [elsewhere, plain, other] {
        assert_eq!(snapshot.apply(command.clone(), None, &BTreeMap::new()), command);
    }
}

#[tokio::test]
async fn a_snapshot_is_written_atomically_and_removed_with_its_owner() {
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
