//! A program that prints a gigabyte, and what that takes here: `cargo run -p loomd-exec --release --example flood`.

use std::time::Instant;

use loomd_exec::{Command, Environment, HeadTail, Process, Sink, Stdio, Supervision, supervise};
use tokio_util::sync::CancellationToken;

#[derive(Default)]
struct Kept {
    bytes: u64,
    ends: HeadTail,
}

impl Sink for Kept {
    async fn take(&mut self, piece: &[u8]) {
        self.bytes += piece.len() as u64;
        self.ends.push(piece);
    }
}

fn peak() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().into()
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let script = "head -c 1073741824 /dev/zero; printf 'the end'";
    let command = Command::new(["sh", "-c", script], "/", Environment::of_this_process());
    let cancel = CancellationToken::new();
    println!("before: {}", peak());
    let begun = Instant::now();
    let started = Process::start(&command, Stdio::Pipes { stdin: false }).await?;
    let (mut out, mut err) = (Kept::default(), Kept::default());
    let supervision = Supervision { deadline: None, stop: &cancel, piece: 32 * 1024 };
    let outputs = (started.stdout, started.stderr);
    let outcome = supervise(started.process, outputs, (&mut out, &mut err), supervision).await?;
    println!("after:  {}", peak());
    let dropped = out.ends.dropped();
    let ends = out.ends.into_bytes();
    let last = String::from_utf8_lossy(&ends[ends.len().saturating_sub(7)..]).into_owned();
    println!("{outcome:?}: {} bytes in {:?}, {dropped} not kept, the last are {last:?}", out.bytes, begun.elapsed());
    Ok(())
}
