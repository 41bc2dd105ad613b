//! Who a command's proxy asks about hosts that no list mentions.

use std::sync::Arc;

use loomd_protocol::AskForApproval;
use loomd_proxy::{BlockReason, Decider, DecisionFuture, Request};
use parking_lot::Mutex;
use tokio::sync::watch;

use crate::guard::{ActionCx, DECLINED, HostDecision, Hosts};
use crate::services::Services;
use crate::turn_cx::TurnCx;

pub(super) struct ApprovalDecider {
    // Not all that tools work with: the command may outlive its thread's interest, and must not keep it alive.
    turn: Arc<TurnCx>,
    services: Arc<Services>,
    hosts: Arc<Hosts>,
    /// Whether anybody may be asked at all.
    asks: bool,
    /// How many requests of the command wait for an answer.
    asking: watch::Sender<usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    refusal: Option<String>,
    /// The user has just said no; what the proxy reports next is that.
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
        let _counted = Counted::new(&self.asking);
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

/// What the model is told.
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

/// Counts as long as it lives.
struct Counted<'a>(&'a watch::Sender<usize>);

impl<'a> Counted<'a> {
    fn new(count: &'a watch::Sender<usize>) -> Self {
        count.send_modify(|count| *count += 1);
        Self(count)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
