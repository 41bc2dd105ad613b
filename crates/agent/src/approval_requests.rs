//! Requests about approvals: of all threads or of one, open or decided.

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{
    ApprovalDecidedBy, ApprovalFilter, ApprovalListResponse, ApprovalRecord, ApprovalState, JsonValue,
};
use loomd_store::{ApprovalEnd, ApprovalOutcome, ApprovalQuery, Decider, StoredApproval, ThreadId};
use uuid::Uuid;

use crate::approval::{Approval, ApprovalId, DecideError};
use crate::event_log::{KeptApprovals, word};
use crate::refusal::Refusal;
use crate::settings::Profile;
use crate::threads::Threads;
use crate::view::{Persistence, View};

/// The number of approvals on a page when the client does not say, and the most.
const PAGE: u32 = 25;
const MAX_PAGE: u32 = 100;

impl Threads {
    /// The open approvals of a thread, in the order in which they were requested; none if it is not loaded.
    pub fn approvals(&self, id: ThreadId) -> Vec<Arc<Approval>> {
        self.get(id).map(|loaded| loaded.events.approvals()).unwrap_or_default()
    }

    /// A page of the approvals of a thread or of all threads, the newest first.
    pub async fn list_approvals(
        &self,
        thread_id: Option<ThreadId>,
        state: Option<ApprovalFilter>,
        cursor: Option<&str>,
        limit: Option<u32>,
    ) -> Result<ApprovalListResponse, Refusal> {
        let before = cursor
            .map(Uuid::parse_str)
            .transpose()
            .map_err(|error| Refusal::invalid(format!("invalid cursor: {error}")))?;
        let limit = limit.unwrap_or(PAGE).clamp(1, MAX_PAGE) as usize;
        let open = state.map(|state| state == ApprovalFilter::Open);
        let query = ApprovalQuery { thread_id, open, before, limit: limit + 1 };
        let mut found = self.store.work().approvals(query).await?;
        let loaded = match thread_id {
            Some(id) => self.get(id).into_iter().collect(),
            None => self.all_loaded(),
        };
        found.extend(loaded.iter().flat_map(|loaded| loaded.events.kept.unstored(&query)));
        found.sort_unstable_by_key(|approval| Reverse(approval.id));
        let more = found.len() > limit;
        found.truncate(limit);
        let next_cursor = found.last().filter(|_| more).map(|last| last.id.to_string());
        Ok(ApprovalListResponse { data: found.into_iter().map(approval_record).collect(), next_cursor })
    }

    /// Decides an open approval, for any front end, and returns it once the decision is stored. The first decision
    /// counts. `decision` is what a client would answer, or a word.
    pub async fn decide(
        &self,
        approval: ApprovalId,
        decision: &JsonValue,
        by: Decider,
    ) -> Result<ApprovalRecord, DecideError> {
        for loaded in self.all_loaded() {
            let parse = |request: &crate::approval::ApprovalRequest| {
                request.parse_decision(decision).map_err(DecideError::Invalid)
            };
            match loaded.events.decide(approval, parse, by.clone()).await {
                Err(DecideError::Unknown) => {}
                // The outcome may be stored by now.
                Err(DecideError::Closed) => break,
                decided => return decided.map(approval_record),
            }
        }
        let unstored = self.all_loaded().into_iter().find_map(|loaded| loaded.events.kept.find_unstored(approval));
        let found = match unstored {
            Some(found) => Some(found),
            None => {
                let found = self.store.work().approval(approval.0).await;
                found.map_err(|error| DecideError::NotStored(error.to_string()))?
            }
        };
        match found.ok_or(DecideError::Unknown)?.outcome {
            Some(outcome) => Err(DecideError::Ended(Box::new(outcome))),
            None => Err(DecideError::NotWaiting),
        }
    }

    /// Where the approvals of a thread that is loaded are kept.
    pub(crate) fn kept_approvals(&self, id: ThreadId, profile: &Profile, view: Arc<View>) -> KeptApprovals {
        let configured = profile.config.config.loomd.as_ref().and_then(|own| own.approvals.as_ref());
        let timeout = configured.and_then(|approvals| {
            let timeout = Duration::from_secs(approvals.timeout_sec?);
            Some((timeout, approvals.default_decision.unwrap_or_default()))
        });
        let is_stored = move || view.persistence() == Persistence::Stored;
        KeptApprovals::new(id, self.store.work().clone(), Box::new(is_stored))
            .with_timeout(timeout)
            .with_ledger(Arc::clone(&self.services.metering))
    }
}

/// The approval as clients see it.
pub fn approval_record(approval: StoredApproval) -> ApprovalRecord {
    let outcome = approval.outcome;
    let some = |text: String| Some(text).filter(|text| !text.is_empty());
    ApprovalRecord {
        id: approval.id.to_string(),
        thread_id: approval.thread_id.to_string(),
        turn_id: some(approval.turn_id),
        item_id: some(approval.item_id),
        method: approval.method,
        params: approval.params,
        state: outcome.as_ref().map_or(ApprovalState::Open, approval_state),
        asked_at: approval.asked_at_ms.div_euclid(1000),
        deadline: approval.deadline_ms.map(|at_ms| at_ms.div_euclid(1000)),
        default_decision: approval.default_decision.as_deref().and_then(word),
        decided_at: outcome.as_ref().map(|outcome| outcome.at_ms.div_euclid(1000)),
        decided_by: outcome.as_ref().and_then(|outcome| outcome.by.as_ref()).map(decided_by),
        decision: outcome.and_then(|outcome| outcome.decision),
    }
}

/// The state of an approval with this outcome.
pub fn approval_state(outcome: &ApprovalOutcome) -> ApprovalState {
    match outcome.end {
        ApprovalEnd::Decided => ApprovalState::Decided,
        ApprovalEnd::Expired => ApprovalState::Expired,
        ApprovalEnd::Cancelled => ApprovalState::Cancelled,
    }
}

/// A decider as clients see it.
pub fn decided_by(by: &Decider) -> ApprovalDecidedBy {
    ApprovalDecidedBy { connection: by.connection.clone(), client: by.client.clone(), role: by.role.clone() }
}
