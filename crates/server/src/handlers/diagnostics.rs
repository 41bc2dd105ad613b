//! `server/diagnostics`

use loomd_protocol::{
    ServerDiagnosticsGauge, ServerDiagnosticsParams, ServerDiagnosticsProcess, ServerDiagnosticsResponse, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::figures::{figures, resident_memory, values};

/// `server/diagnostics`: the process, what it is doing, and the figures of `/metrics`, as whole numbers. This request
/// counts.
pub(crate) async fn read(cx: &Context, _: ServerDiagnosticsParams) -> Handled<call::ServerDiagnostics> {
    let threads = cx.app.threads();
    let gauges = [
        ("app.connections", cx.app.connections.ids().len()),
        ("app.requests.in_flight", cx.app.requests.in_flight()),
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
            .chain(figures(&cx.app).into_iter().flat_map(|figure| {
                values(&figure).into_iter().map(move |(rest, value)| ServerDiagnosticsGauge {
                    name: format!("{}{rest}", figure.name),
                    value: value as u64,
                })
            }))
            .collect(),
    })
}
