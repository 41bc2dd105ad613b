//! Event streams. Each subscriber has a bounded queue of its own, so none delays another or the connection. A lagging
//! subscriber gets merged text deltas; one whose queue overflows gets [`Error::Lagged`] and the end of its stream.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use futures_util::Stream;
use parking_lot::{Mutex, MutexGuard};

use crate::error::Error;
use crate::event::{Event, EventKind};
use crate::hub::Hub;

/// Bounds of a subscriber's queue: events, and their bytes as received. A long turn has some ten thousand events.
const MAX_EVENTS: usize = 64 * 1024;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Queue length from which on text deltas of the same item are merged.
const MERGE_FROM: usize = 256;

/// Selects events by thread and turn. The default passes all of them.
///
/// Events of the connection ([`EventKind::Lost`], [`EventKind::Reconnected`]) always pass, and the state of a resumed
/// thread passes every filter for that thread.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    pub thread_id: Option<String>,
    pub turn_id: Option<String>,
}

impl Filter {
    pub fn thread(id: impl Into<String>) -> Self {
        Self { thread_id: Some(id.into()), turn_id: None }
    }

    pub fn turn(thread_id: impl Into<String>, turn_id: impl Into<String>) -> Self {
        Self { thread_id: Some(thread_id.into()), turn_id: Some(turn_id.into()) }
    }

    pub fn matches(&self, event: &Event) -> bool {
        let same = |wanted: &Option<String>, given: &Option<String>| wanted.is_none() || wanted == given;
        match event.kind {
            EventKind::Lost(_) | EventKind::Reconnected => true,
            EventKind::Resumed(_) | EventKind::NotResumed(_) => same(&self.thread_id, &event.thread_id),
            EventKind::Notification(_) | EventKind::Other { .. } => {
                same(&self.thread_id, &event.thread_id) && same(&self.turn_id, &event.turn_id)
            }
        }
    }
}

/// A stream of events from the moment of the subscription. It ends when the client is closed. When the connection is
/// lost for good, or the queue overflowed, its last value is the error.
pub struct Events {
    hub: Arc<Hub>,
    id: u64,
    queue: Arc<Queue>,
}

impl Events {
    pub(crate) fn new(hub: Arc<Hub>, id: u64, queue: Arc<Queue>) -> Self {
        Self { hub, id, queue }
    }

    /// The next event. Cancel-safe.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        std::future::poll_fn(|context| self.queue.poll(context)).await
    }

    /// Replaces the filter by a narrower one, which also applies to queued events.
    pub fn narrow(&mut self, filter: Filter) {
        self.queue.narrow(filter);
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Events").field(&self.queue.lock().filter).finish()
    }
}

impl Stream for Events {
    type Item = Result<Event, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.queue.poll(context)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.hub.unsubscribe(self.id);
    }
}

/// The queue of one subscriber.
pub(crate) struct Queue(Mutex<QueueState>);

struct QueueState {
    filter: Filter,
    waiting: VecDeque<(Event, usize)>,
    bytes: usize,
    end: Option<End>,
    reader: Option<Waker>,
}

enum End {
    /// The error is returned once.
    Failed(Error),
    Over,
}

impl Queue {
    pub(crate) fn new(filter: Filter) -> Self {
        Self(Mutex::new(QueueState { filter, waiting: VecDeque::new(), bytes: 0, end: None, reader: None }))
    }

    /// Queues an event if it passes the filter. `bytes` is its size as received.
    pub(crate) fn push(&self, event: &Event, bytes: usize) {
        let mut state = self.lock();
        if state.end.is_some() || !state.filter.matches(event) {
            return;
        }
        if !state.merge(event, bytes) {
            state.waiting.push_back((event.clone(), bytes));
        }
        state.bytes += bytes;
        if state.waiting.len() > MAX_EVENTS || state.bytes > MAX_BYTES {
            state.waiting = VecDeque::new();
            state.end = Some(End::Failed(Error::Lagged));
        }
        state.wake();
    }

    /// Ends the stream after the queued events.
    pub(crate) fn finish(&self, error: Option<Error>) {
        let mut state = self.lock();
        state.end.get_or_insert(error.map_or(End::Over, End::Failed));
        state.wake();
    }

    fn narrow(&self, filter: Filter) {
        let mut state = self.lock();
        state.waiting.retain(|(event, _)| filter.matches(event));
        state.bytes = state.waiting.iter().map(|(_, bytes)| bytes).sum();
        state.filter = filter;
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Event, Error>>> {
        let mut state = self.lock();
        if let Some((event, bytes)) = state.waiting.pop_front() {
            state.bytes -= bytes;
            return Poll::Ready(Some(Ok(event)));
        }
        match state.end.replace(End::Over) {
            Some(End::Failed(error)) => Poll::Ready(Some(Err(error))),
            Some(End::Over) => Poll::Ready(None),
            None => {
                state.end = None;
                state.reader = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.0.lock()
    }
}

impl QueueState {
    fn merge(&mut self, next: &Event, bytes: usize) -> bool {
        if self.waiting.len() < MERGE_FROM {
            return false;
        }
        let (EventKind::Notification(more), next_id) = (&next.kind, next.event_id) else { return false };
        let Some((Event { kind: EventKind::Notification(last), event_id, .. }, size)) = self.waiting.back_mut() else {
            return false;
        };
        if !last.same_text(more) {
            return false;
        }
        last.merge_text(more);
        *event_id = next_id;
        *size += bytes;
        true
    }

    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use loomd_protocol::{AgentMessageDeltaNotification, ServerNotification, ThreadClosedNotification};

    use super::*;

    fn delta(text: &str) -> Event {
        Event {
            thread_id: Some("t".into()),
            turn_id: Some("u".into()),
            event_id: None,
            kind: EventKind::Notification(Box::new(ServerNotification::AgentMessageDelta(
                AgentMessageDeltaNotification {
                    thread_id: "t".into(),
                    turn_id: "u".into(),
                    item_id: "i".into(),
                    delta: text.into(),
                },
            ))),
        }
    }

    fn closed(thread: &str) -> Event {
        let params = ThreadClosedNotification { thread_id: thread.into() };
        Event::of_thread(thread, EventKind::Notification(Box::new(ServerNotification::ThreadClosed(params))))
    }

    fn events(hub: &Arc<Hub>) -> Events {
        hub.subscribe(Filter::default())
    }

    #[tokio::test]
    async fn text_deltas_are_merged_without_loss_when_a_subscriber_lags() {
        let hub = Arc::new(Hub::default());
        let mut events = events(&hub);
        for _ in 0..MERGE_FROM + 1000 {
            hub.publish(&delta("x"), 10);
        }
        hub.publish(&closed("t"), 10);
        hub.finish(|| None);
        let (mut pieces, mut text) = (0, 0);
        while let Some(event) = events.next().await {
            if let Some(delta) = event.unwrap().notification().and_then(ServerNotification::text_delta) {
                pieces += 1;
                text += delta.text().len();
            }
        }
        assert_eq!((pieces, text), (MERGE_FROM, MERGE_FROM + 1000));
    }

    #[tokio::test]
    async fn an_overflowing_subscriber_gets_lagged_and_others_get_every_event() {
        let hub = Arc::new(Hub::default());
        let (mut slow, mut quick) = (events(&hub), events(&hub));
        let mut read = 0;
        for _ in 0..=MAX_EVENTS {
            hub.publish(&closed("t"), 1);
            read += usize::from(quick.next().await.unwrap().is_ok());
        }
        assert_eq!(read, MAX_EVENTS + 1);
        assert!(matches!(slow.next().await, Some(Err(Error::Lagged))));
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn narrowing_a_filter_drops_queued_events() {
        let hub = Arc::new(Hub::default());
        let mut all = events(&hub);
        for thread in ["a", "b", "a"] {
            hub.publish(&closed(thread), 1);
        }
        all.narrow(Filter::thread("a"));
        hub.publish(&closed("b"), 1);
        hub.publish(&Event::of_connection(EventKind::Reconnected), 0);
        hub.finish(|| None);
        let mut seen = Vec::new();
        while let Some(event) = all.next().await {
            seen.push(event.unwrap().thread_id);
        }
        assert_eq!(seen, [Some("a".to_owned()), Some("a".to_owned()), None]);
    }
}
