//! The calls that a connection has not answered yet, and to which of them the server's own messages belong.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rmcp::model::RequestId;

use crate::caller::{Caller, Progress};

/// The calls in flight on one connection.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<Vec<Arc<CallEntry>>>);

/// One call.
pub(crate) struct CallEntry {
    pub caller: Arc<dyn Caller>,
    /// The ids of its request and of its progress notifications, once it has been sent.
    ids: OnceLock<(RequestId, RequestId)>,
    /// Elicitations of it that the user has not answered.
    elicitations: AtomicUsize,
    pauses: Mutex<Pauses>,
}

/// The time that a call spent waiting for the user.
#[derive(Default)]
struct Pauses {
    total: Duration,
    since: Option<Instant>,
}

/// A [`CallEntry`] in the extensions of a request on its way to the transport.
#[derive(Clone)]
pub(crate) struct CallTag(pub Arc<CallEntry>);

/// Removes a call when it is dropped.
pub(crate) struct Registered<'a> {
    pub entry: Arc<CallEntry>,
    calls: &'a InFlight,
}

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        self.calls.0.lock().retain(|entry| !Arc::ptr_eq(entry, &self.entry));
    }
}

/// Counts an elicitation as open until it is dropped.
pub(crate) struct OpenElicitation(Arc<CallEntry>);

impl Drop for OpenElicitation {
    fn drop(&mut self) {
        let mut pauses = self.0.pauses.lock();
        if self.0.elicitations.fetch_sub(1, Ordering::Relaxed) == 1
            && let Some(since) = pauses.since.take()
        {
            pauses.total += since.elapsed();
        }
    }
}

impl CallEntry {
    /// Called by the transport before the request is written.
    pub fn sent(&self, request: RequestId, progress: RequestId) {
        let _ = self.ids.set((request, progress));
    }

    pub fn elicits(self: &Arc<Self>) -> OpenElicitation {
        let mut pauses = self.pauses.lock();
        if self.elicitations.fetch_add(1, Ordering::Relaxed) == 0 {
            pauses.since = Some(Instant::now());
        }
        OpenElicitation(Arc::clone(self))
    }

    /// How long the call has waited for the user: that time is not the server's.
    pub fn paused(&self) -> Duration {
        let pauses = self.pauses.lock();
        pauses.total + pauses.since.map_or(Duration::ZERO, |since| since.elapsed())
    }
}

impl InFlight {
    pub fn register(&self, caller: Arc<dyn Caller>) -> Registered<'_> {
        let entry = Arc::new(CallEntry {
            caller,
            ids: OnceLock::new(),
            elicitations: AtomicUsize::new(0),
            pauses: Mutex::default(),
        });
        self.0.lock().push(Arc::clone(&entry));
        Registered { entry, calls: self }
    }

    pub fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// Passes a progress notification on. One that belongs to no call is dropped.
    pub fn progress(&self, token: &RequestId, progress: Progress) {
        let calls = self.0.lock();
        let call = calls.iter().find(|call| call.ids.get().is_some_and(|(_, own)| own == token)).cloned();
        drop(calls);
        if let Some(call) = call {
            call.caller.progress(progress);
        }
    }

    /// The call that an elicitation belongs to: the one whose answer it came with, else the latest of the one thread
    /// that has calls in flight. `None` when several threads have.
    pub fn of_elicitation(&self, origin: Option<&RequestId>) -> Option<Arc<CallEntry>> {
        let calls = self.0.lock();
        if let Some(origin) = origin
            && let Some(call) = calls.iter().find(|call| call.ids.get().is_some_and(|(id, _)| id == origin))
        {
            return Some(Arc::clone(call));
        }
        let last = calls.last()?;
        let one_thread = calls.iter().all(|call| call.caller.thread() == last.caller.thread());
        one_thread.then(|| Arc::clone(last))
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::caller::BoxFuture;
    use crate::elicitation::{Elicitation, ElicitationAnswer};

    struct Thread(&'static str, Mutex<Vec<f64>>);

    impl Caller for Thread {
        fn thread(&self) -> &str {
            self.0
        }

        fn elicit(&self, _: Elicitation, _: CancellationToken) -> BoxFuture<'_, ElicitationAnswer> {
            Box::pin(std::future::ready(ElicitationAnswer::decline()))
        }

        fn progress(&self, progress: Progress) {
            self.1.lock().push(progress.progress);
        }
    }

    fn thread(name: &'static str) -> Arc<Thread> {
        Arc::new(Thread(name, Mutex::default()))
    }

    #[test]
    fn progress_reaches_the_call_with_its_token_and_no_other() {
        let (calls, one, two) = (InFlight::default(), thread("a"), thread("a"));
        let first = calls.register(Arc::clone(&one) as _);
        let second = calls.register(Arc::clone(&two) as _);
        first.entry.sent(RequestId::Number(1), RequestId::Number(10));
        second.entry.sent(RequestId::Number(2), RequestId::Number(20));
        for token in [20, 10, 30] {
            let progress = Progress { progress: token as f64, total: None, message: None };
            calls.progress(&RequestId::Number(token), progress);
        }
        assert_eq!((&*one.1.lock(), &*two.1.lock()), (&vec![10.0], &vec![20.0]));
    }

    #[test]
    fn an_elicitation_is_routed_only_where_it_is_clear_to_whom() {
        let calls = InFlight::default();
        let name = |origin: Option<i64>| {
            let origin = origin.map(RequestId::Number);
            calls.of_elicitation(origin.as_ref()).map(|call| call.caller.thread().to_owned())
        };
        assert_eq!(name(None), None);
        let a = calls.register(thread("a"));
        a.entry.sent(RequestId::Number(1), RequestId::Number(10));
        assert_eq!((name(None), name(Some(7))), (Some("a".into()), Some("a".into())));
        let b = calls.register(thread("b"));
        b.entry.sent(RequestId::Number(2), RequestId::Number(20));
        assert_eq!((name(None), name(Some(1)), name(Some(2))), (None, Some("a".into()), Some("b".into())));
        drop(a);
        assert_eq!(name(None), Some("b".into()));
    }
}
