//! [`Session`]: what evaluations remember. Typed slices with their history, which tools change in transactions, and the
//! log of events, which is never rolled back.

mod slices;
mod transaction;

use std::collections::VecDeque;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tracing::warn;

pub use slices::Slices;
pub(crate) use transaction::Transaction;

use crate::event::Event;
use crate::limits::TokenUsage;

/// Events that the log keeps; the oldest are dropped beyond that.
const MAX_EVENTS: usize = 10_000;

/// The state of a series of evaluations: values of any type in typed slices, and the events of the evaluations.
///
/// A slice is the history of the values of one type; [`latest`](Self::latest) is the current one.
///
/// ```
/// use loomd_adapter::Session;
///
/// #[derive(Debug, PartialEq)]
/// struct Note(&'static str);
///
/// let mut session = Session::new();
/// session.append(Note("first"));
/// session.append(Note("second"));
/// assert_eq!(session.latest::<Note>().as_deref(), Some(&Note("second")));
/// assert_eq!(session.all::<Note>().len(), 2);
/// ```
#[derive(Default)]
pub struct Session {
    shared: SharedSession,
}

/// The session as evaluations and their tools share it.
type SharedSession = Arc<Mutex<SessionState>>;

type Reducer = Arc<dyn Fn(&Event, &mut Slices) + Send + Sync>;

#[derive(Default)]
struct SessionState {
    slices: Slices,
    events: VecDeque<Arc<Event>>,
    dropped: u64,
    reducers: Vec<Reducer>,
    /// Changes with every begin and end of an evaluation. What an ended one still does has no effect.
    epoch: u64,
    in_transaction: bool,
    /// Events that reducers get when the transaction in progress has ended.
    deferred: Vec<Arc<Event>>,
}

impl Session {
    pub fn new() -> Self {
        Self::default()
    }

    /// The current value of a slice.
    pub fn latest<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        self.shared.lock().slices.latest()
    }

    /// All values of a slice, the oldest first.
    pub fn all<T: Send + Sync + 'static>(&self) -> Vec<Arc<T>> {
        self.shared.lock().slices.all()
    }

    /// Adds a value to the slice of its type.
    pub fn append<T: Send + Sync + 'static>(&mut self, value: T) {
        self.shared.lock().slices.append(value);
    }

    /// Replaces the slice of this type by one value.
    pub fn seed<T: Send + Sync + 'static>(&mut self, value: T) {
        self.shared.lock().slices.seed(value);
    }

    /// Empties a slice.
    pub fn clear<T: Send + Sync + 'static>(&mut self) {
        self.shared.lock().slices.clear::<T>();
    }

    /// The slices as they are now; later changes do not affect the copy.
    pub fn snapshot(&self) -> Slices {
        self.shared.lock().slices.clone()
    }

    /// Replaces all slices by those of a snapshot. Events stay.
    pub fn restore(&mut self, snapshot: Slices) {
        self.shared.lock().slices = snapshot;
    }

    /// Calls `reduce` with every event, to derive slices from events. It must not use the session itself. What a
    /// reducer that panics has changed is rolled back.
    pub fn on_event(&mut self, reduce: impl Fn(&Event, &mut Slices) + Send + Sync + 'static) {
        self.shared.lock().reducers.push(Arc::new(reduce));
    }

    /// The events so far, the oldest first; the last 10,000 are kept.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.shared.lock().events.iter().cloned().collect()
    }

    /// Removes and returns the events so far.
    pub fn take_events(&mut self) -> Vec<Arc<Event>> {
        std::mem::take(&mut self.shared.lock().events).into()
    }

    /// Number of events that were dropped because the log was full.
    pub fn dropped_events(&self) -> u64 {
        self.shared.lock().dropped
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.shared.lock();
        f.debug_struct("Session").field("slices", &state.slices).field("events", &state.events.len()).finish()
    }
}

/// The slice that holds the thread of the last evaluation, to be reused by the next one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThreadState {
    pub thread_id: String,
    pub cwd: PathBuf,
    pub workspace_fingerprint: Option<String>,
    /// Of the tools that the thread was started with. A thread keeps its tools for life.
    pub tools_fingerprint: String,
    /// What the thread had used when its last turn ended.
    #[serde(default)]
    pub used: Option<TokenUsage>,
}

impl SessionState {
    /// Logs an event and applies the reducers, unless the evaluation that it is of has ended.
    fn publish(&mut self, epoch: u64, event: Event) {
        if self.epoch != epoch {
            return;
        }
        let event = Arc::new(event);
        self.events.push_back(Arc::clone(&event));
        if self.events.len() > MAX_EVENTS {
            self.events.pop_front();
            self.dropped += 1;
        }
        if self.in_transaction {
            self.deferred.push(event);
        } else {
            self.reduce(&event);
        }
    }

    fn reduce(&mut self, event: &Event) {
        for reducer in self.reducers.clone() {
            let mut slices = self.slices.clone();
            match catch_unwind(AssertUnwindSafe(|| reducer(event, &mut slices))) {
                Ok(()) => self.slices = slices,
                Err(_) => warn!("a reducer of session events panicked"),
            }
        }
    }
}

/// The time of one evaluation in a session, as its tools share it.
#[derive(Clone)]
pub(crate) struct Epoch {
    session: SharedSession,
    number: u64,
}

impl Epoch {
    pub(crate) fn publish(&self, event: Event) {
        self.session.lock().publish(self.number, event);
    }

    /// Replaces a slice, unless the evaluation has ended.
    pub(crate) fn seed<T: Send + Sync + 'static>(&self, value: T) {
        let mut state = self.session.lock();
        if state.epoch == self.number {
            state.slices.seed(value);
        }
    }

    /// Stores what the session's thread has used in all of its turns.
    pub(crate) fn store_usage(&self, thread_id: &str, used: TokenUsage) {
        let stored = self.session.lock().slices.latest::<ThreadState>();
        if let Some(stored) = stored.filter(|stored| stored.thread_id == thread_id) {
            self.seed(ThreadState { used: Some(used), ..(*stored).clone() });
        }
    }
}

/// Ends the epoch when dropped, and with it the transactions that are still open.
pub(crate) struct EpochGuard(pub(crate) Epoch);

impl EpochGuard {
    pub(crate) fn begin(session: &Session) -> Self {
        let number = next_epoch(&session.shared);
        Self(Epoch { session: Arc::clone(&session.shared), number })
    }
}

impl Drop for EpochGuard {
    fn drop(&mut self) {
        next_epoch(&self.0.session);
    }
}

/// Ends an open transaction and returns the next epoch.
fn next_epoch(session: &SharedSession) -> u64 {
    let mut state = session.lock();
    state.in_transaction = false;
    for event in std::mem::take(&mut state.deferred) {
        state.reduce(&event);
    }
    state.epoch += 1;
    state.epoch
}
