//! A client between its request to join and its snapshot.

use crate::event::Event;
use crate::event_sink::Subscriber;

/// A client that has no snapshot yet.
pub(super) struct JoiningClient {
    pub subscriber: Subscriber,
    /// It was subscribed before, and requested another snapshot.
    pub was_subscribed: bool,
    pub tail: Vec<Event>,
    pub bytes: usize,
}

impl JoiningClient {
    pub fn push(&mut self, event: Event, bytes: usize) {
        self.tail.push(event);
        self.bytes += bytes;
    }
}
