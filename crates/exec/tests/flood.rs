//! Memory stays bounded while a program floods its output; the retained bytes are those that were requested, and the
//! last byte is read. The example `flood` does the same with a gigabyte.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::time::Duration;

use loomd_exec::{
    Command, Environment, Exit, HeadTail, Limits, Outcome, Process, RETAINED_BYTES, Sink, Stdio, Supervision, run,
    supervise,
};
use tokio_util::sync::CancellationToken;

const MIB: usize = 1024 * 1024;
const FLOOD: usize = 200 * MIB;
const END: &[u8] = b"the end";
/// The most growth of memory: far less than the output, far more than what is retained.
const ALLOWED: usize = 16 * MIB;

fn flood() -> Command {
    let script = format!("head -c {FLOOD} /dev/zero; printf 'the end'");
    Command::new(["sh", "-c", &script], "/", Environment::of_this_process())
}

/// The peak memory of this process.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() * 1024
}

#[derive(Default)]
struct Counted {
    bytes: usize,
    kept: HeadTail,
}

impl Sink for Counted {
    async fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len();
        self.kept.push(piece);
        if self.bytes.is_multiple_of(MIB) {
            // A reader that is slower than the program.
            tokio::time::sleep(Duration::from_micros(10)).await;
        }
    }
}

#[tokio::test]
async fn memory_stays_bounded_while_a_program_floods_its_output() {
    let before = peak();
    let cancel = CancellationToken::new();
    let started = Process::start(&flood(), Stdio::Pipes { stdin: false }).await.unwrap();
    let (mut out, mut err) = (Counted::default(), Counted::default());
    let supervision = Supervision { deadline: None, stop: &cancel, piece: 32 * 1024 };
    let outputs = (started.stdout, started.stderr);
    let outcome = supervise(started.process, outputs, (&mut out, &mut err), supervision).await.unwrap();
    assert_eq!((outcome, out.bytes, err.bytes), (Outcome::Ended(Exit::Code(0)), FLOOD + END.len(), 0));
    assert_eq!(out.kept.dropped(), (out.bytes - RETAINED_BYTES) as u64);
    let kept = out.kept.into_bytes();
    assert_eq!((kept.len(), kept.ends_with(END)), (RETAINED_BYTES, true));

    let limits = Limits { timeout: None, ..Limits::default() };
    let done = run(&flood(), limits, &cancel, |_, _| {}).await.unwrap();
    assert_eq!((done.outcome, done.stdout.len()), (Outcome::Ended(Exit::Code(0)), RETAINED_BYTES));
    let grown = peak() - before;
    assert!(grown < ALLOWED, "{grown} bytes more than before");
}
