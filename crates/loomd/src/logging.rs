//! Logs: to stderr, filtered by `RUST_LOG`, as text or (`LOG_FORMAT=json`) one object per line.
//!
//! Stderr may be unread or closed. A thread, started by the first line, writes the logs from a bounded queue, and
//! lines that do not fit are dropped, so logging never blocks.

use std::io::{self, IsTerminal, Write, stderr};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Capacity of the queue of lines.
const QUEUE: usize = 8 * 1024;

/// How long [`flush`] waits at the end of the program.
const LAST_LINES: Duration = Duration::from_millis(500);

pub fn init() {
    let env = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    // An unset or invalid filter shows errors.
    let filter = env("RUST_LOG").and_then(|directives| EnvFilter::try_new(directives).ok());
    let logs = tracing_subscriber::fmt()
        .with_writer(Logs)
        .log_internal_errors(false)
        .with_env_filter(filter.unwrap_or_else(|| EnvFilter::new("error")))
        .with_span_events(FmtSpan::CLOSE);
    if env("LOG_FORMAT").is_some_and(|format| format.trim().eq_ignore_ascii_case("json")) {
        logs.json().init();
    } else {
        logs.with_ansi(env("NO_COLOR").is_none() && stderr().is_terminal()).init();
    }
}

/// Waits up to [`LAST_LINES`] until all logged lines are written.
pub fn flush() {
    let Some(lines) = LINES.get() else { return };
    let (written, done) = sync_channel(1);
    if lines.try_send(LogEntry::Mark(written)).is_ok() {
        _ = done.recv_timeout(LAST_LINES);
    }
}

static LINES: OnceLock<SyncSender<LogEntry>> = OnceLock::new();

enum LogEntry {
    Line(Vec<u8>),
    /// Answered when all lines before it are written.
    Mark(SyncSender<()>),
}

struct Logs;

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// Each call is one whole line.
impl Write for Logs {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let lines = LINES.get_or_init(|| {
            let (lines, written) = sync_channel(QUEUE);
            _ = thread::Builder::new().name("logs".into()).spawn(move || write_lines(&written));
            lines
        });
        _ = lines.try_send(LogEntry::Line(line.to_vec()));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(lines: &Receiver<LogEntry>) {
    while let Ok(entry) = lines.recv() {
        match entry {
            LogEntry::Line(line) => _ = stderr().write_all(&line),
            LogEntry::Mark(written) => _ = written.try_send(()),
        }
    }
}
