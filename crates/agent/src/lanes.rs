//! An ordered lock per thread: requests about a thread run one at a time, in the order in which they came.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use loomd_store::ThreadId;
use parking_lot::Mutex;
use tokio::sync::OwnedMutexGuard;

type Lane = tokio::sync::Mutex<()>;

/// The right to act on a thread before all later requests, until it is dropped.
pub(crate) type LaneGuard = OwnedMutexGuard<()>;

/// Unused locks are removed when there are more than this.
const KEPT: usize = 64;

#[derive(Default)]
pub(crate) struct Lanes(Mutex<HashMap<ThreadId, Weak<Lane>>>);

impl Lanes {
    /// Locks a thread, after earlier requests. The position in the queue is taken at the first poll.
    pub async fn enter(&self, id: ThreadId) -> LaneGuard {
        self.lane(id).lock_owned().await
    }

    fn lane(&self, id: ThreadId) -> Arc<Lane> {
        let mut lanes = self.0.lock();
        if let Some(lane) = lanes.get(&id).and_then(Weak::upgrade) {
            return lane;
        }
        if lanes.len() >= KEPT {
            lanes.retain(|_, lane| lane.strong_count() > 0);
        }
        let lane = Arc::default();
        lanes.insert(id, Arc::downgrade(&lane));
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_lane_is_entered_in_the_order_of_asking() {
        let lanes = Arc::new(Lanes::default());
        let id = ThreadId::new();
        let first = lanes.enter(id).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..3)
            .map(|number| {
                let (lanes, order) = (Arc::clone(&lanes), Arc::clone(&order));
                tokio::spawn(async move {
                    let _lane = lanes.enter(id).await;
                    order.lock().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        assert!(order.lock().is_empty(), "the first is still inside");
        drop(first);
        for waiting in waiting {
            waiting.await.unwrap();
        }
        assert_eq!(*order.lock(), [0, 1, 2]);
    }

    #[tokio::test]
    async fn lanes_of_other_threads_are_free_and_unused_ones_are_forgotten() {
        let lanes = Lanes::default();
        let _held = lanes.enter(ThreadId::new()).await;
        for _ in 0..10 * KEPT {
            lanes.enter(ThreadId::new()).await;
        }
        assert!(lanes.0.lock().len() <= KEPT);
    }
}
