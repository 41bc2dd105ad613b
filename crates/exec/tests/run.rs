//! Commands from start to end, with real programs.

use std::path::Path;
use std::time::Duration;

use loomd_exec::{Command, Environment, Exit, FinishedCommand, Limits, Outcome, Stream, run, run_with_input};
use tokio_util::sync::CancellationToken;

fn command(argv: &[&str]) -> Command {
    Command::new(argv.iter().copied(), "/", Environment::of_this_process())
}

fn sh(script: &str) -> Command {
    command(&["sh", "-c", script])
}

async fn run_quietly(command: &Command, limits: Limits) -> loomd_exec::Result<FinishedCommand> {
    run(command, limits, &CancellationToken::new(), |_, _| {}).await
}

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

async fn wait_until_dead(pid: &str) {
    while alive(pid) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

async fn wait_for_file(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text,
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn both_streams_and_the_exit_code_come_back() {
    let mut told = Vec::new();
    let script = sh("echo out; echo err >&2; exit 7");
    let tell = |stream, bytes: &[u8]| told.push((stream, String::from_utf8_lossy(bytes).into_owned()));
    let done = run(&script, Limits::default(), &CancellationToken::new(), tell).await.unwrap();
    assert_eq!(
        (done.outcome, done.stdout.as_slice(), done.stderr.as_slice()),
        (Outcome::Ended(Exit::Code(7)), &b"out\n"[..], &b"err\n"[..])
    );
    assert_eq!(done.aggregated(), b"out\nerr\n");
    told.sort_by_key(|(stream, _)| *stream == Stream::Stderr);
    assert_eq!(told, [(Stream::Stdout, "out\n".into()), (Stream::Stderr, "err\n".into())]);
}

#[tokio::test]
async fn a_command_gets_only_its_own_variables_folder_and_session() {
    let env = Environment::from_iter([("A", "1"), ("PATH", "/usr/bin:/bin")]);
    let done = run_quietly(&Command::new(["env"], "/", env.clone()), Limits::default()).await.unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), "A=1\nPATH=/usr/bin:/bin\n");
    let script = "pwd; cat; ps -o sid= -p $$ | tr -d ' '; echo $$; trap";
    let done = run_quietly(&Command::new(["sh", "-c", script], "/tmp", env), Limits::default()).await.unwrap();
    let seen = String::from_utf8(done.stdout).unwrap();
    let lines: Vec<_> = seen.lines().collect();
    assert_eq!((lines[0], lines.len()), ("/tmp", 3), "{seen}");
    assert_eq!(lines[1], lines[2], "it leads a session of its own");
}

#[tokio::test]
async fn a_command_that_cannot_start_reports_the_error() {
    let missing = r#"execution error: Io(Os { code: 2, kind: NotFound, message: "No such file or directory" })"#;
    let denied = r#"execution error: Io(Os { code: 13, kind: PermissionDenied, message: "Permission denied" })"#;
    let mut nowhere = command(&["true"]);
    nowhere.cwd = "/no/such/folder".into();
    for (command, expected) in [
        (nowhere, missing),
        (command(&["no-such-program"]), missing),
        (command(&["/no/such/program"]), missing),
        (command(&[""]), missing),
        (command(&["/etc"]), denied),
        (command(&[]), "command must not be empty"),
        (command(&["echo", "a\0b"]), "execution error: the command or its environment holds a NUL byte"),
    ] {
        let error = run_quietly(&command, Limits::default()).await.unwrap_err();
        assert_eq!(error.to_string(), expected, "{command:?}");
    }
}

#[tokio::test]
async fn a_script_without_an_interpreter_line_runs() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("script");
    std::fs::write(&script, "echo \"$0 $1\"\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let mut command = command(&["script", "arg"]);
    command.env.set("PATH", format!("/nowhere:{}", folder.path().display()));
    let done = run_quietly(&command, Limits::default()).await.unwrap();
    assert_eq!(String::from_utf8(done.stdout).unwrap(), format!("{} arg\n", script.display()));
}

#[tokio::test]
async fn a_death_by_signal_keeps_the_output() {
    let done = run_quietly(&sh("echo before; kill -9 $$"), Limits::default()).await.unwrap();
    assert_eq!(
        (done.outcome, done.outcome.exit_code(), done.stdout.as_slice()),
        (Outcome::Ended(Exit::Signal(9)), 137, &b"before\n"[..])
    );
}

#[tokio::test]
async fn a_timeout_kills_the_whole_group_and_keeps_the_output() {
    let limits = Limits { timeout: Some(Duration::from_millis(300)), ..Limits::default() };
    let done = run_quietly(&sh("trap '' TERM; sleep 100 & echo $!; wait"), limits).await.unwrap();
    assert_eq!((done.outcome, done.outcome.exit_code()), (Outcome::TimedOut, 124));
    wait_until_dead(std::str::from_utf8(&done.stdout).unwrap()).await;
}

#[tokio::test]
async fn output_beyond_the_limit_is_dropped_but_read() {
    let limits = Limits { retained: 10, ..Limits::default() };
    let done = run_quietly(&sh("seq 1 100000; seq 1 100000 >&2; exit 3"), limits).await.unwrap();
    assert_eq!(
        (done.outcome.exit_code(), done.stdout.as_slice(), done.stderr.as_slice()),
        (3, &b"1\n2\n3\n4\n5\n"[..], &b"1\n2\n3\n4\n5\n"[..])
    );
}

#[tokio::test]
async fn a_background_child_that_holds_stdout_does_not_delay_the_result() {
    let done = run_quietly(&sh("sleep 100 & echo $!"), Limits { timeout: None, ..Limits::default() }).await.unwrap();
    assert_eq!(done.outcome, Outcome::Ended(Exit::Code(0)));
    let pid = std::str::from_utf8(&done.stdout).unwrap();
    assert!(alive(pid), "what a command leaves behind on purpose stays");
    let pid = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn cancelling_kills_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = sh(&format!("echo early; sleep 100 & echo $! > {}; wait", file.display()));
    let cancel = CancellationToken::new();
    let (done, pid) = tokio::join!(run(&script, Limits::default(), &cancel, |_, _| {}), async {
        let pid = wait_for_file(&file).await;
        cancel.cancel();
        pid
    });
    let done = done.unwrap();
    assert_eq!((done.outcome, done.stdout.as_slice()), (Outcome::Cancelled, &b"early\n"[..]));
    wait_until_dead(&pid).await;
}

#[tokio::test]
async fn dropping_a_run_kills_the_whole_group() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pid");
    let script = sh(&format!("sleep 100 & echo $! > {}; wait", file.display()));
    let pid = tokio::select! {
        done = run_quietly(&script, Limits::default()) => panic!("{done:?}"),
        pid = wait_for_file(&file) => pid,
    };
    wait_until_dead(&pid).await;
}

#[tokio::test]
async fn no_zombie_is_left() {
    for _ in 0..3 {
        run_quietly(&command(&["true"]), Limits::default()).await.unwrap();
        run_quietly(&command(&["no-such-program"]), Limits::default()).await.unwrap_err();
    }
    let me = std::process::id().to_string();
    let zombies = || {
        std::fs::read_dir("/proc").unwrap().flatten().any(|entry| {
            let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(head, rest)| {
                let mut fields = rest.split(' ');
                head.contains("(true") && fields.next() == Some("Z") && fields.next() == Some(&me)
            })
        })
    };
    while zombies() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn input_reaches_a_command_and_unread_input_is_no_error() {
    let much = vec![b'x'; 1 << 20];
    for (script, expected) in [("wc -c", "1048576\n"), ("echo deaf", "deaf\n"), ("exec <&-; echo deaf", "deaf\n")] {
        let cancel = CancellationToken::new();
        let done = run_with_input(&sh(script), &much, Limits::default(), &cancel).await.unwrap();
        assert_eq!((done.outcome, done.stdout.as_slice()), (Outcome::Ended(Exit::Code(0)), expected.as_bytes()));
    }
}
