//! Answering a request from somewhere else, in order with what follows from it.

use std::marker::PhantomData;
use std::sync::Arc;

use loomd_protocol::{Call, RequestId, RpcError, encode_error, encode_response};
use tokio::sync::oneshot;

use crate::outbox::Outbox;

/// The right to answer one request, exactly once. Dropped without an answer it answers that something
/// went wrong, so that no request is left waiting.
pub(crate) struct Responder<C: Call> {
    id: RequestId,
    outbox: Arc<Outbox>,
    answered: Option<oneshot::Sender<()>>,
    call: PhantomData<fn() -> C>,
}

impl<C: Call> Responder<C> {
    /// The responder, and what resolves when it has answered.
    pub fn new(id: RequestId, outbox: Arc<Outbox>) -> (Self, oneshot::Receiver<()>) {
        let (answered, done) = oneshot::channel();
        (Self { id, outbox, answered: Some(answered), call: PhantomData }, done)
    }

    pub fn answer(mut self, outcome: Result<C::Result, RpcError>) {
        self.send(encode_answer::<C>(&self.id, outcome));
    }

    fn send(&mut self, reply: Vec<u8>) {
        if let Some(answered) = self.answered.take() {
            self.outbox.reply(reply);
            _ = answered.send(());
        }
    }
}

impl<C: Call> Drop for Responder<C> {
    fn drop(&mut self) {
        let error = RpcError::internal(format!("{} was given up", C::METHOD));
        self.send(encode_error(&self.id, &error));
    }
}

/// Encodes what a handler gave; the types say that it answers this method and no other.
pub(crate) fn encode_answer<C: Call>(id: &RequestId, outcome: Result<C::Result, RpcError>) -> Vec<u8> {
    let encoded = outcome.and_then(|result| {
        encode_response(id, &result)
            .map_err(|error| RpcError::internal(format!("failed to serialize the response: {error}")))
    });
    encoded.unwrap_or_else(|error| encode_error(id, &error))
}
