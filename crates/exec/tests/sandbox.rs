//! Sandboxes, tried by commands. Each test runs under every mechanism that this system has; missing ones are printed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use loomd_exec::sandbox::{Report, Sandbox, Surroundings, looks_denied};
use loomd_exec::{Command, Environment, Event, Exit, FinishedCommand, Limits, Outcome, Sessions, run};
use loomd_protocol::{AbsolutePathBuf, ReadOnlyAccess, SandboxPolicy};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// A workspace, and a folder outside of it.
struct Place {
    _folder: TempDir,
    workspace: PathBuf,
    outside: PathBuf,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let [workspace, outside] = ["workspace", "outside"].map(|name| base.join(name));
        fs::create_dir(&workspace).unwrap();
        fs::create_dir(&outside).unwrap();
        Self { _folder: folder, workspace, outside }
    }

    fn sandbox(&self, policy: &SandboxPolicy) -> Sandbox {
        Sandbox::new(policy, Surroundings::new(&self.workspace)).unwrap()
    }

    async fn run(&self, sandbox: &Sandbox, script: &str) -> FinishedCommand {
        let command = Command::new(["bash", "-c", script], &self.workspace, Environment::of_this_process());
        self.run_command(sandbox, &command).await
    }

    async fn run_command(&self, sandbox: &Sandbox, command: &Command) -> FinishedCommand {
        let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
        let command = sandbox.wrap(command, Some(helper)).unwrap();
        run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap()
    }

    /// The mechanisms that work here, weakest last. Panics when there is none.
    async fn means(&self, policy: &SandboxPolicy) -> Vec<(&'static str, Sandbox)> {
        let sandbox = self.sandbox(policy);
        let mut means = Vec::new();
        for (name, sandbox) in [("namespaces", sandbox.clone()), ("landlock", sandbox.with_landlock_only())] {
            let tried = self.run(&sandbox, "echo $$").await;
            // In a process namespace of its own a command has a low process id.
            let number = text(&tried.stdout).trim().parse().unwrap_or(u32::MAX);
            if tried.outcome.exit_code() != 0 || (name == "namespaces" && number > 9) {
                eprintln!("{name}: not available here: {}", text(&tried.stderr));
            } else {
                means.push((name, sandbox));
            }
        }
        assert!(!means.is_empty(), "this system has no means to confine a command");
        means
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn read_only() -> SandboxPolicy {
    SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false }
}

fn workspace_write(roots: &[&Path], network_access: bool) -> SandboxPolicy {
    SandboxPolicy::WorkspaceWrite {
        writable_roots: roots.iter().filter_map(AbsolutePathBuf::new).collect(),
        read_only_access: ReadOnlyAccess::FullAccess,
        network_access,
        exclude_tmpdir_env_var: true,
        exclude_slash_tmp: true,
    }
}

fn entries(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut entries: Vec<_> = entries.collect();
    entries.sort();
    entries
}

#[tokio::test]
async fn a_read_only_sandbox_refuses_every_write() {
    let place = Place::new();
    fs::write(place.workspace.join("f"), "content").unwrap();
    for (name, sandbox) in place.means(&read_only()).await {
        let script = format!("cat f; touch a {0}/b /tmp/loomd-c; echo x > f; rm -f f; mv f g", place.outside.display());
        let done = place.run(&sandbox, &script).await;
        assert_eq!(text(&done.stdout), "content", "{name}: {}", text(&done.stderr));
        assert!(looks_denied(&done), "{name}: {done:?}");
        assert_eq!((entries(&place.workspace), entries(&place.outside)), (vec!["f".into()], vec![]), "{name}");
        assert!(!Path::new("/tmp/loomd-c").exists(), "{name}");
    }
}

#[tokio::test]
async fn a_workspace_sandbox_refuses_writes_outside_its_roots() {
    for (name, roots) in [("alone", false), ("with a root", true)] {
        let place = Place::new();
        let extra = place.outside.join("extra");
        fs::create_dir(&extra).unwrap();
        let roots: &[&Path] = if roots { &[&extra] } else { &[] };
        for (means, sandbox) in place.means(&workspace_write(roots, false)).await {
            let script = format!(
                "touch a && mkdir -p d/.git && touch d/.git/b; touch {0}/extra/c; touch {0}/out",
                place.outside.display()
            );
            let done = place.run(&sandbox, &script).await;
            assert_ne!(done.outcome.exit_code(), 0, "{name} {means}");
            assert!(place.workspace.join("d/.git/b").exists(), "{name} {means}: {}", text(&done.stderr));
            assert_eq!(extra.join("c").exists(), !roots.is_empty(), "{name} {means}");
            assert_eq!(entries(&place.outside), ["extra"], "{name} {means}");
        }
    }
}

#[tokio::test]
async fn git_agents_and_codex_folders_in_a_workspace_are_read_only() {
    let place = Place::new();
    for name in [".git", ".agents"] {
        fs::create_dir(place.workspace.join(name)).unwrap();
        fs::write(place.workspace.join(name).join("config"), "keep").unwrap();
    }
    for (name, sandbox) in place.means(&workspace_write(&[], false)).await {
        if name == "landlock" {
            eprintln!("landlock cannot protect folders inside a writable one");
            continue;
        }
        let script = "for f in .git .agents; do touch $f/x; echo evil > $f/config; rm -rf $f; mv $f other; done; \
                      mkdir .codex; echo a=1 > .codex/config.toml; mv .codex moved; rmdir .codex; touch ok";
        let done = place.run(&sandbox, script).await;
        assert_eq!(text(&done.stdout), "", "{}", text(&done.stderr));
        for name in [".git", ".agents"] {
            assert_eq!(entries(&place.workspace.join(name)), ["config"]);
            assert_eq!(fs::read_to_string(place.workspace.join(name).join("config")).unwrap(), "keep");
        }
        // The placeholder is removed by another process, a little later.
        while place.workspace.join(".codex").exists() {
            assert_eq!(entries(&place.workspace.join(".codex")), [""; 0]);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(entries(&place.workspace), [".agents", ".git", "ok"]);
    }
}

#[tokio::test]
async fn a_git_symlink_keeps_its_target_and_cannot_be_replaced() {
    let place = Place::new();
    if looks_unconfined(&place).await {
        return;
    }
    fs::create_dir(place.workspace.join("real")).unwrap();
    fs::write(place.workspace.join("real/config"), "keep\n").unwrap();
    std::os::unix::fs::symlink("real", place.workspace.join(".git")).unwrap();
    let script = "cat .git/config; touch ok; touch .git/x; rm .git; mv .git y; ln -sfn / .git";
    let done = place.run(&place.sandbox(&workspace_write(&[], false)), script).await;
    assert_eq!(text(&done.stdout), "keep\n", "{}", text(&done.stderr));
    assert_eq!(fs::read_link(place.workspace.join(".git")).unwrap(), Path::new("real"));
    assert_eq!(entries(&place.workspace.join("real")), ["config"]);
    assert!(place.workspace.join("ok").exists());
}

#[tokio::test]
async fn a_placeholder_is_removed_when_the_last_command_ends() {
    let place = Place::new();
    let sandbox = place.sandbox(&workspace_write(&[], false));
    let last = "until [ -e go ]; do sleep 0.02; done; mkdir .codex && echo escaped";
    let (done, ()) = tokio::join!(place.run(&sandbox, last), async {
        for _ in 0..3 {
            place.run(&sandbox, "true").await;
        }
        fs::write(place.workspace.join("go"), "").unwrap();
    });
    if looks_unconfined(&place).await {
        return;
    }
    assert_eq!(text(&done.stdout), "", "{}", text(&done.stderr));
    while place.workspace.join(".codex").exists() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_placeholder_is_removed_when_the_command_is_killed() {
    let place = Place::new();
    if looks_unconfined(&place).await {
        return;
    }
    let sandbox = place.sandbox(&workspace_write(&[], false));
    for script in ["touch runs; sleep 1000", "setsid sleep 1000 & touch runs; sleep 1000"] {
        let stop = CancellationToken::new();
        let command = Command::new(["bash", "-c", script], &place.workspace, Environment::of_this_process());
        let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
        let command = sandbox.wrap(&command, Some(helper)).unwrap();
        let (done, ()) = tokio::join!(run(&command, Limits::default(), &stop, |_, _| {}), async {
            while !place.workspace.join("runs").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            assert!(place.workspace.join(".codex").exists(), "the name is taken while the command runs");
            stop.cancel();
        });
        assert_eq!(done.unwrap().outcome, Outcome::Cancelled);
        while place.workspace.join(".codex").exists() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        fs::remove_file(place.workspace.join("runs")).unwrap();
    }
}

/// Whether only Landlock is available, which cannot enforce the policy of the test.
async fn looks_unconfined(place: &Place) -> bool {
    let means = place.means(&read_only()).await;
    let lacking = !means.iter().any(|(name, _)| *name == "namespaces");
    if lacking {
        eprintln!("skipped: no namespaces here");
    }
    lacking
}

#[tokio::test]
async fn the_network_is_unreachable_unless_granted() {
    let place = Place::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let connect = format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo connected", address.port());
    for (name, sandbox) in place.means(&workspace_write(&[], false)).await {
        let done = place.run(&sandbox, &connect).await;
        assert_eq!(text(&done.stdout), "", "{name}");
        assert!(text(&done.stderr).contains("Operation not permitted"), "{name}: {}", text(&done.stderr));
    }
    for (name, sandbox) in place.means(&workspace_write(&[], true)).await {
        let done = place.run(&sandbox, &connect).await;
        assert_eq!(text(&done.stdout), "connected\n", "{name}: {}", text(&done.stderr));
    }
}

#[tokio::test]
async fn the_network_namespace_is_empty() {
    let place = Place::new();
    if looks_unconfined(&place).await {
        return;
    }
    let done = place.run(&place.sandbox(&read_only()), "cat /proc/self/net/dev | tail -n +3 | cut -d: -f1").await;
    assert_eq!(text(&done.stdout).split_whitespace().collect::<Vec<_>>(), ["lo"], "{}", text(&done.stderr));
}

#[tokio::test]
async fn only_readable_roots_can_be_read() {
    let place = Place::new();
    fs::write(place.outside.join("secret"), "secret").unwrap();
    fs::write(place.workspace.join("f"), "content\n").unwrap();
    let policy = SandboxPolicy::WorkspaceWrite {
        writable_roots: vec![],
        read_only_access: ReadOnlyAccess::Restricted { include_platform_defaults: true, readable_roots: vec![] },
        network_access: false,
        exclude_tmpdir_env_var: true,
        exclude_slash_tmp: true,
    };
    for (name, sandbox) in place.means(&policy).await {
        let script = format!(
            "cat f; touch made; cat {}/secret; echo x > /dev/null && echo fine; ls /bin/sh",
            place.outside.display()
        );
        let done = place.run(&sandbox, &script).await;
        assert_eq!(text(&done.stdout), "content\nfine\n/bin/sh\n", "{name}: {}", text(&done.stderr));
        assert!(place.workspace.join("made").exists(), "{name}");
        fs::remove_file(place.workspace.join("made")).unwrap();
    }
}

#[tokio::test]
async fn a_command_cannot_undo_its_mounts_or_namespaces() {
    let place = Place::new();
    if looks_unconfined(&place).await {
        return;
    }
    let sandbox = place.sandbox(&workspace_write(&[], true));
    let out = place.outside.join("out").display().to_string();
    for script in [
        "mount -o remount,rw / && touch OUT",
        "mount -o remount,bind,rw / && touch OUT",
        "unshare -Urm sh -c 'mount -o remount,bind,rw /; mount -o remount,rw /; umount -l /; touch OUT'",
        "nsenter -t 1 -m touch OUT",
        "cd /proc/1/root && touch ./OUT",
        "chroot /proc/1/root touch OUT",
        "echo 1 > /proc/sys/kernel/ns_last_pid",
        "head -c 1 /dev/vda",
        "mknod n b 8 0 && head -c 1 n",
        "kill -9 $PPID; kill -9 1; true",
    ] {
        let done = place.run(&sandbox, &script.replace("OUT", &out)).await;
        let survived = script.ends_with("true");
        assert_eq!(done.outcome.exit_code() == 0, survived, "{script}: {done:?}");
        assert_eq!(entries(&place.outside), [""; 0], "{script}");
    }
}

/// The mechanisms that use mounts, as far as this system has them.
async fn with_mounts(place: &Place, policy: &SandboxPolicy) -> Vec<(&'static str, Sandbox)> {
    let mut found = place.means(policy).await;
    found.retain(|(name, _)| *name == "namespaces");
    let bubblewrap = place.sandbox(policy).with_bubblewrap_only();
    let tried = place.run(&bubblewrap, "true").await;
    if tried.outcome.exit_code() == 0 {
        found.push(("bubblewrap", bubblewrap));
    } else {
        eprintln!("bubblewrap: not available here: {}", text(&tried.stderr));
    }
    found
}

#[tokio::test]
async fn landlock_refuses_writes_behind_the_mounts() {
    let place = Place::new();
    let report = Report::make(Some(Path::new(env!("CARGO_BIN_EXE_exec-fixture")))).await.unwrap();
    if !report.landlock {
        eprintln!("skipped: the kernel has no Landlock");
        return;
    }
    // A process under Landlock cannot change mounts, not even in namespaces of its own.
    let script = "unshare -U echo free; unshare -Um echo mounted";
    for (name, sandbox) in with_mounts(&place, &workspace_write(&[], true)).await {
        let done = place.run(&sandbox, script).await;
        assert_eq!(text(&done.stdout), "free\n", "{name}: {}", text(&done.stderr));
    }
}

#[tokio::test]
async fn refused_writes_report_a_read_only_file_system() {
    let place = Place::new();
    fs::create_dir(place.workspace.join(".git")).unwrap();
    fs::write(place.outside.join("f"), "").unwrap();
    let script = format!(
        "cd {}; for try in 'touch new' 'touch f' 'mkdir d' 'rm f' 'mv f g' 'ln -s f l' 'truncate -s 1 f' 'touch \
         {}/.git/x'; do LC_ALL=C $try 2>&1 | grep -o 'Read-only file system' || echo \"$try\"; done",
        place.outside.display(),
        place.workspace.display()
    );
    for (name, sandbox) in with_mounts(&place, &workspace_write(&[], false)).await {
        let done = place.run(&sandbox, &script).await;
        assert_eq!(text(&done.stdout), "Read-only file system\n".repeat(8), "{name}: {}", text(&done.stderr));
    }
}

#[tokio::test]
async fn standard_devices_stay_writable() {
    let place = Place::new();
    let script = "echo a > /dev/null; echo b > /dev/stdout; echo c > /dev/shm/c; cat /dev/shm/c; echo d > \
                  /proc/self/comm; mkdir -p x/y; echo e > x/f; mv x/f x/y/g; ln x/y/g x/h; cat x/h; cat <<< here; rm -r x";
    for (name, sandbox) in with_mounts(&place, &workspace_write(&[], false)).await {
        let done = place.run(&sandbox, script).await;
        let seen = (text(&done.stdout), text(&done.stderr));
        assert_eq!(seen, ("b\nc\ne\nhere\n".into(), String::new()), "{name}");
    }
}

#[tokio::test]
async fn a_terminal_can_be_opened_by_its_other_names() {
    let place = Place::new();
    for (name, sandbox) in with_mounts(&place, &read_only()).await {
        let script = "echo one > /dev/stdout; echo two > /dev/tty; stty size < /dev/tty; echo three > /dev/stderr";
        let command = Command::new(["bash", "-c", script], &place.workspace, Environment::of_this_process());
        let command = sandbox.wrap(&command, Some(Path::new(env!("CARGO_BIN_EXE_exec-fixture")))).unwrap();
        let sessions = Sessions::default();
        let id = sessions.reserve();
        let polled = sessions.start(id, &command, true, Duration::from_secs(20), |_| {}).await.unwrap();
        let seen = (polled.exit, text(&polled.output.into_bytes()));
        assert_eq!(seen, (Some(Exit::Code(0)), "one\r\ntwo\r\n24 80\r\nthree\r\n".into()), "{name}");
    }
}

#[tokio::test]
async fn the_sandbox_passes_exit_codes_and_signals_through() {
    let place = Place::new();
    for (name, sandbox) in place.means(&read_only()).await {
        for (script, expected) in [("exit 9", 9), ("true", 0), ("kill -TERM $$", 143), ("kill -9 $$", 137)] {
            let done = place.run(&sandbox, script).await;
            assert_eq!(done.outcome.exit_code(), expected, "{name}: {script}");
        }
        let missing = Command::new(["no-such-program"], &place.workspace, Environment::of_this_process());
        let done = place.run_command(&sandbox, &missing).await;
        assert_eq!(
            (done.outcome.exit_code(), text(&done.stderr).as_str()),
            (127, "no-such-program: command not found\n"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn background_processes_end_with_the_sandboxed_command() {
    let place = Place::new();
    if looks_unconfined(&place).await {
        return;
    }
    let sandbox = place.sandbox(&workspace_write(&[], false));
    // Also processes in sessions of their own. The pipe ends when its last holder has ended.
    let alive = place.workspace.join("alive");
    assert!(std::process::Command::new("mkfifo").arg(&alive).status().unwrap().success());
    let gone = tokio::task::spawn_blocking(|| fs::read(alive));
    let script = "setsid sh -c 'exec 3> alive; echo > up; sleep 1000' & until [ -e up ]; do sleep 0.01; done";
    place.run(&sandbox, script).await;
    tokio::time::timeout(Duration::from_secs(20), gone).await.expect("it lives on").unwrap().unwrap();
}

#[tokio::test]
async fn keyboard_signals_reach_the_command_and_not_its_helpers() {
    let place = Place::new();
    let sandbox = place.sandbox(&read_only());
    // A terminal forgets unread output at an interrupt, so the command repeats itself.
    let script = "trap 'echo interrupted' INT; stty size; tty >/dev/null && sleep 100; \
                  until echo on; read -t 0.2 line; do :; done; echo got $line";
    let command = Command::new(["bash", "-c", script], &place.workspace, Environment::of_this_process());
    let command = sandbox.wrap(&command, Some(Path::new(env!("CARGO_BIN_EXE_exec-fixture")))).unwrap();
    let sessions = Sessions::default();
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let listen = move |event: Event<'_>| {
        if let Event::Output(text) = event {
            let _ = told.send(text.to_owned());
        }
    };
    let id = sessions.reserve();
    let number = id.id();
    let second = Duration::from_secs(1);
    let mut seen = String::new();
    let polled = sessions.start(id, &command, true, Duration::ZERO, listen).await.unwrap();
    assert_eq!(polled.exit, None);
    while !seen.contains("24 80\r\n") {
        seen += &heard.recv().await.unwrap();
    }
    while !seen.contains("on\r\n") {
        sessions.write(number, b"\x03", Duration::from_millis(50)).await.unwrap();
        while let Ok(text) = heard.try_recv() {
            seen += &text;
        }
    }
    let last = loop {
        let polled = sessions.write(number, b"it\n", second).await.unwrap();
        if polled.exit.is_some() {
            break polled;
        }
    };
    while let Some(text) = heard.recv().await {
        seen += &text;
    }
    assert_eq!(last.exit, Some(Exit::Code(0)), "{seen}");
    // "on" was printed before the sleep was over, so the interrupt reached the command.
    assert!(seen.contains("got it"), "{seen}");
}

#[tokio::test]
async fn the_report_matches_what_sandboxes_enforce() {
    let place = Place::new();
    let report = Report::make(Some(Path::new(env!("CARGO_BIN_EXE_exec-fixture")))).await.unwrap();
    let (read_only, workspace) = (place.sandbox(&read_only()), place.sandbox(&workspace_write(&[], false)));
    for sandbox in [read_only, workspace] {
        let done = place.run(&sandbox, "true").await;
        assert_eq!(report.enforces(&sandbox), done.outcome.exit_code() == 0, "{report}: {}", text(&done.stderr));
    }
}

/// Runs a command where namespaces are refused and only some programs are in the `PATH`. `None` where that cannot be
/// set up.
async fn run_where_namespaces_are_refused(place: &Place, command: &Command) -> Option<FinishedCommand> {
    let programs = place.outside.join("bin");
    let _ = fs::create_dir(&programs);
    for name in ["bash", "touch", "true"] {
        let _ = std::os::unix::fs::symlink(Path::new("/usr/bin").join(name), programs.join(name));
    }
    let mut env = Environment::of_this_process();
    env.set("PATH", programs.display().to_string());
    let limited = "echo 0 > /proc/sys/user/max_user_namespaces && name=$1 && shift && exec -a \"$name\" \"$@\"";
    let name = command.arg0.clone().unwrap_or_else(|| command.argv[0].clone());
    let mut argv = vec!["/usr/bin/unshare".to_owned(), "-Ur".into(), "bash".into(), "-c".into(), limited.into()];
    argv.extend(["bash".into(), name]);
    argv.extend(command.argv.iter().cloned());
    let command = Command::new(argv, &command.cwd, env);
    let done = run(&command, Limits::default(), &CancellationToken::new(), |_, _| {}).await.unwrap();
    let refused = text(&done.stderr).contains("max_user_namespaces") || text(&done.stderr).contains("unshare");
    if refused {
        eprintln!("skipped: {}", text(&done.stderr));
    }
    (!refused).then_some(done)
}

#[tokio::test]
async fn a_policy_that_cannot_be_enforced_refuses_to_run() {
    let place = Place::new();
    fs::create_dir(place.workspace.join(".git")).unwrap();
    let helper = Path::new(env!("CARGO_BIN_EXE_exec-fixture"));
    let touch = Command::new(["touch", "made"], &place.workspace, Environment::of_this_process());
    let workspace = place.sandbox(&workspace_write(&[], false)).wrap(&touch, Some(helper)).unwrap();
    let Some(done) = run_where_namespaces_are_refused(&place, &workspace).await else { return };
    assert_eq!(done.outcome.exit_code(), 125, "{done:?}");
    assert!(text(&done.stderr).starts_with("sandbox: this system cannot protect what lies in a writable folder"));
    assert!(looks_denied(&done), "so that the user may be asked");
    assert!(!place.workspace.join("made").exists());
    // A policy that Landlock can enforce alone still runs.
    let read_only = place.sandbox(&read_only());
    for (command, expected) in [(&touch, false), (&Command::new(["true"], "/", Environment::default()), true)] {
        let command = read_only.wrap(command, Some(helper)).unwrap();
        let Some(done) = run_where_namespaces_are_refused(&place, &command).await else { return };
        assert_eq!(done.outcome.exit_code() == 0, expected, "{}", text(&done.stderr));
    }
    assert!(!place.workspace.join("made").exists());
}
