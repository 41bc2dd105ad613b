//! The outbound queue of a connection.
//!
//! Back-pressure: senders never wait for a network peer. While the peer keeps up, messages pass unchanged; when it lags,
//! consecutive text deltas are merged; when more than [`limits::OUTBOUND_FULL`] bytes of notifications are queued, it is
//! disconnected. The peer on stdio is never disconnected: senders wait for it instead (see [`OutboundQueue::send`]).

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use loomd_agent::{Event, EventId};
use loomd_protocol::{Level, ServerNotification, with_event_id};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tracing::error;

use crate::limits;

/// A notification, encoded at most once per level for all connections that get it.
#[derive(Clone, Debug)]
pub struct Notification(Arc<Encoded>);

#[derive(Debug)]
struct Encoded {
    notification: Arc<ServerNotification>,
    emitted_at_ms: i64,
    /// The place among the events of a thread.
    event_id: Option<EventId>,
    /// By level.
    json: [OnceLock<Bytes>; Level::ALL.len()],
    /// By level, with the event id.
    marked: [OnceLock<Bytes>; Level::ALL.len()],
}

impl Notification {
    pub fn new(notification: impl Into<Arc<ServerNotification>>) -> Self {
        Self::emitted_at(notification.into(), now_ms())
    }

    /// An event of a thread.
    pub fn of_event(notification: Arc<ServerNotification>, event: &Event) -> Self {
        Self::numbered(notification, event.at_ms, event.kind.names_thread().then_some(event.id))
    }

    fn emitted_at(notification: Arc<ServerNotification>, emitted_at_ms: i64) -> Self {
        Self::numbered(notification, emitted_at_ms, None)
    }

    fn numbered(notification: Arc<ServerNotification>, emitted_at_ms: i64, event_id: Option<EventId>) -> Self {
        let (json, marked) = Default::default();
        Self(Arc::new(Encoded { notification, emitted_at_ms, event_id, json, marked }))
    }

    /// The same for connections that are not sent its id.
    pub fn without_id(&self) -> Self {
        match self.0.event_id {
            Some(_) => Self::emitted_at(Arc::clone(&self.0.notification), self.0.emitted_at_ms),
            None => self.clone(),
        }
    }

    pub fn message(&self) -> &ServerNotification {
        &self.0.notification
    }

    /// Returns the message for connections of a level; empty if it cannot be encoded, which is logged.
    fn json(&self, level: Level) -> &Bytes {
        let encoded = &*self.0;
        encoded.json[level as usize].get_or_init(|| match level.notification(self.message(), encoded.emitted_at_ms) {
            Ok(json) => json.into(),
            Err(error) => {
                error!(%error, method = self.message().method(), "cannot serialize a notification");
                Bytes::new()
            }
        })
    }

    /// Like [`Self::json`], with the event id if it has one.
    fn marked_json(&self, level: Level) -> &Bytes {
        let plain = self.json(level);
        match self.0.event_id {
            Some(id) if !plain.is_empty() => {
                self.0.marked[level as usize].get_or_init(|| with_event_id(plain, &id).into())
            }
            _ => plain,
        }
    }

    fn is_delta(&self) -> bool {
        self.message().text_delta().is_some()
    }
}

/// The time in Unix milliseconds.
fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}

/// What happens when a peer does not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WhenFull {
    /// It is disconnected, so that senders never wait; it can reconnect.
    Cut,
    /// Senders wait: it is the only peer and cannot reconnect.
    Wait,
}

/// Why the queue ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Queued messages are still sent.
    Finished,
    /// The peer did not read; queued messages are dropped.
    Cut,
}

pub(crate) struct OutboundQueue {
    when_full: WhenFull,
    /// Set by the handshake. Nothing that depends on it is sent before.
    level: OnceLock<Level>,
    /// Whether events carry their ids. Set by the handshake.
    event_ids: OnceLock<()>,
    queue: Mutex<Queue>,
    /// Notified when a message was queued and at the end.
    ready: Notify,
    /// Notified when messages were taken and at the end.
    drained: Notify,
}

#[derive(Default)]
struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
    /// The part of `bytes` that are answers. They do not count towards [`limits::OUTBOUND_FULL`]: a peer may request
    /// more than that at once.
    reply_bytes: usize,
    end: Option<End>,
}

enum Entry {
    Reply(Bytes),
    Notification(Bytes),
    Delta {
        notification: Notification,
        json: Bytes,
    },
    /// Several deltas of one text; encoded when they are sent.
    Merged {
        delta: Box<ServerNotification>,
        /// Of the first one.
        emitted_at_ms: i64,
        /// Of the last one.
        event_id: Option<EventId>,
        bytes: usize,
    },
}

impl Entry {
    fn bytes(&self) -> usize {
        match self {
            Self::Reply(json) | Self::Notification(json) | Self::Delta { json, .. } => json.len(),
            Self::Merged { bytes, .. } => *bytes,
        }
    }

    fn into_json(self, level: Level, event_ids: bool) -> Bytes {
        match self {
            Self::Reply(json) | Self::Notification(json) | Self::Delta { json, .. } => json,
            Self::Merged { delta, emitted_at_ms, event_id, .. } => {
                let json = level.notification(&delta, emitted_at_ms).unwrap_or_default();
                match event_id.filter(|_| event_ids) {
                    Some(id) => with_event_id(&json, &id).into(),
                    None => json.into(),
                }
            }
        }
    }
}

impl OutboundQueue {
    pub fn new(when_full: WhenFull) -> Self {
        Self {
            when_full,
            level: OnceLock::new(),
            event_ids: OnceLock::new(),
            queue: Mutex::default(),
            ready: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Sets the level in which messages are encoded. Set once.
    pub fn set_level(&self, level: Level) {
        _ = self.level.set(level);
    }

    /// The level of the connection.
    pub fn level(&self) -> Level {
        self.level.get().copied().unwrap_or(Level::V0_118)
    }

    /// Sends events with their ids from now on.
    pub fn send_event_ids(&self) {
        _ = self.event_ids.set(());
    }

    fn has_event_ids(&self) -> bool {
        self.event_ids.get().is_some()
    }

    /// Queues the answer to a request. Never waits: requests are only read while there is room.
    pub fn reply(&self, json: Vec<u8>) {
        self.push(Entry::Reply(json.into()));
    }

    /// Queues a server request.
    pub fn request(&self, json: Bytes) {
        self.push(Entry::Notification(json));
    }

    /// Queues a notification; first waits for room where senders wait ([`WhenFull::Wait`]).
    pub async fn send(&self, notification: &Notification) {
        if self.when_full == WhenFull::Wait {
            self.until(|queue| queue.bytes < limits::OUTBOUND_FULL).await;
        }
        self.send_now(notification);
    }

    /// Queues a notification for this peer alone once fewer than [`limits::OUTBOUND_STREAM`] bytes are queued.
    pub async fn send_at_its_pace(&self, notification: &Notification) {
        self.until(|queue| queue.bytes < limits::OUTBOUND_STREAM).await;
        self.send_now(notification);
    }

    /// Queues a notification without waiting.
    pub fn send_now(&self, notification: &Notification) {
        let json = match self.has_event_ids() {
            true => notification.marked_json(self.level()),
            false => notification.json(self.level()),
        };
        let json = json.clone();
        if json.is_empty() {
            return;
        }
        self.push(match notification.is_delta() {
            true => Entry::Delta { notification: notification.clone(), json },
            false => Entry::Notification(json),
        });
    }

    fn push(&self, entry: Entry) {
        let mut queue = self.lock();
        if queue.end.is_some() {
            return;
        }
        queue.push(entry, self.has_event_ids());
        let cut = self.when_full == WhenFull::Cut && queue.bytes - queue.reply_bytes > limits::OUTBOUND_FULL;
        if cut {
            queue.cut();
        }
        drop(queue);
        self.ready.notify_one();
        if cut {
            self.drained.notify_waiters();
        }
    }

    /// How many messages and bytes are queued.
    pub fn queued(&self) -> (usize, usize) {
        let queue = self.lock();
        (queue.entries.len(), queue.bytes)
    }

    /// Ends the queue; queued messages are still sent.
    pub fn finish(&self) {
        self.lock().end.get_or_insert(End::Finished);
        self.ready.notify_one();
        self.drained.notify_waiters();
    }

    /// Ends the queue and drops queued messages.
    pub fn cut(&self) {
        self.lock().cut();
        self.ready.notify_one();
        self.drained.notify_waiters();
    }

    /// Returns the next batch of messages to write; an error at the end. Cancel-safe.
    pub async fn next(&self) -> Result<Vec<Bytes>, End> {
        loop {
            let ready = self.ready.notified();
            {
                let mut queue = self.lock();
                if !queue.entries.is_empty() {
                    let batch = queue.take_batch();
                    drop(queue);
                    self.drained.notify_waiters();
                    let (level, event_ids) = (self.level(), self.has_event_ids());
                    return Ok(batch.into_iter().map(|entry| entry.into_json(level, event_ids)).collect());
                }
                if let Some(end) = queue.end {
                    return Err(end);
                }
            }
            ready.await;
        }
    }

    /// Resolves when few enough answers are queued for further requests to be read. Notifications do not count, so that
    /// a client can interrupt a turn that floods it.
    pub async fn has_room(&self) {
        self.until(|queue| queue.reply_bytes < limits::OUTBOUND_PAUSE).await;
    }

    /// Resolves when there is room for more of what can wait elsewhere.
    pub async fn has_stream_room(&self) {
        self.until(|queue| queue.bytes < limits::OUTBOUND_STREAM).await;
    }

    /// Resolves when the peer was disconnected.
    pub async fn is_cut(&self) {
        loop {
            let drained = self.drained.notified();
            if self.lock().end == Some(End::Cut) {
                return;
            }
            drained.await;
        }
    }

    async fn until(&self, enough: impl Fn(&Queue) -> bool) {
        loop {
            let drained = self.drained.notified();
            {
                let queue = self.lock();
                if enough(&queue) || queue.end.is_some() {
                    return;
                }
            }
            drained.await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock()
    }
}

impl Queue {
    fn push(&mut self, entry: Entry, event_ids: bool) {
        if self.bytes > limits::OUTBOUND_MERGE
            && let Entry::Delta { notification, .. } = &entry
            && self.merge(notification, event_ids)
        {
            return;
        }
        self.bytes += entry.bytes();
        if let Entry::Reply(json) = &entry {
            self.reply_bytes += json.len();
        }
        self.entries.push_back(entry);
    }

    /// Merges a delta into a queued one of the same text, if only deltas are queued behind that and the message stays
    /// within [`limits::MERGED_MESSAGE`]. Returns whether it did. With event ids, no other delta of its thread may be
    /// queued behind that either, so that the ids of a thread rise.
    fn merge(&mut self, notification: &Notification, event_ids: bool) -> bool {
        let next = notification.message();
        let event_id = notification.0.event_id;
        let more = escaped_len(next);
        for entry in self.entries.iter_mut().rev().take(limits::MERGE_REACH) {
            let merged = entry.bytes() + more;
            match entry {
                Entry::Reply(_) | Entry::Notification(_) => return false,
                Entry::Delta { notification: queued, .. } if queued.message().same_text(next) => {
                    if merged > limits::MERGED_MESSAGE {
                        return false;
                    }
                    let mut delta = Box::new(ServerNotification::clone(queued.message()));
                    delta.merge_text(next);
                    *entry = Entry::Merged { delta, emitted_at_ms: queued.0.emitted_at_ms, event_id, bytes: merged };
                }
                Entry::Merged { delta, bytes, event_id: last, .. } if delta.same_text(next) => {
                    if merged > limits::MERGED_MESSAGE {
                        return false;
                    }
                    delta.merge_text(next);
                    (*bytes, *last) = (merged, event_id);
                }
                Entry::Delta { notification: other, .. } if event_ids && same_thread(other.message(), next) => {
                    return false;
                }
                Entry::Merged { delta: other, .. } if event_ids && same_thread(other, next) => return false,
                Entry::Delta { .. } | Entry::Merged { .. } => continue,
            }
            self.bytes += more;
            return true;
        }
        false
    }

    fn take_batch(&mut self) -> Vec<Entry> {
        let mut batch = Vec::new();
        let mut taken = 0;
        while taken < limits::WRITE_BATCH
            && let Some(entry) = self.entries.pop_front()
        {
            taken += entry.bytes();
            if let Entry::Reply(json) = &entry {
                self.reply_bytes -= json.len();
            }
            batch.push(entry);
        }
        self.bytes -= taken;
        batch
    }

    fn cut(&mut self) {
        self.entries.clear();
        self.bytes = 0;
        self.reply_bytes = 0;
        self.end = Some(End::Cut);
    }
}

/// Whether both are deltas of one thread.
fn same_thread(one: &ServerNotification, other: &ServerNotification) -> bool {
    one.text_delta().map(|delta| delta.thread_id()) == other.text_delta().map(|delta| delta.thread_id())
}

/// Returns how many bytes the text of a delta takes inside a JSON string.
fn escaped_len(notification: &ServerNotification) -> usize {
    let text = notification.text_delta().map_or("", |delta| delta.text());
    text.bytes()
        .map(|byte| match byte {
            b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
            0x00..0x20 => 6,
            _ => 1,
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use loomd_agent::EventKind;
    use loomd_protocol::{AgentMessageDeltaNotification, ThreadClosedNotification};

    use super::*;

    fn delta(item: &str, text: &str) -> Notification {
        Notification::new(ServerNotification::AgentMessageDelta(AgentMessageDeltaNotification {
            thread_id: "t".into(),
            turn_id: "u".into(),
            item_id: item.into(),
            delta: text.into(),
        }))
    }

    fn other() -> Notification {
        Notification::new(ServerNotification::ThreadClosed(ThreadClosedNotification { thread_id: "t".into() }))
    }

    /// Everything queued, shortened: `item:text` for deltas, else the method or `reply`.
    fn drain(outbound: &OutboundQueue) -> Vec<String> {
        let mut out = Vec::new();
        while let Some(Ok(batch)) = outbound.next().now_or_never() {
            for json in batch {
                let message: serde_json::Value = serde_json::from_slice(&json).unwrap();
                out.push(match (&message["params"]["itemId"], &message["params"]["delta"], &message["method"]) {
                    (serde_json::Value::String(item), serde_json::Value::String(text), _) => format!("{item}:{text}"),
                    (_, _, serde_json::Value::String(method)) => method.clone(),
                    _ => "reply".into(),
                });
            }
        }
        out
    }

    /// Fills the queue until merging begins.
    fn lag(outbound: &OutboundQueue) {
        outbound.reply(format!("{:?}", "x".repeat(limits::OUTBOUND_MERGE)).into_bytes());
    }

    #[test]
    fn a_notification_is_encoded_once_per_level_and_a_merged_one_keeps_the_first_time() {
        let (old, new) = (OutboundQueue::new(WhenFull::Cut), OutboundQueue::new(WhenFull::Cut));
        new.set_level(Level::V0_166);
        let closed = other();
        for queue in [&old, &new] {
            queue.send_now(&closed);
            queue.send_now(&closed);
        }
        let sent = |queue: &OutboundQueue| queue.next().now_or_never().unwrap().unwrap();
        let (to_old, to_new) = (sent(&old), sent(&new));
        assert_eq!(to_new[0].as_ptr(), to_new[1].as_ptr());
        let time = |json: &Bytes| serde_json::from_slice::<serde_json::Value>(json).unwrap()["emittedAtMs"].as_i64();
        assert_eq!((time(&to_old[0]), time(&to_new[0])), (None, Some(closed.0.emitted_at_ms)));

        lag(&new);
        for (text, at) in [("a", 1_000_000_000_001), ("b", 1_000_000_000_002)] {
            new.send_now(&Notification::emitted_at(Arc::clone(&delta("i", text).0.notification), at));
        }
        let _lagged = sent(&new);
        assert_eq!(sent(&new).iter().map(time).collect::<Vec<_>>(), [Some(1_000_000_000_001)]);
    }

    #[test]
    fn with_event_ids_a_merged_delta_has_the_id_of_its_last_part_and_ids_rise() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        outbound.send_event_ids();
        lag(&outbound);
        for (id, (item, text)) in [("i", "a"), ("i", "b"), ("j", "1"), ("i", "c"), ("i", "d")].iter().enumerate() {
            let notification = Arc::clone(&delta(item, text).0.notification);
            let id = (id + 1).to_string().parse().unwrap();
            let event = Event { id, at_ms: 0, kind: EventKind::Notification(Arc::clone(&notification)) };
            outbound.send_now(&Notification::of_event(notification, &event));
        }
        let mut sent = Vec::new();
        while let Some(Ok(batch)) = outbound.next().now_or_never() {
            sent.extend(batch.iter().map(|json| serde_json::from_slice::<serde_json::Value>(json).unwrap()));
        }
        let sent: Vec<_> =
            sent[1..].iter().map(|message| (message["eventId"].clone(), message["params"]["delta"].clone())).collect();
        let expected = [("2", "ab"), ("3", "1"), ("5", "cd")]
            .map(|(id, text)| (serde_json::Value::from(id), serde_json::Value::from(text)));
        assert_eq!(sent, expected);
    }

    #[test]
    fn a_peer_that_keeps_up_sees_every_delta() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        for text in ["a", "b", "c"] {
            outbound.send_now(&delta("i", text));
        }
        assert_eq!(drain(&outbound), ["i:a", "i:b", "i:c"]);
    }

    #[test]
    fn deltas_for_a_lagging_peer_are_merged_up_to_the_next_other_message() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        lag(&outbound);
        for (item, text) in [("i", "a"), ("j", "1"), ("i", "b"), ("j", "2"), ("i", "c")] {
            outbound.send_now(&delta(item, text));
        }
        outbound.send_now(&other());
        outbound.send_now(&delta("i", "d"));
        outbound.send_now(&delta("i", "e"));
        assert_eq!(drain(&outbound), ["reply", "i:abc", "j:12", "thread/closed", "i:de"]);
        outbound.send_now(&delta("i", "f"));
        outbound.send_now(&delta("i", "g"));
        assert_eq!(drain(&outbound), ["i:f", "i:g"], "it keeps up again");
    }

    #[test]
    fn the_byte_count_is_zero_after_merging_and_draining() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        lag(&outbound);
        for _ in 0..100 {
            outbound.send_now(&delta("i", "text"));
            outbound.send_now(&other());
        }
        drain(&outbound);
        let queue = outbound.lock();
        assert_eq!((queue.bytes, queue.reply_bytes), (0, 0));
    }

    #[test]
    fn a_merged_message_stays_short_and_is_counted_as_it_is_written() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        lag(&outbound);
        let text = "\u{1}\"é\n".repeat(100);
        for _ in 0..500 {
            outbound.send_now(&delta("i", &text));
        }
        let counted = outbound.lock().bytes;
        let (mut written, mut whole) = (0, String::new());
        while let Some(Ok(batch)) = outbound.next().now_or_never() {
            for json in batch {
                written += json.len();
                let message: serde_json::Value = serde_json::from_slice(&json).unwrap();
                if let Some(delta) = message["params"]["delta"].as_str() {
                    assert!(json.len() <= limits::MERGED_MESSAGE, "{}", json.len());
                    whole.push_str(delta);
                }
            }
        }
        assert_eq!((written, whole), (counted, text.repeat(500)));
    }

    #[test]
    fn a_network_peer_that_does_not_read_is_disconnected() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        let big = delta("i", &"x".repeat(1024 * 1024));
        for _ in 0..63 {
            outbound.send_now(&big);
            outbound.send_now(&other());
        }
        assert!(outbound.is_cut().now_or_never().is_none());
        outbound.send_now(&big);
        outbound.send_now(&big);
        assert!(outbound.is_cut().now_or_never().is_some());
        assert_eq!(outbound.next().now_or_never(), Some(Err(End::Cut)));
    }

    #[test]
    fn unread_answers_alone_do_not_disconnect_a_peer() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        outbound.reply(vec![b'1'; limits::OUTBOUND_FULL + 1]);
        outbound.send_now(&other());
        assert!(outbound.is_cut().now_or_never().is_none());
        assert!(outbound.has_room().now_or_never().is_none(), "but its requests wait");
        assert_eq!(outbound.next().now_or_never().unwrap().unwrap().len(), 1);
        assert!(outbound.has_room().now_or_never().is_some());
        outbound.send_now(&delta("i", &"x".repeat(limits::OUTBOUND_PAUSE + 1)));
        assert!(outbound.has_room().now_or_never().is_some(), "only answers make requests wait");
    }

    #[tokio::test]
    async fn senders_wait_for_a_stdio_peer_that_does_not_read() {
        let outbound = Arc::new(OutboundQueue::new(WhenFull::Wait));
        outbound.reply(vec![b'1'; limits::OUTBOUND_FULL]);
        let sender = tokio::spawn({
            let outbound = Arc::clone(&outbound);
            async move { outbound.send(&delta("i", "late")).await }
        });
        tokio::task::yield_now().await;
        assert!(!sender.is_finished());
        outbound.next().await.unwrap();
        sender.await.unwrap();
        assert_eq!(drain(&outbound), ["i:late"]);
    }

    #[test]
    fn messages_queued_before_the_end_are_still_sent() {
        let outbound = OutboundQueue::new(WhenFull::Cut);
        outbound.reply(b"{}".to_vec());
        outbound.finish();
        outbound.reply(b"{}".to_vec());
        assert_eq!(drain(&outbound), ["reply"]);
        assert_eq!(outbound.next().now_or_never(), Some(Err(End::Finished)));
    }
}
