//! Whether this machine can confine commands as policies ask. Looked at when the first command or thread needs
//! it, beside other work: a command that cannot be confined is refused by itself; this only says why.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use loomd_exec::sandbox::{Report, Sandbox, Surroundings};
use loomd_protocol::{ConfigWarningNotification, ServerNotification};
use tokio::sync::OnceCell;
use tracing::{info, warn};

use crate::app::App;
use crate::thread_settings::Confined;

#[derive(Default)]
pub(crate) struct Confinement {
    report: OnceCell<Report>,
    /// Whether clients have been told that something cannot be enforced.
    told: AtomicBool,
    warning: Mutex<Option<ConfigWarningNotification>>,
}

impl Confinement {
    /// What clients are told after their handshake, if anything.
    pub fn warning(&self) -> Option<ConfigWarningNotification> {
        self.warning.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sees to it that clients know if a policy cannot be enforced.
pub(crate) fn check_policy(app: &Arc<App>, confined: &Confined, cwd: &Path) {
    if app.confinement.report.get().is_some_and(Report::is_complete) {
        return;
    }
    let tmpdir = std::env::var_os("TMPDIR").map(PathBuf::from);
    let surroundings = Surroundings { tmpdir: tmpdir.as_deref(), ..Surroundings::new(cwd) };
    if let Some(sandbox) = confined.sandbox(surroundings) {
        check(app, sandbox);
    }
}

/// The same for a sandbox that is about to be used.
pub(crate) fn check(app: &Arc<App>, sandbox: Sandbox) {
    let confinement = &app.confinement;
    let known = confinement.report.get();
    if confinement.told.load(Ordering::Relaxed) || known.is_some_and(|report| report.enforces(&sandbox)) {
        return;
    }
    let app = Arc::clone(app);
    tokio::spawn(async move {
        let confinement = &app.confinement;
        let report = *confinement.report.get_or_init(report).await;
        if !report.enforces(&sandbox) && !confinement.told.swap(true, Ordering::Relaxed) {
            let warning = warning(report);
            *confinement.warning.lock().unwrap_or_else(PoisonError::into_inner) = Some(warning.clone());
            app.broadcast(ServerNotification::ConfigWarning(warning)).await;
        }
    });
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
