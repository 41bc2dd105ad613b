//! The open approvals of a thread.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::EventLog;
use crate::approval::{Approval, ApprovalDecision, ApprovalId, ApprovalRequest, DecideError};
use crate::event::{EventId, EventKind};
use crate::event_sink::Audience;

/// An approval that a turn waits for. It is withdrawn when this is dropped.
pub(crate) struct OpenApproval<'a> {
    log: &'a EventLog,
    approval: Arc<Approval>,
    decision: oneshot::Receiver<ApprovalDecision>,
    /// `None` until it is published.
    event: Option<EventId>,
}

impl EventLog {
    /// Publishes a server request to the subscribers.
    pub async fn request(&self, request: ApprovalRequest) -> OpenApproval<'_> {
        let (approval, decision) = Approval::new(request);
        let mut open = OpenApproval { log: self, approval: Arc::new(approval), decision, event: None };
        let _order = self.ordered().await;
        let (event, to) = {
            let mut state = self.state.lock();
            let event = self.append(&mut state, EventKind::ApprovalRequested(Arc::clone(&open.approval)));
            state.approvals.insert(event.id, Arc::clone(&open.approval));
            (event, Arc::clone(&state.subscribers))
        };
        open.event = Some(event.id);
        self.sink.send(Audience::Only(&to), &event).await;
        open
    }

    /// The open approvals, in the order in which they were requested.
    pub fn approvals(&self) -> Vec<Arc<Approval>> {
        let state = self.state.lock();
        state.approvals.values().filter(|approval| approval.is_open()).cloned().collect()
    }

    /// Decides an open approval. The first decision wins.
    pub fn decide(&self, id: ApprovalId, decision: ApprovalDecision) -> Result<(), DecideError> {
        let approval = {
            let state = self.state.lock();
            state.approvals.values().find(|approval| approval.id == id).cloned()
        };
        approval.ok_or(DecideError::Unknown)?.decide(decision)
    }
}

impl OpenApproval<'_> {
    /// Waits for the decision; `None` when the approval is closed without one. Cancel-safe.
    pub async fn decision(&mut self) -> Option<ApprovalDecision> {
        (&mut self.decision).await.ok()
    }

    /// Closes the approval and publishes that it is no longer waited for.
    pub async fn resolve(self) {
        self.close();
        let _order = self.log.ordered().await;
        let (event, to) = {
            let mut state = self.log.state.lock();
            let event = self.log.append(&mut state, EventKind::ApprovalResolved(Arc::clone(&self.approval)));
            (event, Arc::clone(&state.subscribers))
        };
        if !to.is_empty() {
            self.log.sink.send(Audience::Only(&to), &event).await;
        }
    }

    fn close(&self) {
        self.approval.close();
        if let Some(event) = self.event {
            self.log.state.lock().approvals.remove(&event);
        }
    }
}

impl Drop for OpenApproval<'_> {
    fn drop(&mut self) {
        self.close();
        self.log.sink.withdraw(&self.approval);
    }
}
