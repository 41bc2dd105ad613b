//! Bringing the index up to date in the background.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::time::Duration;

use super::Inner;
use super::index::{Index, Step};

/// How long the background work pauses while an operation waits for the index.
const STEP_ASIDE: Duration = Duration::from_millis(1);
/// How long a sweep pauses between two of its steps.
const SWEEP_PAUSE: Duration = Duration::from_millis(50);
/// A client that starts a server mostly lists threads at once, and that list does not wait behind this work.
const FIRST_STEP: Duration = Duration::from_millis(50);

impl Inner {
    pub(super) fn start_indexing(self: &Arc<Self>) {
        if self.indexing.swap(true, Ordering::AcqRel) {
            return;
        }
        let inner = Arc::downgrade(self);
        let started = std::thread::Builder::new().name("thread-index".into()).spawn(move || run(&inner));
        if let Err(error) = started {
            tracing::warn!(%error, "the thread index is brought up to date only as far as lists need it");
            self.indexing.store(false, Ordering::Release);
        }
    }
}

/// Steps until the index is up to date or the store is gone.
fn run(inner: &Weak<Inner>) {
    std::thread::sleep(FIRST_STEP);
    while let Some(inner) = inner.upgrade() {
        if inner.waiting.load(Ordering::Relaxed) > 0 {
            std::thread::sleep(STEP_ASIDE);
            continue;
        }
        match inner.with_index(Index::step) {
            Ok(Step::More) => {}
            // Nothing waits for this: it takes a small part of one processor, however many threads there are.
            Ok(Step::Sweeping) => {
                drop(inner);
                std::thread::sleep(SWEEP_PAUSE);
            }
            done => {
                if let Err(error) = done {
                    tracing::warn!(%error, "the thread index could not be brought up to date");
                }
                inner.indexing.store(false, Ordering::Release);
                return;
            }
        }
    }
}
