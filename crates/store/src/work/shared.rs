//! Goals, queues, answered requests and approvals in a database that several processes share, as
//! [`WorkStore`](super::WorkStore) needs it. Each method does what the one of the same name of `WorkStore` promises, in one transaction.

use loomd_protocol::UserInput;
use uuid::Uuid;

use super::{
    ApprovalOutcome, ApprovalQuery, ClaimedMessage, EarlierRequest, Enqueued, Goal, QueuePage, QueuedMessage,
    RequestKey, Settled, StaleApprovals, StoredApproval,
};
use crate::ThreadId;
use crate::store::Answer;

/// A change of a goal: gets the stored goal and leaves what is to be stored.
pub type GoalChange = Box<dyn FnOnce(&mut Option<Goal>) + Send>;

/// Keeps goals, queues, answered requests and approvals.
pub trait SharedWork: Send + Sync {
    fn forget(&self, id: ThreadId) -> Answer<'_, ()>;
    fn goal(&self, id: ThreadId) -> Answer<'_, Option<Goal>>;
    fn change_goal(&self, id: ThreadId, change: GoalChange) -> Answer<'_, ()>;
    fn queue_page(&self, id: ThreadId, offset: usize, limit: usize) -> Answer<'_, QueuePage>;
    fn has_queued(&self, id: ThreadId) -> Answer<'_, bool>;
    fn enqueue(&self, id: ThreadId, client_id: String, input: Vec<UserInput>) -> Answer<'_, Enqueued>;
    fn update_queued(&self, id: ThreadId, message: String, input: Vec<UserInput>) -> Answer<'_, Option<QueuedMessage>>;
    fn delete_queued(&self, id: ThreadId, message: String) -> Answer<'_, bool>;
    fn reorder_queue(&self, id: ThreadId, order: Vec<String>) -> Answer<'_, bool>;
    fn queued(&self, id: ThreadId, message: Option<String>) -> Answer<'_, Option<QueuedMessage>>;
    fn claim(&self, id: ThreadId, message: Option<String>, turn_id: String) -> Answer<'_, Option<QueuedMessage>>;
    fn claims(&self, id: ThreadId) -> Answer<'_, Vec<ClaimedMessage>>;
    fn release_claim(&self, id: ThreadId, turn_id: String) -> Answer<'_, ()>;
    fn settle_claim(&self, id: ThreadId, turn_id: String) -> Answer<'_, ()>;
    fn earlier_request(&self, id: Option<ThreadId>, request: RequestKey) -> Answer<'_, Option<EarlierRequest>>;
    fn note_answer(&self, id: Option<ThreadId>, request: RequestKey, answer: String, epoch: String) -> Answer<'_, ()>;
    fn claim_answer(
        &self,
        id: Option<ThreadId>,
        request: RequestKey,
        answer: String,
    ) -> Answer<'_, Option<EarlierRequest>>;
    fn forget_answer(&self, id: Option<ThreadId>, request: RequestKey) -> Answer<'_, ()>;
    fn ask_approval(&self, approval: StoredApproval, stale: Option<StaleApprovals>) -> Answer<'_, ()>;
    fn settle_approval(&self, id: Uuid, outcome: ApprovalOutcome) -> Answer<'_, Settled>;
    fn cancel_stale_approvals(&self, id: ThreadId, stale: StaleApprovals) -> Answer<'_, usize>;
    fn approval(&self, id: Uuid) -> Answer<'_, Option<StoredApproval>>;
    fn approvals_of_turn(&self, id: ThreadId, turn_id: String) -> Answer<'_, Vec<StoredApproval>>;
    fn approvals(&self, query: ApprovalQuery) -> Answer<'_, Vec<StoredApproval>>;
}
