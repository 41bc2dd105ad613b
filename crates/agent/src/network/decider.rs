//! Decides about the hosts of a command that no list mentions, with approvals.

use std::sync::Arc;

use loomd_protocol::AskForApproval;
use loomd_proxy::{BlockReason, Decider, DecisionFuture, Request};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::guard::{ActionCx, DECLINED, HostDecision, Hosts};
use crate::services::Services;
use crate::turn_cx::TurnCx;

pub(super) struct ApprovalDecider {
    // Not the whole `ActionCx`: a background command must not keep the guard of an unloaded thread alive.
    turn: Arc<TurnCx>,
    services: Arc<Services>,
    hosts: Arc<Hosts>,
    /// Whether approvals may be requested.
    asks: bool,
    /// The number of requests of the command that wait for a decision.
    asking: watch::Sender<usize>,
    state: Mutex<LastRefusal>,
}

/// The last refusal of the proxy.
#[derive(Default)]
struct LastRefusal {
    refusal: Option<String>,
    /// The user declined the host that the proxy reports next as blocked.
    declined: bool,
}

impl ApprovalDecider {
    pub fn new(cx: &ActionCx, asks: bool, asking: watch::Sender<usize>) -> Self {
        let (turn, services) = (Arc::clone(&cx.turn), Arc::clone(&cx.services));
        let hosts = Arc::clone(&cx.guard.hosts);
        Self { turn, services, hosts, asks, asking, state: Mutex::default() }
    }

    pub fn refusal(&self) -> Option<String> {
        self.state.lock().refusal.clone()
    }

    async fn ask(&self, request: &Request) -> Result<(), BlockReason> {
        let _waiting = WaitingRequest::new(&self.asking);
        match Arc::clone(&self.hosts).ask(&self.turn, &self.services, request).await {
            HostDecision::Yes => Ok(()),
            HostDecision::No => {
                self.state.lock().declined = true;
                Err(BlockReason::NotAllowed)
            }
            HostDecision::Nothing => Err(BlockReason::NotAllowed),
        }
    }
}

impl Decider for ApprovalDecider {
    fn decide<'a>(&'a self, request: &'a Request) -> DecisionFuture<'a> {
        Box::pin(async move {
            match self.hosts.known(request) {
                Some(true) => Ok(()),
                Some(false) => Err(BlockReason::Denied),
                None if !self.asks || self.turn.settings.approval_policy == AskForApproval::Never => {
                    Err(BlockReason::NotAllowed)
                }
                None => self.ask(request).await,
            }
        })
    }

    fn blocked(&self, request: &Request, why: BlockReason) {
        let mut state = self.state.lock();
        let declined = std::mem::take(&mut state.declined);
        state.refusal = Some(if declined { DECLINED.into() } else { words(request, why) });
    }
}

/// The reason of a blocked request, for the model.
fn words(request: &Request, why: BlockReason) -> String {
    let why = match why {
        BlockReason::Denied => "domain is explicitly denied by policy and cannot be approved from this prompt.",
        BlockReason::NotAllowed => "domain is not on the allowlist for the current sandbox mode.",
        BlockReason::Local => "local/private network addresses are blocked by policy.",
        BlockReason::Method => "request method is blocked by the current network mode.",
        BlockReason::Tunnel => "tunnels, and so HTTPS, are blocked by the current network mode.",
    };
    format!("Network access to \"{}\" was blocked: {why}", request.host)
}

/// Counts a request that waits for a decision until it is dropped.
struct WaitingRequest<'a>(&'a watch::Sender<usize>);

impl<'a> WaitingRequest<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for WaitingRequest<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
