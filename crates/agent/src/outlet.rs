//! Where a thread's news goes.

use std::pin::Pin;

use loomd_protocol::ServerNotification;

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
pub type Sending<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Takes news to those who listen, in the order it is given.
pub trait Outlet: Send + Sync {
    fn send<'a>(&'a self, to: Audience<'a>, notification: ServerNotification) -> Sending<'a>;
}
