//! What happens to a command when the process that runs it dies.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

fn wait_for_line(path: &Path) -> String {
    loop {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => sleep(Duration::from_millis(5)),
        }
    }
}

/// Lets an owner run a script that writes a line to `$FILE`, and kills the owner with `SIGKILL`.
fn kill_owner(folder: &Path, flags: &[&str], script: &str) -> String {
    let file = folder.join("line");
    let mut owner = Command::new(env!("CARGO_BIN_EXE_exec-fixture"))
        .args(flags)
        .args(["sh", "-c", script])
        .env("FILE", &file)
        .env("ALIVE", folder.join("alive"))
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    let line = wait_for_line(&file);
    owner.kill().unwrap();
    owner.wait().unwrap();
    line
}

/// The script's line is the id of a process that must end.
fn check(script: &str) {
    let folder = tempfile::tempdir().unwrap();
    let pid = kill_owner(folder.path(), &[], script);
    while alive(&pid) {
        sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_command_dies_with_its_owner() {
    check("echo $$ > $FILE; exec sleep 100");
}

#[test]
fn descendants_of_a_command_die_with_its_owner() {
    check("sleep 100 & echo $! > $FILE; wait");
}

#[test]
fn a_command_that_ignores_signals_dies_with_its_owner() {
    check("trap '' TERM; echo $$ > $FILE; while :; do sleep 100; done");
}

#[test]
fn a_sandboxed_command_dies_with_all_it_started() {
    let folder = tempfile::tempdir().unwrap();
    // Process ids of the sandbox mean nothing outside. The pipe ends when its last holder has ended.
    let alive = folder.path().join("alive");
    assert!(Command::new("mkfifo").arg(&alive).status().unwrap().success());
    let gone = std::thread::spawn(|| std::fs::read(alive));
    let script = "setsid sh -c 'exec 3> $ALIVE; echo up > $FILE; sleep 1000' & wait";
    kill_owner(folder.path(), &["--sandboxed"], script);
    gone.join().unwrap().unwrap();
}
