//! Starts the program under test, and common requests.

use std::process::Stdio;
use std::time::Duration;

use loomd_testkit::{Home, Launch, Peer, Server, Signal, TIMEOUT};
use rustix::process::{Pid, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

pub const LOOMD: &str = env!("CARGO_BIN_EXE_loomd");

/// A small request that is answered at once.
pub const PING: &str = "thread/loaded/list";

/// The app-server, as clients start it.
pub fn launch() -> Launch {
    Launch::new(LOOMD).args(["app-server"])
}

/// An app-server on stdio after the handshake.
pub async fn initialized(home: &Home) -> Server {
    let server = launch().stdio(home);
    server.initialize().await;
    server
}

/// Checks that the server answers on this connection.
pub async fn ping(peer: &Peer) {
    let answer = peer.request(PING, json!({})).await;
    assert!(answer.as_ref().is_ok_and(|answer| answer["data"].is_array()), "{answer:?}");
}

/// One line of input: [`PING`] with this id, which is JSON.
pub fn ping_line(id: &str) -> String {
    format!("{{\"id\":{id},\"method\":\"{PING}\",\"params\":{{}}}}\n")
}

/// The program as a plain command, for tests of its pipes or its end.
pub fn loomd(home: &Home) -> Command {
    let mut command = Command::new(LOOMD);
    command
        .current_dir(home.work())
        .env_remove("LOOMD_HOME")
        .env("CODEX_HOME", home.path())
        .env("HOME", home.user())
        .env("RUST_LOG", "warn")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    command
}

/// An app-server on stdio whose three pipes the test holds.
pub fn piped(home: &Home) -> Child {
    let mut command = loomd(home);
    command.arg("app-server").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().expect("loomd starts")
}

/// The result of a run of the program.
#[derive(Debug, PartialEq)]
pub struct RunResult {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs the program to its end, with an empty stdin.
pub async fn run(home: &Home, args: &[&str]) -> RunResult {
    output(loomd(home).args(args)).await
}

pub async fn output(command: &mut Command) -> RunResult {
    let output = in_time("the end of the program", command.output()).await.expect("loomd starts");
    RunResult {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).expect("stdout is text"),
        stderr: String::from_utf8(output.stderr).expect("stderr is text"),
    }
}

pub async fn exit_code(child: &mut Child) -> Option<i32> {
    in_time("the end of the program", child.wait()).await.expect("a child can be waited for").code()
}

/// Sends a signal to a process that has not been waited for.
pub fn send(signal: Signal, child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    kill_process(id.expect("a running process has an id"), signal).expect("a child can be signalled");
}

pub async fn in_time<F: Future>(what: &str, work: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, work).await.unwrap_or_else(|_| panic!("no {what} within {TIMEOUT:?}"))
}

/// Polls until a condition outside of the protocol holds.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let looking = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    in_time(what, looking).await;
}

/// Waits until a process has a handler for a signal, which would kill it before.
pub async fn until_caught(pid: u32, signal: Signal) {
    until(&format!("handler of {signal:?}"), async || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process has a status");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask of caught signals");
        let caught = u64::from_str_radix(caught.trim(), 16).expect("a mask in hexadecimal digits");
        caught & (1 << (signal.as_raw() - 1)) != 0
    })
    .await;
}

/// An item of a notification as it is stored: without its times.
pub fn without_times(mut item: Value) -> Value {
    if let Some(fields) = item.as_object_mut() {
        fields.remove("startedAtMs");
        fields.remove("completedAtMs");
    }
    item
}
