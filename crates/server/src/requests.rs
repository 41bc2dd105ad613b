//! The number of requests that are being worked on, of all connections.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Default)]
pub(crate) struct RequestCount(Arc<AtomicUsize>);

/// Counts a request until it is dropped.
pub(crate) struct CountedRequest(RequestCount);

impl RequestCount {
    pub fn begin(&self) -> CountedRequest {
        self.0.fetch_add(1, Ordering::Relaxed);
        CountedRequest(self.clone())
    }

    pub fn get(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for CountedRequest {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
