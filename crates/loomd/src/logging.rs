//! Logs: to stderr, filtered by `RUST_LOG`, as text or (`LOG_FORMAT=json`) an object per line.

use std::io::{IsTerminal, stderr};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::FmtSpan;

pub fn init() {
    let env = |name| std::env::var(name).ok().filter(|value: &String| !value.is_empty());
    // An unset filter, or one that makes no sense, shows errors.
    let filter = env("RUST_LOG").and_then(|directives| EnvFilter::try_new(directives).ok());
    let logs = tracing_subscriber::fmt()
        .with_writer(stderr)
        .with_env_filter(filter.unwrap_or_else(|| EnvFilter::new("error")))
        .with_span_events(FmtSpan::CLOSE);
    if env("LOG_FORMAT").is_some_and(|format| format.trim().eq_ignore_ascii_case("json")) {
        logs.json().init();
    } else {
        logs.with_ansi(env("NO_COLOR").is_none() && stderr().is_terminal()).init();
    }
}
