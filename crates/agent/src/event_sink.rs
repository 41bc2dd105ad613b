//! Where a thread's news goes.

use std::pin::Pin;

use loomd_protocol::{JsonValue, RequestId, RpcError, ServerNotification, ServerRequest};
use tokio::sync::oneshot;

/// Somebody who listens to a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subscriber(pub u64);

/// Who is told.
#[derive(Clone, Copy, Debug)]
pub enum Audience<'a> {
    Everyone,
    Only(&'a [Subscriber]),
}

/// Done when everybody can have the news. Slow listeners may make it wait.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Takes news to those who listen, in the order it is given.
pub trait EventSink: Send + Sync {
    fn send<'a>(&'a self, to: Audience<'a>, notification: ServerNotification) -> SendFuture<'a>;

    /// Puts a question of a thread to those who listen. The first answer counts.
    fn request(&self, thread_id: &str, to: &[Subscriber], request: ServerRequest) -> PendingRequest;

    /// Puts the open questions of a thread to somebody who came later, in the order they were asked.
    fn resend_open(&self, thread_id: &str, to: Subscriber);
}

/// A question that is open until it is answered or dropped.
pub struct PendingRequest {
    pub id: RequestId,
    /// What was answered; an error when the one who was asked could not, and closed when nobody can any more.
    pub answer: oneshot::Receiver<Result<JsonValue, RpcError>>,
    /// Takes the question back when dropped.
    pub open: Box<dyn Send + Sync>,
}
