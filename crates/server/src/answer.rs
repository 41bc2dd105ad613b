//! The answer to a request. Every handler returns `Result<Answer, RpcError>`: the result itself, or the fact that the
//! result is sent elsewhere, in order with the notifications that it causes.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_agent::Reply;
use loomd_protocol::{Call, Level, RequestId, RpcError, encode_error};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::outbound::OutboundQueue;
use crate::refusals::{is_owner_lost, wire_error};

/// What a handler returns. An error is sent by dispatch.
pub(crate) type Handled<C> = Result<Answer<C>, RpcError>;

/// The answer to a call.
pub(crate) enum Answer<C: Call> {
    /// Sent when the handler has returned.
    Now(C::Result),
    /// Sent through a [`Responder`], before the notifications that it causes.
    Sent(Sent<C>),
}

/// Shows that a [`Responder`] was taken. Made here only.
pub(crate) struct Sent<C> {
    answered: oneshot::Receiver<()>,
    call: PhantomData<fn() -> C>,
}

/// Shorthand for a handler's last expression.
pub(crate) fn answer<C: Call>(result: C::Result) -> Handled<C> {
    Ok(Answer::Now(result))
}

/// A request that is not answered.
struct OpenRequest {
    /// `None` once a [`Responder`] was taken, so that no request is answered twice.
    id: Option<RequestId>,
    /// Why the last try was not an answer.
    refusal: Option<RpcError>,
}

/// The one answer that a request gets.
pub(crate) struct AnswerSlot {
    open: Arc<Mutex<OpenRequest>>,
    outbound: Arc<OutboundQueue>,
    /// Whether the answer was a result.
    succeeded: Arc<AtomicBool>,
    stays_open: AtomicBool,
}

impl AnswerSlot {
    pub fn new(id: RequestId, outbound: Arc<OutboundQueue>) -> Self {
        let open = Arc::new(Mutex::new(OpenRequest { id: Some(id), refusal: None }));
        Self { open, outbound, succeeded: Arc::default(), stays_open: AtomicBool::new(false) }
    }

    /// From now on the request is not answered when it is given up, or because the thread is lost: [`Self::id`] is there
    /// again then, for another try.
    pub fn stay_open(&self) {
        self.stays_open.store(true, Ordering::Relaxed);
    }

    /// Whether the request was answered with a result.
    pub fn succeeded(&self) -> bool {
        self.succeeded.load(Ordering::Relaxed)
    }

    /// The id of the request, until a responder is taken.
    pub fn id(&self) -> Option<RequestId> {
        self.open.lock().id.clone()
    }

    /// Why the last try of a request that stays open was not an answer, if it was refused.
    pub fn refusal(&self) -> Option<RpcError> {
        self.open.lock().refusal.take()
    }

    /// Takes the right to answer. Returned by the handler, the second value makes dispatch wait for the answer.
    ///
    /// Taken a second time, the responder has nothing to answer and does nothing.
    pub fn responder<C: Call>(&self) -> (Responder<C>, Answer<C>) {
        let (answered, done) = oneshot::channel();
        let id = self.open.lock().id.take();
        let (outbound, succeeded) = (Arc::clone(&self.outbound), Arc::clone(&self.succeeded));
        let open = self.stays_open.load(Ordering::Relaxed).then(|| Arc::clone(&self.open));
        let responder = Responder { id, open, outbound, succeeded, _answered: answered, call: PhantomData };
        (responder, Answer::Sent(Sent { answered: done, call: PhantomData }))
    }

    /// Like [`Self::responder`], as a reply for the agent: `result` maps the agent's result to that of the call.
    pub fn reply<C: Call + 'static, T: 'static>(
        &self,
        result: impl FnOnce(T) -> C::Result + Send + Sync + 'static,
    ) -> (Reply<T>, Answer<C>) {
        let (responder, answer) = self.responder::<C>();
        (Box::new(move |outcome| responder.send(outcome.map(result).map_err(wire_error))), answer)
    }

    /// Sends what a handler returned; resolves when the request is answered. An error after a responder was taken is
    /// dropped: the responder answers.
    pub async fn finish<C: Call>(&self, handled: Handled<C>) {
        let outcome = match handled {
            Ok(Answer::Sent(sent)) => {
                _ = sent.answered.await;
                return;
            }
            Ok(Answer::Now(result)) => Ok(result),
            Err(error) if self.stays_open.load(Ordering::Relaxed) && is_owner_lost(&error) => {
                self.open.lock().refusal = Some(error);
                return;
            }
            Err(error) => Err(error),
        };
        let id = self.open.lock().id.take();
        if let Some(id) = id {
            self.succeeded.store(outcome.is_ok(), Ordering::Relaxed);
            self.outbound.reply(encode::<C>(self.outbound.level(), &id, outcome));
        }
    }

    /// The request was answered by other means.
    pub fn answered_elsewhere(&self) {
        self.succeeded.store(true, Ordering::Relaxed);
        self.open.lock().id.take();
    }

    /// Sends an error unless the request was answered or a responder was taken.
    pub fn refuse(&self, error: &RpcError) {
        let id = self.open.lock().id.take();
        if let Some(id) = id {
            self.outbound.reply(encode_error(&id, error));
        }
    }
}

/// The right to answer one request, exactly once. Dropped without an answer it answers with an error, so that no
/// request is left waiting.
pub(crate) struct Responder<C: Call> {
    /// `None` once answered.
    id: Option<RequestId>,
    /// Where the id goes when the request stays open.
    open: Option<Arc<Mutex<OpenRequest>>>,
    outbound: Arc<OutboundQueue>,
    succeeded: Arc<AtomicBool>,
    /// Resolves the receiver when it is dropped.
    _answered: oneshot::Sender<()>,
    call: PhantomData<fn() -> C>,
}

impl<C: Call> Responder<C> {
    pub fn send(mut self, outcome: Result<C::Result, RpcError>) {
        if let (Some(open), Err(error)) = (&self.open, &outcome)
            && is_owner_lost(error)
        {
            open.lock().refusal = Some(error.clone());
            return;
        }
        if let Some(id) = self.id.take() {
            self.succeeded.store(outcome.is_ok(), Ordering::Relaxed);
            self.outbound.reply(encode::<C>(self.outbound.level(), &id, outcome));
        }
    }
}

impl<C: Call> Drop for Responder<C> {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        match &self.open {
            Some(open) => open.lock().id = Some(id),
            None => {
                let error = RpcError::internal(format!("{} was given up", C::METHOD));
                self.outbound.reply(encode_error(&id, &error));
            }
        }
    }
}

/// Encodes an answer, straight to bytes.
fn encode<C: Call>(level: Level, id: &RequestId, outcome: Result<C::Result, RpcError>) -> Vec<u8> {
    let encoded = outcome.and_then(|result| {
        level
            .response(id, &result)
            .map_err(|error| RpcError::internal(format!("failed to serialize the response: {error}")))
    });
    encoded.unwrap_or_else(|error| encode_error(id, &error))
}

#[cfg(test)]
mod tests {
    use loomd_agent::Refusal;
    use loomd_protocol::{ThreadLoadedListResponse, call};
    use serde_json::{Value, json};

    use super::*;
    use crate::outbound::WhenFull;

    type Probe = call::ThreadLoadedList;

    fn slot() -> AnswerSlot {
        AnswerSlot::new(RequestId::Integer(7), Arc::new(OutboundQueue::new(WhenFull::Cut)))
    }

    async fn sent(slot: &AnswerSlot) -> Vec<Value> {
        slot.outbound.finish();
        let mut all = Vec::new();
        while let Ok(batch) = slot.outbound.next().await {
            all.extend(batch.iter().map(|message| serde_json::from_slice::<Value>(message).unwrap()));
        }
        all
    }

    fn result(id: &str) -> ThreadLoadedListResponse {
        ThreadLoadedListResponse { data: vec![id.into()], next_cursor: None }
    }

    #[tokio::test]
    async fn a_request_is_answered_once_when_its_handler_fails_after_taking_the_responder() {
        let slot = slot();
        let (responder, _answer) = slot.responder::<Probe>();
        slot.finish::<Probe>(Err(RpcError::internal("too late"))).await;
        slot.refuse(&RpcError::internal("too late"));
        slot.responder::<Probe>().0.send(Ok(result("too late")));
        responder.send(Ok(result("a")));
        assert_eq!(sent(&slot).await, [json!({ "id": 7, "result": { "data": ["a"], "nextCursor": null } })]);
    }

    #[tokio::test]
    async fn a_dropped_responder_answers_with_an_error() {
        let slot = slot();
        let (responder, answer) = slot.responder::<Probe>();
        drop(responder);
        slot.finish(Ok(answer)).await;
        let error = json!({ "code": -32603, "message": "thread/loaded/list was given up" });
        assert_eq!(sent(&slot).await, [json!({ "id": 7, "error": error })]);
    }

    #[tokio::test]
    async fn a_request_counts_as_answered_only_after_its_responder_was_used() {
        let slot = slot();
        let (reply, answer) = slot.reply::<Probe, String>(|id| result(&id));
        let finish = slot.finish(Ok(answer));
        let mut finish = std::pin::pin!(finish);
        assert!(futures_util::poll!(&mut finish).is_pending());
        reply(Ok("b".into()));
        finish.await;
        assert_eq!(sent(&slot).await.len(), 1);
    }

    #[tokio::test]
    async fn a_request_that_stays_open_is_answered_by_a_later_try() {
        let slot = slot();
        slot.stay_open();
        let lost = || wire_error(Refusal::LeaseLost("lost".into()));
        let (responder, answer) = slot.responder::<Probe>();
        drop(responder);
        slot.finish(Ok(answer)).await;
        assert!(slot.id().is_some(), "it was given up");
        let (responder, answer) = slot.responder::<Probe>();
        responder.send(Err(lost()));
        slot.finish(Ok(answer)).await;
        slot.finish::<Probe>(Err(lost())).await;
        assert!(slot.id().is_some(), "the thread was lost");
        assert_eq!(slot.refusal(), Some(lost()));
        let (responder, answer) = slot.responder::<Probe>();
        responder.send(Ok(result("a")));
        slot.finish(Ok(answer)).await;
        assert!(slot.id().is_none() && slot.succeeded());
        assert_eq!(sent(&slot).await.len(), 1);
    }
}
