//! The approvals of a thread: stored before they are published, and their outcomes before anything acts on them.

use std::sync::Arc;
use std::time::Duration;

use loomd_protocol::{ApprovalDefault, JsonValue, ServerNotification, WarningNotification};
use loomd_store::{ApprovalEnd, ApprovalOutcome, Decider, Error, StoredApproval};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as WordError;
use tokio::time::sleep;

use super::EventLog;
use super::kept_approvals::now_ms;
use crate::approval::{Approval, ApprovalDecision, ApprovalId, ApprovalRequest, DecideError, Decided, PendingDecision};
use crate::event::{EventId, EventKind};
use crate::event_sink::Audience;

/// How often the clock is compared with a deadline, which the clock may jump over.
const CLOCK_CHECK: Duration = Duration::from_secs(30);

/// An approval that a turn waits for. It is withdrawn when this is dropped, and stays stored as open then, for a turn
/// that goes on after a restart.
pub(crate) struct OpenApproval<'a> {
    log: &'a EventLog,
    approval: Arc<Approval>,
    decision: PendingDecision,
    /// `None` until it is published.
    event: Option<EventId>,
    /// The stored approval, until its outcome is stored.
    stored: Option<StoredApproval>,
    /// The decision, where none is waited for: an earlier load has stored it, or the request cannot be stored.
    settled: Option<ApprovalDecision>,
}

/// The end of an approval.
pub(crate) struct Resolution {
    /// What counts; `None` when nothing was decided.
    pub decision: Option<ApprovalDecision>,
    /// The approval with its outcome, if that was stored now.
    pub ended: Option<StoredApproval>,
}

impl EventLog {
    /// Stores a server request and publishes it to the subscribers. One that cannot be stored is declined.
    pub async fn request(&self, request: ApprovalRequest) -> OpenApproval<'_> {
        if matches!(request, ApprovalRequest::ToolCall(_)) {
            let (approval, decision) = Approval::new(request);
            return self.publish_request(self.open(approval, decision, None)).await;
        }
        if let Some(stored) = self.kept.recalled(&request) {
            return self.request_again(request, stored).await;
        }
        let (mut open, asked) = match self.kept.new_approval(&request) {
            Ok(stored) => {
                let (approval, decision) = restored(request, &stored);
                let open = self.open(approval, decision, Some(stored.clone()));
                (open, self.kept.ask(stored).await)
            }
            Err(error) => {
                let (approval, decision) = Approval::new(request);
                (self.open(approval, decision, None), Err(error))
            }
        };
        let Err(error) = asked else { return self.publish_request(open).await };
        let request = &open.approval.request;
        let message = format!("A request ({}) was declined, because it cannot be stored: {error}", request.name());
        let declined = request.declined("the request cannot be stored");
        (open.stored, open.settled) = (None, Some(declined));
        self.warn(message).await;
        open
    }

    /// Loads the stored approvals of a turn that goes on after a restart; how many there are. Each is used once by
    /// [`Self::request`] for the same request: one that is open is published again with the id and the deadline that it
    /// has, one that is decided is not published and has its decision at once.
    pub async fn recall_approvals(&self, turn_id: &str) -> Result<usize, Error> {
        self.kept.recall(turn_id).await
    }

    /// Cancels the stored approvals of turns that ended with an earlier process.
    pub async fn cancel_stale_approvals(&self) {
        self.kept.cancel_stale(None).await;
    }

    /// The decision of an earlier load about the same request. It is used up.
    pub fn recalled_decision(&self, request: &ApprovalRequest) -> Option<ApprovalDecision> {
        self.kept.recalled_decision(request)
    }

    async fn request_again(&self, request: ApprovalRequest, stored: StoredApproval) -> OpenApproval<'_> {
        let decided = stored.outcome.as_ref().and_then(|outcome| decision_of(&request, outcome));
        let (approval, decision) = restored(request, &stored);
        let id = stored.id;
        if let Some(decided) = decided {
            let mut open = self.open(approval, decision, None);
            open.settled = Some(decided);
            return open;
        }
        let open = self.open(approval, decision, Some(stored));
        let open = match open.approval.deadline {
            Some((at_ms, word)) if at_ms <= now_ms() => {
                open.approval.expire(word);
                open
            }
            _ => self.publish_request(open).await,
        };
        if let Some(outcome) = self.kept.asked_again(id)
            && let Some(decision) = decision_of(&open.approval.request, &outcome)
            && let Some(by) = outcome.by
        {
            _ = open.approval.decide(decision, by);
        }
        open
    }

    fn open(&self, approval: Approval, decision: PendingDecision, stored: Option<StoredApproval>) -> OpenApproval<'_> {
        OpenApproval { log: self, approval: Arc::new(approval), decision, event: None, stored, settled: None }
    }

    async fn publish_request<'a>(&'a self, mut open: OpenApproval<'a>) -> OpenApproval<'a> {
        let _order = self.ordered().await;
        let (event, to) = {
            let mut state = self.state.lock();
            let event = self.append(&mut state, EventKind::ApprovalRequested(Arc::clone(&open.approval)));
            state.approvals.insert(event.id, Arc::clone(&open.approval));
            (event, Arc::clone(&state.subscribers))
        };
        open.event = Some(event.id);
        self.send(Audience::Only(&to), &event).await;
        open
    }

    /// The open approvals, in the order in which they were requested.
    pub fn approvals(&self) -> Vec<Arc<Approval>> {
        let state = self.state.lock();
        state.approvals.values().filter(|approval| approval.is_open()).cloned().collect()
    }

    /// Decides an approval of this thread with what `decide` makes of its request, and waits until that is stored. The
    /// first decision wins.
    pub async fn decide(
        &self,
        id: ApprovalId,
        decide: impl FnOnce(&ApprovalRequest) -> Result<ApprovalDecision, DecideError>,
        by: Decider,
    ) -> Result<StoredApproval, DecideError> {
        let Some(approval) = self.requested(id) else { return self.decide_recalled(id, decide, by).await };
        let stored = approval.decide(decide(&approval.request)?, by)?.await;
        stored.map_err(|_| DecideError::Closed)?.map_err(DecideError::NotStored)
    }

    /// Decides an approval of an earlier load that is not published again yet.
    async fn decide_recalled(
        &self,
        id: ApprovalId,
        decide: impl FnOnce(&ApprovalRequest) -> Result<ApprovalDecision, DecideError>,
        by: Decider,
    ) -> Result<StoredApproval, DecideError> {
        let mut stored = self.kept.open_recalled(id).ok_or(DecideError::Unknown)?;
        let request = ApprovalRequest::read(&stored.method, &stored.params).ok_or(DecideError::Unknown)?;
        let decision = decide(&request)?;
        let json = decision.to_json().map_err(|error| DecideError::NotStored(error.to_string()))?;
        let outcome =
            ApprovalOutcome { end: ApprovalEnd::Decided, decision: Some(json), at_ms: now_ms(), by: Some(by.clone()) };
        match self.kept.settle(stored.id, outcome.clone()).await.map_err(DecideError::NotStored)? {
            Some(counts) if counts == outcome => {}
            Some(earlier) => return Err(DecideError::Ended(Box::new(earlier))),
            None => return Err(DecideError::Unknown),
        }
        self.kept.recalled_ended(stored.id, &outcome);
        if let Some(approval) = self.requested(id) {
            _ = approval.decide(decision, by);
        }
        stored.outcome = Some(outcome);
        self.kept.note_in_ledger(&stored);
        Ok(stored)
    }

    /// An approval that was published and that a turn waits for.
    fn requested(&self, id: ApprovalId) -> Option<Arc<Approval>> {
        self.state.lock().approvals.values().find(|approval| approval.id == id).cloned()
    }

    async fn warn(&self, message: String) {
        tracing::error!("{message}");
        let warning = WarningNotification { thread_id: Some(self.kept.thread().to_string()), message };
        self.publish(ServerNotification::Warning(warning)).await;
    }
}

impl OpenApproval<'_> {
    /// Waits for the decision, or for the deadline; `None` when the approval is closed without one. Cancel-safe. It has
    /// no effect before [`Self::settle`] has stored it.
    pub async fn decision(&mut self) -> Option<Decided> {
        if let Some(decision) = self.settled.clone() {
            return Some(Decided::settled(decision));
        }
        let Some((at_ms, word)) = self.approval.deadline else { return (&mut self.decision.0).await.ok() };
        loop {
            let left = u64::try_from(at_ms.saturating_sub(now_ms())).unwrap_or(0);
            if left == 0 {
                self.approval.expire(word);
                return (&mut self.decision.0).await.ok();
            }
            tokio::select! {
                biased;
                decided = &mut self.decision.0 => return decided.ok(),
                () = sleep(Duration::from_millis(left).min(CLOCK_CHECK)) => {}
            }
        }
    }

    /// Closes the approval and stores its outcome. A decision that cannot be stored is replaced by one that allows
    /// nothing.
    pub async fn settle(&mut self, decided: Option<Decided>) -> Resolution {
        self.approval.close();
        match self.stored.take() {
            Some(stored) => self.store_outcome(stored, decided).await,
            None => Resolution { decision: decided.map(|decided| decided.decision), ended: None },
        }
    }

    /// Publishes that the approval is no longer waited for.
    pub async fn resolve(self) {
        self.withdraw();
        if self.event.is_none() {
            return;
        }
        let _order = self.log.ordered().await;
        let (event, to) = {
            let mut state = self.log.state.lock();
            let event = self.log.append(&mut state, EventKind::ApprovalResolved(Arc::clone(&self.approval)));
            (event, Arc::clone(&state.subscribers))
        };
        if !to.is_empty() {
            self.log.send(Audience::Only(&to), &event).await;
        }
    }

    async fn store_outcome(&mut self, mut stored: StoredApproval, decided: Option<Decided>) -> Resolution {
        let (log, request) = (self.log, &self.approval.request);
        let outcome = match decided.as_ref().map(outcome_of).transpose() {
            Ok(outcome) => Ok(outcome.unwrap_or_else(ApprovalOutcome::cancelled)),
            Err(error) => Err(error.to_string()),
        };
        let settled = match outcome {
            Ok(outcome) => log.kept.settle(stored.id, outcome.clone()).await.map(|counts| (outcome, counts)),
            Err(error) => Err(error),
        };
        let (decision, ended) = match settled {
            Ok((outcome, Some(counts))) if outcome == counts => {
                stored.outcome = Some(outcome);
                log.kept.note_in_ledger(&stored);
                if let Some(decided) = decided {
                    _ = decided.stored.send(Ok(stored.clone()));
                    (Some(decided.decision), Some(stored))
                } else {
                    (None, Some(stored))
                }
            }
            // Another process has decided, or the thread was deleted.
            Ok((_, counts)) => {
                let decision = counts.and_then(|earlier| decision_of(request, &earlier));
                (decided.map(|_| decision.unwrap_or_else(|| request.declined(""))), None)
            }
            Err(error) => {
                log.kept.dropped(&stored);
                if let Some(decided) = decided {
                    let message = format!(
                        "A request ({}) was declined, because the decision cannot be stored: {error}",
                        request.name()
                    );
                    _ = decided.stored.send(Err(error));
                    log.warn(message).await;
                    (Some(request.declined("the decision cannot be stored")), None)
                } else {
                    tracing::warn!(%error, "an approval could not be stored as cancelled");
                    (None, None)
                }
            }
        };
        Resolution { decision, ended }
    }

    /// Takes it out of the open ones.
    fn withdraw(&self) {
        self.approval.close();
        if let Some(event) = self.event {
            self.log.state.lock().approvals.remove(&event);
        }
    }
}

impl Drop for OpenApproval<'_> {
    fn drop(&mut self) {
        self.withdraw();
        self.log.sink.withdraw(&self.approval);
        if let Some(stored) = self.stored.take() {
            self.log.kept.dropped(&stored);
        }
    }
}

/// The approval of a request that is stored.
fn restored(request: ApprovalRequest, stored: &StoredApproval) -> (Approval, PendingDecision) {
    let word = stored.default_decision.as_deref().and_then(word).unwrap_or_default();
    let deadline = stored.deadline_ms.map(|at_ms| (at_ms, word));
    Approval::with(ApprovalId(stored.id), request, stored.asked_at_ms, deadline)
}

/// A decision in one word, by its name.
pub(crate) fn word(name: &str) -> Option<ApprovalDefault> {
    ApprovalDefault::deserialize(IntoDeserializer::<WordError>::into_deserializer(name)).ok()
}

fn outcome_of(decided: &Decided) -> Result<ApprovalOutcome, serde_json::Error> {
    let end = if decided.is_expired() { ApprovalEnd::Expired } else { ApprovalEnd::Decided };
    let decision = Some(decided.decision.to_json()?);
    Ok(ApprovalOutcome { end, decision, at_ms: now_ms(), by: Some(decided.by.clone()) })
}

/// The decision of a stored outcome.
fn decision_of(request: &ApprovalRequest, outcome: &ApprovalOutcome) -> Option<ApprovalDecision> {
    outcome.decision.as_ref().and_then(|decision: &JsonValue| request.parse_decision(decision).ok())
}
