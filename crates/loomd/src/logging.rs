//! Logs: to stderr, filtered by `RUST_LOG`, as text or (`LOG_FORMAT=json`) an object per line.
//!
//! Whoever started the server may never read its stderr, or may have closed it. So a thread writes the
//! logs, started by the first line, and what it cannot take in time is dropped: logs never hold up work.

use std::io::{self, IsTerminal, Write, stderr};
use std::sync::OnceLock;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::FmtSpan;

/// Lines that wait to be written. More are dropped.
const QUEUE: usize = 8 * 1024;

/// How long the last lines are waited for at the end of the program.
const LAST_LINES: Duration = Duration::from_millis(500);

pub fn init() {
    let env = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    // An unset filter, or one that makes no sense, shows errors.
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

/// Waits, within reason, for what has been logged to be written.
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
    /// Answered when everything before it has been written.
    Mark(SyncSender<()>),
}

struct Logs;

impl<'a> MakeWriter<'a> for Logs {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        Self
    }
}

/// Each call is a whole line.
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
