//! The open server requests, by their JSON-RPC ids: the approvals of threads, and requests of the whole process, such
//! as those for account tokens.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use loomd_agent::Approval;
use loomd_protocol::{JsonValue, RequestId, RpcError, ServerRequest};
use loomd_store::Decider;
use parking_lot::{Mutex, MutexGuard};
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::connections::ConnectionId;
use crate::decisions::{decision, encode};
use crate::encoded_request::EncodedRequest;

/// The open server requests of all threads and of the process.
#[derive(Default)]
pub(crate) struct ServerRequests {
    next: AtomicI64,
    open: Mutex<BTreeMap<i64, OpenRequest>>,
}

struct OpenRequest {
    message: EncodedRequest,
    /// The connections whose answer is accepted.
    sent_to: Vec<ConnectionId>,
    waiting: AnswerTarget,
}

/// The receiver of an answer.
enum AnswerTarget {
    Turn(Arc<Approval>),
    Process(oneshot::Sender<Result<JsonValue, RpcError>>),
}

/// A request that concerns no thread. It is withdrawn when this is dropped.
pub(crate) struct ProcessRequest {
    server_requests: Arc<ServerRequests>,
    id: i64,
    pub message: EncodedRequest,
    /// The result, or the error that a client answered with.
    pub answer: oneshot::Receiver<Result<JsonValue, RpcError>>,
}

impl Drop for ProcessRequest {
    fn drop(&mut self) {
        self.server_requests.lock().remove(&self.id);
    }
}

impl ServerRequests {
    /// An id that no other server request has.
    pub fn next_id(&self) -> i64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    /// Opens a request that concerns no thread.
    pub fn open(
        self: &Arc<Self>,
        sent_to: Vec<ConnectionId>,
        request: &ServerRequest,
    ) -> Result<ProcessRequest, serde_json::Error> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let message = EncodedRequest::new(request, &RequestId::Integer(id))?;
        let (waiting, answer) = oneshot::channel();
        let open = OpenRequest { message: message.clone(), sent_to, waiting: AnswerTarget::Process(waiting) };
        self.lock().insert(id, open);
        Ok(ProcessRequest { server_requests: Arc::clone(self), id, message, answer })
    }

    /// Opens the request of an approval, or adds connections to those that it was sent to. Returns the message for
    /// them; `None` when the approval is no longer open.
    pub fn open_approval(&self, approval: &Arc<Approval>, to: &[ConnectionId]) -> Option<EncodedRequest> {
        let mut requests = self.lock();
        if let Some(open) = approval.sent_as.get().and_then(|id| requests.get_mut(id)) {
            let new = to.iter().filter(|connection| !open.sent_to.contains(connection)).copied().collect::<Vec<_>>();
            open.sent_to.extend(new);
            return Some(open.message.clone());
        }
        if !approval.is_open() {
            return None;
        }
        let id = *approval.sent_as.get_or_init(|| self.next.fetch_add(1, Ordering::Relaxed));
        match encode(&approval.request, &RequestId::Integer(id)) {
            Ok(message) => {
                let waiting = AnswerTarget::Turn(Arc::clone(approval));
                requests.insert(id, OpenRequest { message: message.clone(), sent_to: to.to_vec(), waiting });
                Some(message)
            }
            Err(error) => {
                tracing::error!(%error, "cannot serialize a server request");
                approval.close();
                None
            }
        }
    }

    /// The message of an approval that is no longer open, as it was sent; `None` when it never was.
    pub fn closed_approval(&self, approval: &Approval) -> Option<EncodedRequest> {
        let id = *approval.sent_as.get()?;
        encode(&approval.request, &RequestId::Integer(id)).ok()
    }

    /// Removes the request of an approval that is no longer open.
    pub fn withdraw(&self, approval: &Approval) {
        if let Some(id) = approval.sent_as.get() {
            self.lock().remove(id);
        }
    }

    /// Takes an answer; false when the request was not sent to the connection, or has been answered.
    pub fn answer(
        &self,
        connection: ConnectionId,
        id: &RequestId,
        answer: Result<&RawValue, RpcError>,
        by: impl FnOnce() -> Decider,
    ) -> bool {
        let RequestId::Integer(id) = id else { return false };
        let mut requests = self.lock();
        if !requests.get(id).is_some_and(|open| open.sent_to.contains(&connection)) {
            return false;
        }
        let Some(open) = requests.remove(id) else { return false };
        drop(requests);
        let answer = answer.and_then(|result| {
            serde_json::from_str(result.get()).map_err(|error| RpcError::internal(error.to_string()))
        });
        match open.waiting {
            AnswerTarget::Turn(approval) => approval.decide(decision(&approval.request, answer), by()).is_ok(),
            AnswerTarget::Process(waiting) => waiting.send(answer).is_ok(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<i64, OpenRequest>> {
        self.open.lock()
    }
}

#[cfg(test)]
mod tests {
    use loomd_agent::{ApprovalDecision, ApprovalRequest, PendingDecision};
    use loomd_protocol::{ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshReason, FileChangeApprovalDecision};
    use serde_json::json;

    use super::*;

    const FIRST: ConnectionId = ConnectionId(1);
    const SECOND: ConnectionId = ConnectionId(2);

    fn approval() -> (Arc<Approval>, PendingDecision) {
        let params = json!({ "threadId": "t", "turnId": "u", "itemId": "i", "startedAtMs": 0 });
        let (approval, decision) = Approval::new(ApprovalRequest::Patch(serde_json::from_value(params).unwrap()));
        (Arc::new(approval), decision)
    }

    fn by() -> Decider {
        Decider { connection: "1".into(), client: None, role: None }
    }

    fn accept() -> Box<RawValue> {
        RawValue::from_string(r#"{"decision":"accept"}"#.into()).unwrap()
    }

    #[test]
    fn only_a_connection_that_was_sent_the_request_can_answer_it_and_only_once() {
        let requests = ServerRequests::default();
        let (approval, mut decision) = approval();
        let sent = requests.open_approval(&approval, &[FIRST]).unwrap();
        assert!(sent.json(false).starts_with(br#"{"method":"item/fileChange/requestApproval","id":0,"#), "{sent:?}");
        assert!(!requests.answer(SECOND, &RequestId::Integer(0), Ok(&accept()), by));
        // As when it joins.
        assert_eq!(requests.open_approval(&approval, &[SECOND]), Some(sent));
        assert!(requests.answer(SECOND, &RequestId::Integer(0), Ok(&accept()), by));
        assert!(!requests.answer(FIRST, &RequestId::Integer(0), Ok(&accept()), by));
        assert_eq!(decision.try_recv(), Some(ApprovalDecision::Patch(FileChangeApprovalDecision::Accept)));
    }

    #[test]
    fn a_request_that_was_withdrawn_or_decided_elsewhere_takes_no_answer() {
        let requests = ServerRequests::default();
        let (withdrawn, _waiting) = approval();
        requests.open_approval(&withdrawn, &[FIRST]).unwrap();
        withdrawn.close();
        requests.withdraw(&withdrawn);
        assert!(!requests.answer(FIRST, &RequestId::Integer(0), Ok(&accept()), by));
        assert_eq!(requests.open_approval(&withdrawn, &[SECOND]), None);
        let (decided, _waiting) = approval();
        requests.open_approval(&decided, &[FIRST]).unwrap();
        let _stored = decided.decide(decided.request.declined(""), by()).unwrap();
        assert!(!requests.answer(FIRST, &RequestId::Integer(1), Ok(&accept()), by));
        assert!(requests.lock().is_empty());
    }

    #[test]
    fn a_request_of_the_process_ends_when_it_is_dropped() {
        let requests: Arc<ServerRequests> = Arc::default();
        let reason = ChatgptAuthTokensRefreshReason::Unauthorized;
        let params = ChatgptAuthTokensRefreshParams { reason, previous_account_id: None };
        let request = ServerRequest::ChatgptAuthTokensRefresh(params);
        let mut open = requests.open(vec![FIRST], &request).unwrap();
        assert!(requests.answer(FIRST, &RequestId::Integer(0), Ok(&accept()), by));
        assert_eq!(open.answer.try_recv(), Ok(Ok(json!({ "decision": "accept" }))));
        drop(requests.open(vec![FIRST], &request).unwrap());
        assert!(requests.lock().is_empty());
    }
}
