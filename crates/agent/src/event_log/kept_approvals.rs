//! What is kept of a thread's approvals: in the work store as long as the thread is, or in memory while an ephemeral
//! thread is loaded.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use loomd_protocol::{ApprovalDefault, JsonValue};
use loomd_store::{
    ApprovalOutcome, ApprovalQuery, Error, Settled, StaleApprovals, StoredApproval, ThreadId, WorkStore,
};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::approval::{ApprovalDecision, ApprovalId, ApprovalRequest};
use crate::metering::Metering;

/// The most approvals of an ephemeral thread that are kept, besides open ones.
const MAX_UNSTORED: usize = 1000;

/// Where the approvals of a thread are kept, and the rules about them.
pub(crate) struct KeptApprovals {
    thread: ThreadId,
    work: WorkStore,
    /// Whether the thread is stored by now.
    is_stored: Box<dyn Fn() -> bool + Send + Sync>,
    /// How long an approval stays open, and what counts then.
    timeout: Option<(Duration, ApprovalDefault)>,
    /// The ledger of decisions.
    metering: Option<Arc<Metering>>,
    loaded_at_ms: i64,
    state: Mutex<KeptState>,
}

#[derive(Default)]
struct KeptState {
    /// The approvals of a thread that is not stored.
    unstored: BTreeMap<Uuid, StoredApproval>,
    /// What an earlier load of the thread has left of the turn that goes on.
    recalled: Vec<Recalled>,
    recalled_turn: Option<String>,
    /// Approvals that nothing waits for and that are stored as open, with their turns.
    dropped: Vec<(Uuid, String)>,
    /// The stale approvals of earlier loads have been cancelled.
    cleaned: bool,
}

struct Recalled {
    approval: StoredApproval,
    /// It is being requested again.
    is_asked: bool,
}

impl KeptState {
    /// The place of the oldest recalled approval of the same request that is not cancelled and not used yet.
    fn find_recalled(&self, request: &ApprovalRequest) -> Option<usize> {
        if self.recalled.is_empty() {
            return None;
        }
        let params = timeless(request.params().ok()?);
        self.recalled.iter().position(|recalled| {
            let approval = &recalled.approval;
            let is_usable = approval.outcome.as_ref().is_none_or(|outcome| outcome.decision.is_some());
            is_usable
                && !recalled.is_asked
                && approval.method == request.method()
                && timeless(approval.params.clone()) == params
        })
    }
}

/// For tests: in memory, without a deadline.
impl Default for KeptApprovals {
    fn default() -> Self {
        Self::new(ThreadId::new(), WorkStore::default(), Box::new(|| false))
    }
}

impl KeptApprovals {
    pub fn new(thread: ThreadId, work: WorkStore, is_stored: Box<dyn Fn() -> bool + Send + Sync>) -> Self {
        Self { thread, work, is_stored, timeout: None, metering: None, loaded_at_ms: now_ms(), state: Mutex::default() }
    }

    pub fn with_timeout(self, timeout: Option<(Duration, ApprovalDefault)>) -> Self {
        Self { timeout, ..self }
    }

    pub fn with_ledger(self, metering: Arc<Metering>) -> Self {
        Self { metering: Some(metering), ..self }
    }

    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// A new approval of this thread, as it will be stored.
    pub fn new_approval(&self, request: &ApprovalRequest) -> Result<StoredApproval, String> {
        let (turn_id, item_id) = request.place();
        let asked_at_ms = now_ms();
        let deadline = self.timeout.map(|(timeout, word)| {
            let timeout = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
            (asked_at_ms.saturating_add(timeout), word)
        });
        Ok(StoredApproval {
            id: Uuid::now_v7(),
            thread_id: self.thread,
            turn_id: turn_id.unwrap_or_default().into(),
            item_id: item_id.unwrap_or_default().into(),
            method: request.method().into(),
            params: request.params().map_err(|error| error.to_string())?,
            asked_at_ms,
            deadline_ms: deadline.map(|(at_ms, _)| at_ms),
            default_decision: deadline.map(|(_, word)| word.name().into()),
            outcome: None,
        })
    }

    /// Stores an open approval.
    pub async fn ask(&self, approval: StoredApproval) -> Result<(), String> {
        if !(self.is_stored)() {
            let mut state = self.state.lock();
            state.unstored.insert(approval.id, approval);
            if state.unstored.len() > MAX_UNSTORED {
                let ended = state.unstored.values().find(|approval| approval.outcome.is_some());
                if let Some(id) = ended.map(|approval| approval.id) {
                    state.unstored.remove(&id);
                }
            }
            return Ok(());
        }
        let stale = {
            let mut state = self.state.lock();
            let cleaned = std::mem::replace(&mut state.cleaned, true);
            (!cleaned).then(|| self.stale(state.recalled_turn.clone()))
        };
        let asked = self.work.ask_approval(approval, stale).await;
        asked.map_err(|error| {
            self.state.lock().cleaned = false;
            error.to_string()
        })
    }

    /// Ends an approval. Returns the outcome that counts: this one, or an earlier one.
    pub async fn settle(&self, id: Uuid, outcome: ApprovalOutcome) -> Result<Option<ApprovalOutcome>, String> {
        if let Some(approval) = self.state.lock().unstored.get_mut(&id) {
            return Ok(Some(approval.outcome.get_or_insert(outcome).clone()));
        }
        match self.work.settle_approval(id, outcome.clone()).await {
            Ok(Settled::Now) => Ok(Some(outcome)),
            Ok(Settled::Earlier(earlier)) => Ok(Some(earlier)),
            Ok(Settled::Unknown) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Appends the end of an approval to the ledger.
    pub fn note_in_ledger(&self, approval: &StoredApproval) {
        if let Some(metering) = &self.metering {
            metering.approval_ended(approval);
        }
    }

    /// Loads the approvals of a turn that goes on in this load of the thread; how many there are.
    pub async fn recall(&self, turn_id: &str) -> Result<usize, Error> {
        let stored = self.work.approvals_of_turn(self.thread, turn_id.to_owned()).await?;
        let count = stored.len();
        let mut state = self.state.lock();
        state.recalled_turn = Some(turn_id.to_owned());
        state.recalled = stored.into_iter().map(|approval| Recalled { approval, is_asked: false }).collect();
        Ok(count)
    }

    /// The oldest recalled approval of the same request that was not used yet, open or decided. One that is decided is
    /// used up; one that is open stays until [`Self::asked_again`].
    pub fn recalled(&self, request: &ApprovalRequest) -> Option<StoredApproval> {
        let mut state = self.state.lock();
        let place = state.find_recalled(request)?;
        match state.recalled[place].approval.outcome {
            Some(_) => Some(state.recalled.remove(place).approval),
            None => {
                state.recalled[place].is_asked = true;
                Some(state.recalled[place].approval.clone())
            }
        }
    }

    /// The decision about the oldest recalled approval of the same request, which is used up; `None` while it is open.
    pub fn recalled_decision(&self, request: &ApprovalRequest) -> Option<ApprovalDecision> {
        let mut state = self.state.lock();
        let place = state.find_recalled(request)?;
        let decision = state.recalled[place].approval.outcome.as_ref()?.decision.as_ref()?;
        let decision = request.parse_decision(decision).ok()?;
        state.recalled.remove(place);
        Some(decision)
    }

    /// Ends the recall of an approval that is open again. Returns its outcome if it was decided meanwhile.
    pub fn asked_again(&self, id: Uuid) -> Option<ApprovalOutcome> {
        let mut state = self.state.lock();
        let place = state.recalled.iter().position(|recalled| recalled.approval.id == id)?;
        state.recalled.remove(place).approval.outcome
    }

    /// A recalled approval that is still open.
    pub fn open_recalled(&self, id: ApprovalId) -> Option<StoredApproval> {
        let state = self.state.lock();
        let recalled = state.recalled.iter().find(|recalled| recalled.approval.id == id.0)?;
        recalled.approval.outcome.is_none().then(|| recalled.approval.clone())
    }

    /// Notes the outcome of a recalled approval.
    pub fn recalled_ended(&self, id: Uuid, outcome: &ApprovalOutcome) {
        let mut state = self.state.lock();
        if let Some(recalled) = state.recalled.iter_mut().find(|recalled| recalled.approval.id == id) {
            recalled.approval.outcome = Some(outcome.clone());
        }
    }

    /// Notes an approval that is stored as open, and that nothing waits for. It stays so until its turn ends, also when
    /// that goes on in a later load.
    pub fn dropped(&self, approval: &StoredApproval) {
        self.state.lock().dropped.push((approval.id, approval.turn_id.clone()));
    }

    /// Cancels what earlier loads of the thread have left open, in the background, when the first turn of this load
    /// starts.
    pub fn turn_started(self: &Arc<Self>, turn_id: &str) {
        if self.state.lock().cleaned || !(self.is_stored)() {
            return;
        }
        let (kept, turn_id) = (Arc::clone(self), turn_id.to_owned());
        tokio::spawn(async move { kept.cancel_stale(Some(&turn_id)).await });
    }

    /// Cancels what a turn has left open. Called before its end is published.
    pub async fn turn_ended(&self, turn_id: &str) {
        let left: Vec<Uuid> = {
            let mut state = self.state.lock();
            if state.dropped.is_empty() && state.recalled_turn.is_none() {
                return;
            }
            let (ended, others): (Vec<_>, Vec<_>) =
                std::mem::take(&mut state.dropped).into_iter().partition(|(_, turn)| turn == turn_id);
            state.dropped = others;
            let mut left: Vec<Uuid> = ended.into_iter().map(|(id, _)| id).collect();
            if state.recalled_turn.as_deref() == Some(turn_id) {
                state.recalled_turn = None;
                let recalled = std::mem::take(&mut state.recalled).into_iter();
                let open = recalled.filter(|recalled| recalled.approval.outcome.is_none() && !recalled.is_asked);
                left.extend(open.map(|recalled| recalled.approval.id));
            }
            left
        };
        for id in left {
            if let Err(error) = self.settle(id, ApprovalOutcome::cancelled()).await {
                tracing::warn!(%error, thread = %self.thread, "an approval could not be stored as cancelled");
            }
        }
    }

    /// Cancels what earlier loads of the thread have left open, except of a turn that goes on.
    pub async fn cancel_stale(&self, going_on: Option<&str>) {
        if !(self.is_stored)() || std::mem::replace(&mut self.state.lock().cleaned, true) {
            return;
        }
        let except = going_on.map(str::to_owned).or_else(|| self.state.lock().recalled_turn.clone());
        if let Err(error) = self.work.cancel_stale_approvals(self.thread, self.stale(except)).await {
            tracing::warn!(%error, thread = %self.thread, "stale approvals could not be cancelled");
        }
    }

    fn stale(&self, except_turn: Option<String>) -> StaleApprovals {
        StaleApprovals { before_ms: self.loaded_at_ms, except_turn }
    }

    /// The approvals in memory that a query asks for, in any order.
    pub fn unstored(&self, query: &ApprovalQuery) -> Vec<StoredApproval> {
        let state = self.state.lock();
        let is_asked_for = |approval: &&StoredApproval| {
            query.open.is_none_or(|open| open == approval.outcome.is_none())
                && query.before.is_none_or(|before| approval.id < before)
        };
        state.unstored.values().rev().filter(is_asked_for).take(query.limit).cloned().collect()
    }

    /// An approval in memory.
    pub fn find_unstored(&self, id: ApprovalId) -> Option<StoredApproval> {
        self.state.lock().unstored.get(&id.0).cloned()
    }
}

/// Params without the time at which their item started, which differs when the item is started again.
fn timeless(mut params: JsonValue) -> JsonValue {
    if let Some(members) = params.as_object_mut() {
        members.remove("startedAtMs");
    }
    params
}

pub(super) fn now_ms() -> i64 {
    Timestamp::now().as_millisecond()
}
