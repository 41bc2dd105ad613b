//! No process outlives its owner: trees of processes, some in sessions of their own, are cancelled, dropped, timed out,
//! or lose the process that started them, at random moments. Their processes are found by a variable that each
//! inherits, or by an argument.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_exec::{Command, Environment, Limits, run};
use loomd_protocol::{ReadOnlyAccess, SandboxPolicy};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

/// The first five keep their parents; the others are daemons: orphaned at once, in a session of their own, after two
/// forks, without the environment, with signals ignored, started anew whenever they end, and deep down.
const TREE: &str = "sleep 1000 & setsid sleep 1000 & (sleep 1000; :) & setsid sh -c 'sleep 1000 & wait' & \
                    sh -c 'exec setsid sleep 1000' & \
                    ( sleep 1000 & ); ( setsid sleep 1000 & ); ( sh -c '( setsid sh -c \"sleep 1000 &\" & )' ); \
                    ( env -i perl -MPOSIX -e 'fork and exit; setsid; fork and exit; sleep 1000' $LOOMD_TREE & ); \
                    ( setsid sh -c 'trap \"\" TERM HUP INT; sleep 1000; :' & ); \
                    ( setsid sh -c 'while :; do sleep 1000; done' & ); \
                    ( setsid sh -c '( setsid sh -c \"( setsid sleep 1000 & )\" & )' & ); wait";
/// The number of processes in the tree.
const MEMBERS: usize = 17;
const MARK: &str = "LOOMD_TREE";
/// The number of trees at a time.
const AT_ONCE: u64 = 8;
/// How long a killed process may take to end on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A unique mark for a tree, and how long the tree runs undisturbed.
fn next() -> (String, Duration) {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let random = count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    (format!("{}-{count}", std::process::id()), Duration::from_micros(random % 20_000))
}

fn tree(mark: &str) -> Command {
    let mut env = Environment::of_this_process();
    env.set(MARK, mark);
    Command::new(["sh", "-c", TREE], "/", env)
}

fn confined(command: &Command) -> Command {
    let policy = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
    let sandbox = Sandbox::new(&policy, Surroundings::new(Path::new("/"))).unwrap();
    sandbox.wrap(command, Some(Path::new(env!("CARGO_BIN_EXE_exec-fixture")))).unwrap()
}

/// The processes of a tree.
fn members(mark: &str) -> BTreeSet<String> {
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let of_tree = entries.filter(|entry| {
        let has = |file: &str, wanted: &str| {
            let bytes = fs::read(entry.path().join(file)).unwrap_or_default();
            bytes.split(|byte| *byte == 0).any(|word| word == wanted.as_bytes())
        };
        has("environ", &wanted) || has("cmdline", mark)
    });
    of_tree.map(|entry| entry.file_name().into_string().unwrap()).collect()
}

async fn nothing_is_left(mark: &str) {
    let gone = async {
        while !members(mark).is_empty() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    if timeout(TIMEOUT, gone).await.is_err() {
        let left = members(mark);
        let names = left.iter().map(|pid| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
        panic!("left of {mark}: {:?}", names.collect::<Vec<_>>());
    }
}

/// Runs `act` for many trees, a few at a time.
async fn many<F: Future<Output = ()> + Send + 'static>(trees: u64, act: impl Fn(String, Duration) -> F) {
    let mut running = JoinSet::new();
    for _ in 0..trees {
        if running.len() as u64 >= AT_ONCE {
            running.join_next().await.unwrap().unwrap();
        }
        let (mark, pause) = next();
        running.spawn(act(mark, pause));
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

fn unlimited() -> Limits {
    Limits { timeout: None, ..Limits::default() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_aborted_run_leaves_no_member_of_a_process_tree() {
    let (mark, _) = next();
    let command = tree(&mark);
    let work = tokio::spawn(async move { run(&command, unlimited(), &CancellationToken::new(), |_, _| {}).await });
    while members(&mark).len() < MEMBERS {
        sleep(Duration::from_millis(5)).await;
    }
    work.abort();
    nothing_is_left(&mark).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_dropped_or_timed_out_command_leaves_no_descendant() {
    let ways = Arc::new(AtomicU64::new(0));
    many(240, |mark, pause| {
        let way = ways.fetch_add(1, Ordering::Relaxed);
        async move {
            let command = if way % 4 == 3 { confined(&tree(&mark)) } else { tree(&mark) };
            let cancel = CancellationToken::new();
            match way % 3 {
                0 => drop(timeout(pause, run(&command, unlimited(), &cancel, |_, _| {})).await),
                1 => {
                    let limits = Limits { timeout: Some(pause), ..Limits::default() };
                    run(&command, limits, &cancel, |_, _| {}).await.unwrap();
                }
                _ => {
                    let work = run(&command, unlimited(), &cancel, |_, _| {});
                    let (done, ()) = tokio::join!(work, async {
                        sleep(pause).await;
                        cancel.cancel();
                    });
                    done.unwrap();
                }
            }
            nothing_is_left(&mark).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_command_whose_server_was_killed_leaves_no_descendant() {
    let ways = Arc::new(AtomicU64::new(0));
    many(260, |mark, pause| {
        let way = ways.fetch_add(1, Ordering::Relaxed);
        async move {
            let mut owner = std::process::Command::new(env!("CARGO_BIN_EXE_exec-fixture"));
            if way % 4 == 3 {
                owner.arg("--sandboxed");
            }
            let mut owner = owner.args(["sh", "-c", TREE]).env(MARK, &mark).stdin(Stdio::null()).spawn().unwrap();
            // Now and then long enough for the whole tree.
            sleep(if way.is_multiple_of(2) { pause } else { 3 * pause }).await;
            owner.kill().unwrap();
            owner.wait().unwrap();
            nothing_is_left(&mark).await;
        }
    })
    .await;
}
