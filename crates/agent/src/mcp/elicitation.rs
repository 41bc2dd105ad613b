//! Elicitations of servers, as requests to the subscribers of the thread that they belong to.

use std::sync::Arc;

use loomd_mcp::{BoxFuture, Caller, Elicitation, ElicitationAnswer, ElicitationMode, Progress};
use loomd_protocol::{
    AskForApproval, McpServerElicitationAction, McpServerElicitationRequest, McpServerElicitationRequestParams,
    McpServerElicitationRequestResponse,
};
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::approval::ApprovalParams;
use crate::event_log::EventLog;
use crate::turn_cx::TurnCx;
use crate::view::View;

/// A call of a turn.
pub(crate) struct TurnCaller {
    pub turn: Arc<TurnCx>,
    /// Progress notifications wait here to be published; more than fit are dropped.
    pub progress: mpsc::Sender<Progress>,
}

impl Caller for TurnCaller {
    fn thread(&self) -> &str {
        &self.turn.thread_id
    }

    fn elicit(&self, elicitation: Elicitation, withdrawn: CancellationToken) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            let turn = &self.turn;
            if !asks(&turn.settings.approval_policy) {
                return ElicitationAnswer::decline();
            }
            let params = params(turn.thread_id.clone(), Some(turn.turn_id.clone()), elicitation);
            let decided = turn.request_unless(params, withdrawn.cancelled()).await;
            decided.map_or_else(ElicitationAnswer::cancel, answer)
        })
    }

    fn progress(&self, progress: Progress) {
        // A flood of notifications must not delay the call.
        let _ = self.progress.try_send(progress);
    }
}

/// A thread between calls, or a call that a client makes itself.
pub(super) struct ThreadCaller {
    thread_id: String,
    events: Arc<EventLog>,
    view: Arc<View>,
    /// The policy of the thread's last turn.
    policy: Mutex<AskForApproval>,
    /// Whether elicitations belong to the running turn.
    in_turn: bool,
}

impl ThreadCaller {
    pub fn new(thread_id: String, events: Arc<EventLog>, view: Arc<View>, policy: AskForApproval) -> Self {
        Self { thread_id, events, view, policy: Mutex::new(policy), in_turn: true }
    }

    /// The same thread for a call that belongs to no turn.
    pub fn outside_turns(&self) -> Self {
        let (events, view) = (Arc::clone(&self.events), Arc::clone(&self.view));
        Self { in_turn: false, ..Self::new(self.thread_id.clone(), events, view, self.policy.lock().clone()) }
    }

    pub fn set_policy(&self, policy: AskForApproval) {
        *self.policy.lock() = policy;
    }
}

impl Caller for ThreadCaller {
    fn thread(&self) -> &str {
        &self.thread_id
    }

    fn elicit(&self, elicitation: Elicitation, withdrawn: CancellationToken) -> BoxFuture<'_, ElicitationAnswer> {
        Box::pin(async move {
            if !asks(&self.policy.lock()) {
                return ElicitationAnswer::decline();
            }
            let turn_id = self.view.running_turn().filter(|_| self.in_turn);
            let params = params(self.thread_id.clone(), turn_id, elicitation);
            self.view.change(&self.events, |status| status.approvals += 1).await;
            let mut open = self.events.request(params.into_request()).await;
            let decided = tokio::select! {
                biased;
                decided = open.decision() => decided,
                () = withdrawn.cancelled() => None,
            };
            let resolution = open.settle(decided).await;
            open.resolve().await;
            self.view.change(&self.events, |status| status.approvals = status.approvals.saturating_sub(1)).await;
            let decided = resolution.decision.and_then(McpServerElicitationRequestParams::decision);
            decided.map_or_else(ElicitationAnswer::cancel, answer)
        })
    }
}

/// Whether the policy lets servers ask the user.
fn asks(policy: &AskForApproval) -> bool {
    !matches!(policy, AskForApproval::Never | AskForApproval::Granular { mcp_elicitations: false, .. })
}

fn params(thread_id: String, turn_id: Option<String>, elicitation: Elicitation) -> McpServerElicitationRequestParams {
    let Elicitation { server, message, mode, meta } = elicitation;
    let request = match mode {
        ElicitationMode::Form { requested_schema } => {
            McpServerElicitationRequest::Form { meta, message, requested_schema }
        }
        ElicitationMode::OpenaiForm { requested_schema } => {
            McpServerElicitationRequest::OpenaiForm { meta, message, requested_schema }
        }
        ElicitationMode::Url { url, elicitation_id } => {
            McpServerElicitationRequest::Url { meta, message, url, elicitation_id }
        }
    };
    McpServerElicitationRequestParams { thread_id, turn_id, server_name: server, request }
}

fn answer(response: McpServerElicitationRequestResponse) -> ElicitationAnswer {
    match response.action {
        McpServerElicitationAction::Accept => ElicitationAnswer::accept(response.content, response.meta),
        McpServerElicitationAction::Decline => ElicitationAnswer::decline(),
        McpServerElicitationAction::Cancel => ElicitationAnswer::cancel(),
    }
}
