//! `server/diagnostics`

use loomd_protocol::{
    ServerDiagnosticsGauge, ServerDiagnosticsParams, ServerDiagnosticsProcess, ServerDiagnosticsResponse, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `server/diagnostics`: the process and what it is doing. This request counts.
pub(crate) async fn read(cx: &Context, _: ServerDiagnosticsParams) -> Handled<call::ServerDiagnostics> {
    let threads = cx.app.threads();
    let gauges = [
        ("app.connections", cx.app.connections.ids().len()),
        ("app.requests.in_flight", cx.app.requests.get()),
        // A request is worked on as soon as it is read.
        ("app.requests.queued", 0),
        ("core.threads.live", threads.loaded().len()),
        ("core.turns.active", threads.running_turns()),
    ];
    answer(ServerDiagnosticsResponse {
        process: ServerDiagnosticsProcess {
            id: std::process::id(),
            resident_memory_bytes: resident_memory(),
            physical_footprint_bytes: None,
        },
        gauges: gauges
            .into_iter()
            .map(|(name, value)| ServerDiagnosticsGauge { name: name.into(), value: value as u64 })
            .collect(),
    })
}

/// The resident memory of this process, where the system tells.
fn resident_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes: u64 =
        status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?.split_whitespace().next()?.parse().ok()?;
    Some(kibibytes * 1024)
}
