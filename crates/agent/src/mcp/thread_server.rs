//! One server of a thread.

use std::sync::Arc;

use loomd_mcp::{Attached, Listing, Server, SetEntry, StartError};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::rules::ToolRules;

/// How far a server has started for a thread.
#[derive(Clone, Debug)]
pub(crate) enum Startup {
    Starting,
    /// Not ready, but its tools are known from before.
    Cached(Arc<Listing>),
    Ready,
    Failed(StartError),
}

/// A server, with what the thread makes of its tools.
pub(crate) struct ThreadServer {
    pub name: String,
    pub entry: SetEntry,
    pub server: Arc<Server>,
    pub rules: Arc<dyn ToolRules>,
    pub(super) startup: watch::Receiver<Startup>,
    /// Starts it and publishes how that goes.
    pub(super) _starting: AbortOnDropHandle<()>,
    pub(super) _attached: Attached,
}

impl ThreadServer {
    /// The tools, once they are known. A server that failed for this thread may have been started by another since.
    pub fn listing(&self) -> Option<Arc<Listing>> {
        match &*self.startup.borrow() {
            Startup::Starting => None,
            Startup::Cached(listing) => Some(Arc::clone(listing)),
            Startup::Ready | Startup::Failed(_) => self.server.listing(),
        }
    }

    /// Resolves when its tools are known or it has failed.
    pub async fn started(&self) {
        let mut startup = self.startup.clone();
        // An error means that the task that starts it is gone.
        let _ = startup.wait_for(|startup| !matches!(startup, Startup::Starting)).await;
    }

    pub(super) fn has_failed(&self) -> bool {
        matches!(*self.startup.borrow(), Startup::Failed(_))
    }

    /// How far it has started.
    pub fn startup(&self) -> Startup {
        self.startup.borrow().clone()
    }
}
