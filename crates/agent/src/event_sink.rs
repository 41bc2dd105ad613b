//! Where the events of threads go.

use std::pin::Pin;

use loomd_protocol::ServerNotification;

use crate::approval::Approval;
use crate::event::Event;

/// A client that has subscribed to threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subscriber(pub u64);

impl Subscriber {
    /// No client: where the thread itself reads as a client would.
    pub(crate) const NONE: Self = Self(u64::MAX);
}

/// The clients that an event is for.
#[derive(Clone, Copy, Debug)]
pub enum Audience<'a> {
    /// Every client of the server.
    Everyone {
        /// These have subscribed, and are sent the id of the event. The others may miss events of the thread, so that an
        /// id would be no place to go on from.
        subscribers: &'a [Subscriber],
        /// All but these: they are joining the thread and get the event after their snapshot.
        joining: &'a [Subscriber],
    },
    Only(&'a [Subscriber]),
}

/// Resolves when the event is in the outbound queues. A slow client may make it wait.
pub type SendFuture<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Takes events to clients, in the order in which they are given.
pub trait EventSink: Send + Sync {
    /// Sends an event of a thread. An approval that is requested is sent even to an empty audience, and may be sent
    /// again to a client that joins while it is open.
    fn send<'a>(&'a self, to: Audience<'a>, event: &'a Event) -> SendFuture<'a>;

    /// Sends a notification that is in no thread's event log to every client.
    fn broadcast(&self, notification: ServerNotification) -> SendFuture<'_>;

    /// Sends a notification that is in no thread's event log to some clients.
    fn notify<'a>(&'a self, to: &'a [Subscriber], notification: ServerNotification) -> SendFuture<'a>;

    /// Forgets an approval that was requested and is no longer open.
    fn withdraw(&self, approval: &Approval);
}
