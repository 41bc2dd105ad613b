//! Commands of a thread that may outlive the turn that started them.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use loomd_exec::{Event, SessionEnd, Sessions};
use loomd_protocol::{CommandExecutionOutputDeltaNotification, ServerNotification};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::event_log::EventLog;

/// Output that waits to be shown. When more waits, it is only kept for the end.
const WAITING_BYTES: usize = 4 * 1024 * 1024;

/// The terminals of one thread.
#[derive(Default)]
pub(crate) struct Terminals {
    pub sessions: Sessions,
    open: Mutex<HashMap<u32, Open>>,
}

/// What has to be known of a session after the call that started it.
#[derive(Clone)]
pub(crate) struct Open {
    /// The id of its item.
    pub item_id: String,
    pub argv: Arc<[String]>,
    /// Done when its end has been shown.
    pub shown: CancellationToken,
}

impl Terminals {
    pub fn opened(&self, id: u32, open: Open) {
        self.lock().insert(id, open);
    }

    pub fn find(&self, id: u32) -> Option<Open> {
        self.lock().get(&id).cloned()
    }

    /// Whether a session goes on behind an item.
    pub fn runs(&self, item_id: &str) -> bool {
        self.lock().values().any(|open| open.item_id == item_id)
    }

    /// Its end has been shown.
    pub fn closed(&self, id: u32) {
        if let Some(open) = self.lock().remove(&id) {
            open.shown.cancel();
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u32, Open>> {
        self.open.lock()
    }
}

/// Publishes the output of a session for as long as it runs.
pub(crate) struct OutputPublisher(Arc<Shared>);

/// A session that never began has no end, but nothing more is to be shown of it either.
impl Drop for OutputPublisher {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.arrived.notify_one();
    }
}

struct Shared {
    state: Mutex<State>,
    arrived: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[derive(Default)]
struct State {
    waiting: VecDeque<String>,
    bytes: usize,
    ended: Option<SessionEnd>,
    /// Nothing more will arrive.
    closed: bool,
}

/// Whose output it is.
pub(crate) struct Names {
    pub thread_id: String,
    pub turn_id: String,
    pub item_id: String,
}

impl OutputPublisher {
    /// The feed, and what resolves with the end when everything before it has been shown; with an error when
    /// there will be no end.
    pub fn new(events: Arc<EventLog>, names: Names) -> (Self, oneshot::Receiver<SessionEnd>) {
        let shared = Arc::new(Shared { state: Mutex::default(), arrived: Notify::new() });
        let (done, ended) = oneshot::channel();
        tokio::spawn(show(Arc::clone(&shared), events, names, done));
        (Self(shared), ended)
    }

    pub fn take(&self, event: Event<'_>) {
        let mut state = self.0.lock();
        match event {
            Event::Output(text) if state.bytes < WAITING_BYTES => {
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

async fn show(shared: Arc<Shared>, events: Arc<EventLog>, names: Names, done: oneshot::Sender<SessionEnd>) {
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
                        thread_id: names.thread_id.clone(),
                        turn_id: names.turn_id.clone(),
                        item_id: names.item_id.clone(),
                        delta,
                    }))
                    .await;
            }
            None => shared.arrived.notified().await,
        }
    }
}
