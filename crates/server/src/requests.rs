//! The requests of all connections: those that are being worked on, and how many have ended, by method and outcome.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

#[derive(Clone, Default)]
pub(crate) struct RequestCount(Arc<Counts>);

#[derive(Default)]
struct Counts {
    in_flight: AtomicUsize,
    /// Bounded: methods are those of the protocol's table.
    ended: Mutex<BTreeMap<&'static str, Ended>>,
}

/// How many requests of a method have ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ended {
    pub answered: u64,
    /// Answered with an error, or given up.
    pub refused: u64,
}

/// Counts a request as being worked on until it is dropped, then as ended.
pub(crate) struct CountedRequest {
    counts: Arc<Counts>,
    method: &'static str,
    answered: bool,
}

impl RequestCount {
    pub fn begin(&self, method: &'static str) -> CountedRequest {
        self.0.in_flight.fetch_add(1, Ordering::Relaxed);
        CountedRequest { counts: Arc::clone(&self.0), method, answered: false }
    }

    pub fn in_flight(&self) -> usize {
        self.0.in_flight.load(Ordering::Relaxed)
    }

    pub fn ended(&self) -> BTreeMap<&'static str, Ended> {
        self.0.ended.lock().clone()
    }
}

impl CountedRequest {
    /// The request was answered, with a result if `answered`.
    pub fn end(mut self, answered: bool) {
        self.answered = answered;
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.counts.in_flight.fetch_sub(1, Ordering::Relaxed);
        let mut ended = self.counts.ended.lock();
        let ended = ended.entry(self.method).or_default();
        match self.answered {
            true => ended.answered += 1,
            false => ended.refused += 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_method_and_outcome() {
        let requests = RequestCount::default();
        let open = requests.begin("a");
        requests.begin("a").end(true);
        requests.begin("b").end(false);
        drop(requests.begin("a"));
        assert_eq!(requests.in_flight(), 1);
        let expected = [("a", Ended { answered: 1, refused: 1 }), ("b", Ended { answered: 0, refused: 1 })];
        assert_eq!(requests.ended(), expected.into());
        open.end(true);
        assert_eq!((requests.in_flight(), requests.ended()["a"].answered), (0, 2));
    }
}
