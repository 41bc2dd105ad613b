//! `command/exec`: processes and their output when the client or the server is slow or gone.

use std::cell::RefCell;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use loomd_testkit::{Home, Launch, Peer, Signal, soak};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::common::{LOOMD, initialized, launch, ping, piped, until};

const MIB: u64 = 1 << 20;

/// Prints the id of a process in a session of its own.
const TREE: &str = "setsid sleep 1000 & echo $!; wait";

fn unconfined() -> Home {
    Home::empty().with(r#"sandbox_mode = "danger-full-access""#)
}

/// Starts a process tree and returns the id of one process.
async fn tree(peer: &Peer, id: &str) -> u32 {
    let params =
        json!({"command": ["sh", "-c", TREE], "processId": id, "streamStdoutStderr": true, "disableTimeout": true});
    peer.send_request("command/exec", params).await;
    let delta = peer.notification_where("command/exec/outputDelta", |delta| delta["processId"] == id).await;
    let printed = STANDARD.decode(delta["deltaBase64"].as_str().unwrap()).unwrap();
    String::from_utf8(printed).unwrap().trim().parse().unwrap()
}

fn lives(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(')').is_some_and(|(_, rest)| !rest.trim_start().starts_with(['Z', 'X']))
}

async fn is_gone(pid: u32) {
    soak::settles("a process that lost its owner", 0, || usize::from(lives(pid))).await;
}

#[tokio::test]
async fn processes_end_with_the_connection_that_started_them() {
    let home = unconfined();
    let server = launch().websocket(&home).await;
    let (staying, leaving) = (server.connect().await, server.connect().await);
    staying.initialize().await;
    leaving.initialize().await;
    let (kept, lost) = (tree(&staying, "same").await, tree(&leaving, "same").await);
    assert!(lives(kept) && lives(lost));
    drop(leaving);
    is_gone(lost).await;
    assert!(lives(kept), "the other connection is still there");
    staying.request("command/exec/terminate", json!({"processId": "same"})).await.unwrap();
    is_gone(kept).await;
}

#[tokio::test]
async fn processes_end_with_the_server_even_after_sigkill() {
    for signal in [Some(Signal::KILL), Some(Signal::TERM), None] {
        let home = unconfined();
        let mut server = initialized(&home).await;
        let pid = tree(&server, "p").await;
        assert!(lives(pid));
        match signal {
            Some(signal) => server.signal(signal),
            None => server.close_stdin().await,
        }
        server.wait_exit().await;
        is_gone(pid).await;
    }
}

#[tokio::test]
async fn a_terminated_terminal_exits_with_137() {
    let home = unconfined();
    let server = initialized(&home).await;
    let params = json!({
        "command": ["sh", "-c", "echo up; sleep 1000"], "processId": "t", "tty": true, "disableTimeout": true,
    });
    let id = server.send_request("command/exec", params).await;
    server.notification("command/exec/outputDelta").await;
    server.request("command/exec/terminate", json!({"processId": "t"})).await.unwrap();
    assert_eq!(server.response(&id).await.unwrap(), json!({"exitCode": 137, "stdout": "", "stderr": ""}));
}

#[tokio::test]
async fn requests_before_the_end_of_input_are_answered() {
    let home = unconfined();
    let mut server = initialized(&home).await;
    let id = server.send_request("command/exec", json!({"command": ["sh", "-c", "sleep 0.1; echo done"]})).await;
    server.close_stdin().await;
    assert_eq!(server.response(&id).await.unwrap(), json!({"exitCode": 0, "stdout": "done\n", "stderr": ""}));
    server.wait_exit().await;
}

/// Waits until the process whose id is in the file sleeps and writes nothing more.
async fn stuck(pid_file: &Path) {
    const LOOKS: usize = 20;
    let written = || {
        let pid = std::fs::read_to_string(pid_file).ok()?;
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())).ok()?;
        let io = std::fs::read_to_string(format!("/proc/{}/io", pid.trim())).ok()?;
        let wchar = io.lines().find_map(|line| line.strip_prefix("wchar: "))?.to_owned();
        stat.contains(") S ").then_some(wchar)
    };
    let last = RefCell::new((None, 0));
    until("sleeping program", async || {
        let (before, looks) = &mut *last.borrow_mut();
        let now = written();
        *looks = if now.is_some() && now == *before { *looks + 1 } else { 0 };
        *before = now;
        *looks >= LOOKS
    })
    .await;
}

#[tokio::test]
async fn a_process_waits_for_a_client_that_does_not_read() {
    let home = unconfined();
    let mut server = piped(&home);
    let (mut stdin, stdout) = (server.stdin.take().unwrap(), server.stdout.take().unwrap());
    let size = 64 * MIB;
    let pid_file = home.path().join("pid");
    let script = format!("head -c {size} /dev/zero & echo $! > {}; wait; printf 'the end'", pid_file.to_string_lossy());
    for message in [
        json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "t", "version": "1"}}}),
        json!({"id": 1, "method": "command/exec", "params": {
            "command": ["sh", "-c", script], "processId": "p", "streamStdoutStderr": true, "disableOutputCap": true,
            "disableTimeout": true,
        }}),
    ] {
        stdin.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let pid = server.id().unwrap();
    let mut lines = BufReader::with_capacity(1 << 20, stdout).lines();
    lines.next_line().await.unwrap();
    stuck(&pid_file).await;
    let (mut bytes, mut last, mut peak) = (0, Vec::new(), soak::memory(pid).rss);
    let result = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        let message: Value = serde_json::from_str(&line).unwrap();
        if message["id"] == 1 {
            break message["result"].clone();
        }
        last = STANDARD.decode(message["params"]["deltaBase64"].as_str().unwrap()).unwrap();
        bytes += last.len() as u64;
        if bytes % (8 * MIB) < 32 * 1024 {
            peak = peak.max(soak::memory(pid).rss);
        }
    };
    assert_eq!(result, json!({"exitCode": 0, "stdout": "", "stderr": ""}));
    assert_eq!((bytes, last.ends_with(b"the end")), (size + 7, true));
    assert!(peak < 64 * MIB, "{peak} bytes of memory");
}

#[tokio::test]
async fn output_of_a_process_does_not_block_further_requests() {
    let home = unconfined();
    let server = launch().websocket(&home).await;
    let peer = server.connect().await;
    peer.initialize().await;
    let params = json!({"command": ["yes"], "processId": "y", "streamStdoutStderr": true, "disableOutputCap": true, "disableTimeout": true});
    let id = peer.send_request("command/exec", params).await;
    peer.notification("command/exec/outputDelta").await;
    ping(&peer).await;
    peer.request("command/exec/terminate", json!({"processId": "y"})).await.unwrap();
    assert_eq!(peer.response(&id).await.unwrap()["exitCode"], -1);
    ping(&peer).await;
}

#[tokio::test]
async fn a_machine_without_sandbox_warns_and_refuses_commands() {
    let home = Home::empty();
    let limited = "echo 0 > /proc/sys/user/max_user_namespaces && exec \"$@\"";
    let possible = std::process::Command::new("unshare").args(["-Ur", "sh", "-c", limited, "sh", "true"]).status();
    if !possible.is_ok_and(|status| status.success()) {
        return eprintln!("skipped: namespaces cannot be refused here");
    }
    let launch = Launch::new("unshare").args(["-Ur", "sh", "-c", limited, "sh", LOOMD, "app-server"]);
    let server = launch.stdio(&home);
    server.initialize().await;
    let params = json!({"command": ["touch", "made"], "sandboxPolicy": {"type": "workspaceWrite"}});
    let answer = server.request("command/exec", params).await.unwrap();
    assert_ne!(answer["exitCode"], 0, "{answer}");
    assert!(!home.work().join("made").exists());
    let warning = server.notification("configWarning").await;
    assert!(warning["summary"].as_str().unwrap().starts_with("This machine cannot confine commands"), "{warning}");
}
