//! Whether this machine can enforce sandbox policies. Checked in the background when the first command or thread needs
//! it. It only notifies clients: a command that cannot be confined is refused where it is launched.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_exec::sandbox::{Report, Sandbox};
use loomd_protocol::{ConfigWarningNotification, ServerNotification};
use parking_lot::Mutex;
use tokio::sync::OnceCell;
use tracing::{info, warn};

use crate::event_sink::EventSink;

pub(crate) struct Enforcement {
    event_sink: Arc<dyn EventSink>,
    report: OnceCell<Report>,
    /// Whether clients were notified that a policy cannot be enforced.
    notified: AtomicBool,
    warning: Mutex<Option<ConfigWarningNotification>>,
}

impl Enforcement {
    pub fn new(event_sink: Arc<dyn EventSink>) -> Self {
        Self { event_sink, report: OnceCell::new(), notified: AtomicBool::new(false), warning: Mutex::new(None) }
    }

    /// The warning that clients get after their handshake, if any.
    pub fn warning(&self) -> Option<ConfigWarningNotification> {
        self.warning.lock().clone()
    }

    /// Whether the check is done and every policy can be enforced.
    pub fn is_complete(&self) -> bool {
        self.report.get().is_some_and(Report::is_complete)
    }

    /// Notifies all clients, once, if a sandbox cannot be enforced.
    pub fn check(self: &Arc<Self>, sandbox: Sandbox) {
        let known = self.report.get();
        if self.notified.load(Ordering::Relaxed) || known.is_some_and(|report| report.enforces(&sandbox)) {
            return;
        }
        let this = Arc::clone(self);
        tokio::spawn(async move {
            let report = *this.report.get_or_init(report).await;
            if !report.enforces(&sandbox) && !this.notified.swap(true, Ordering::Relaxed) {
                let warning = warning(report);
                *this.warning.lock() = Some(warning.clone());
                this.event_sink.broadcast(ServerNotification::ConfigWarning(warning)).await;
            }
        });
    }
}

async fn report() -> Report {
    match Report::make(None).await {
        Ok(report) => {
            info!(%report, "what commands can be confined by");
            report
        }
        Err(error) => {
            warn!(%error, "cannot tell what commands can be confined by");
            Report::default()
        }
    }
}

fn warning(report: Report) -> ConfigWarningNotification {
    let summary = "This machine cannot confine commands as the sandbox policy asks; such commands are refused.";
    let details = format!(
        "What works here: {report}. Allow user namespaces or install bubblewrap, or choose a policy that this machine \
         can enforce."
    );
    ConfigWarningNotification { summary: summary.into(), details: Some(details), path: None, range: None }
}
