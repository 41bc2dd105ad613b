//! The terminals of a thread: commands that may outlive the turn that started them, and the publishing of their output.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use loomd_exec::{Event, SessionEnd, Sessions};
use loomd_protocol::{CommandExecutionOutputDeltaNotification, ServerNotification};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::event_log::EventLog;

/// The most output that is queued for publishing. Output beyond it is not published as deltas; it is part of the output
/// of the completed item.
const MAX_QUEUED_BYTES: usize = 4 * 1024 * 1024;

/// The terminals of one thread.
#[derive(Default)]
pub(crate) struct Terminals {
    pub sessions: Sessions,
    open: Mutex<HashMap<u32, TerminalSession>>,
    /// The open sessions that a client has ended. Locked before `open`.
    ended: Mutex<HashSet<u32>>,
}

/// A session that goes on after the call that started it.
#[derive(Clone)]
pub(crate) struct TerminalSession {
    /// The id of the command's item.
    pub item_id: String,
    pub argv: Arc<[String]>,
    /// The command as the model wrote it, and its folder.
    pub script: String,
    pub cwd: String,
    /// Cancelled once the end of the session has been published.
    pub shown: CancellationToken,
}

impl Terminals {
    pub fn opened(&self, id: u32, open: TerminalSession) {
        self.lock().insert(id, open);
    }

    pub fn find(&self, id: u32) -> Option<TerminalSession> {
        self.lock().get(&id).cloned()
    }

    /// The open sessions that have not been ended by a client, by id.
    pub fn listed(&self) -> Vec<(u32, TerminalSession)> {
        let ended = self.ended.lock();
        let open = self.lock();
        let listed = open.iter().filter(|(id, _)| !ended.contains(id));
        let mut listed: Vec<_> = listed.map(|(id, session)| (*id, session.clone())).collect();
        listed.sort_by_key(|(id, _)| *id);
        listed
    }

    /// Ends a session for a client; false when there is none, or it has been ended.
    pub fn end(&self, id: u32) -> bool {
        if self.find(id).is_none() || !self.ended.lock().insert(id) {
            return false;
        }
        self.sessions.terminate(id);
        true
    }

    /// Whether the command of an item is still open here.
    pub fn runs(&self, item_id: &str) -> bool {
        self.lock().values().any(|open| open.item_id == item_id)
    }

    /// Removes a session whose end has been published.
    pub fn closed(&self, id: u32) {
        self.ended.lock().remove(&id);
        if let Some(open) = self.lock().remove(&id) {
            open.shown.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, TerminalSession>> {
        self.open.lock()
    }
}

/// Publishes the output of a session as deltas, in a task of its own.
pub(crate) struct OutputPublisher(Arc<OutputQueue>);

/// Ends the task also for a session that was never started and so has no end.
impl Drop for OutputPublisher {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.arrived.notify_one();
    }
}

struct OutputQueue {
    state: Mutex<QueuedOutput>,
    arrived: Notify,
}

impl OutputQueue {
    fn lock(&self) -> MutexGuard<'_, QueuedOutput> {
        self.state.lock()
    }
}

#[derive(Default)]
struct QueuedOutput {
    waiting: VecDeque<String>,
    bytes: usize,
    ended: Option<SessionEnd>,
    /// The publisher was dropped: nothing more is queued.
    closed: bool,
}

/// The item that the output belongs to.
pub(crate) struct ItemIds {
    pub thread_id: String,
    pub turn_id: String,
    pub item_id: String,
}

impl OutputPublisher {
    /// Returns the publisher, and a receiver of the session's end. It resolves once all output before the end has been
    /// published, and fails when the session has no end.
    pub fn new(events: Arc<EventLog>, ids: ItemIds) -> (Self, oneshot::Receiver<SessionEnd>) {
        let shared = Arc::new(OutputQueue { state: Mutex::default(), arrived: Notify::new() });
        let (done, ended) = oneshot::channel();
        tokio::spawn(publish_output(Arc::clone(&shared), events, ids, done));
        (Self(shared), ended)
    }

    pub fn take(&self, event: Event<'_>) {
        let mut state = self.0.lock();
        match event {
            Event::Output(text) if state.bytes < MAX_QUEUED_BYTES => {
                state.bytes += text.len();
                state.waiting.push_back(text.into());
            }
            Event::Output(_) => {}
            Event::Ended(ended) => state.ended = Some(ended),
        }
        drop(state);
        self.0.arrived.notify_one();
    }
}

async fn publish_output(
    shared: Arc<OutputQueue>,
    events: Arc<EventLog>,
    ids: ItemIds,
    done: oneshot::Sender<SessionEnd>,
) {
    loop {
        let next = {
            let mut state = shared.lock();
            match state.waiting.pop_front() {
                Some(text) => {
                    state.bytes -= text.len();
                    Some(text)
                }
                None => match state.ended.take() {
                    Some(ended) => {
                        _ = done.send(ended);
                        return;
                    }
                    None if state.closed => return,
                    None => None,
                },
            }
        };
        match next {
            Some(delta) => {
                events
                    .publish(ServerNotification::CommandExecutionOutputDelta(CommandExecutionOutputDeltaNotification {
                        thread_id: ids.thread_id.clone(),
                        turn_id: ids.turn_id.clone(),
                        item_id: ids.item_id.clone(),
                        delta,
                    }))
                    .await;
            }
            None => shared.arrived.notified().await,
        }
    }
}
