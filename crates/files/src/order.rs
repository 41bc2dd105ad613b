//! [`Order`]: serializes operations that touch the same path; all others run concurrently. Paths are compared as
//! written, without resolving links.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::watch;

/// How an operation uses a path and everything below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
}

/// Operations in progress, and those that wait for them.
#[derive(Default)]
pub struct Order {
    state: Arc<Mutex<OrderState>>,
}

#[derive(Default)]
struct OrderState {
    next: u64,
    operations: Vec<Operation>,
}

struct Operation {
    number: u64,
    touches: Vec<(PathBuf, Access)>,
    /// Closed when the operation is over.
    over: watch::Receiver<()>,
}

/// Permits an operation until it is dropped.
pub struct OrderGuard {
    number: u64,
    state: Arc<Mutex<OrderState>>,
    _over: watch::Sender<()>,
}

impl Order {
    /// Waits for earlier operations that touch the same paths. The operation is registered at the first poll.
    pub async fn enter(&self, touches: Vec<(PathBuf, Access)>) -> OrderGuard {
        let (before, turn) = self.register(touches);
        for mut operation in before {
            // Nothing is ever sent; this ends when the sender is dropped.
            while operation.changed().await.is_ok() {}
        }
        turn
    }

    fn register(&self, touches: Vec<(PathBuf, Access)>) -> (Vec<watch::Receiver<()>>, OrderGuard) {
        let mut state = self.state.lock();
        let conflicts = state.operations.iter().filter(|operation| conflict(&operation.touches, &touches));
        let before = conflicts.map(|operation| operation.over.clone()).collect();
        let (sender, over) = watch::channel(());
        let number = state.next;
        state.next += 1;
        state.operations.push(Operation { number, touches, over });
        (before, OrderGuard { number, state: Arc::clone(&self.state), _over: sender })
    }
}

impl Drop for OrderGuard {
    fn drop(&mut self) {
        self.state.lock().operations.retain(|operation| operation.number != self.number);
    }
}

fn conflict(one: &[(PathBuf, Access)], other: &[(PathBuf, Access)]) -> bool {
    let nested = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
    one.iter().any(|(path, access)| {
        other.iter().any(|(there, also)| (*access == Access::Write || *also == Access::Write) && nested(path, there))
    })
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::Poll;

    use super::*;

    async fn check(first: (&str, Access), second: (&str, Access), waits: bool) {
        let order = Order::default();
        let touch = |(path, access): (&str, Access)| vec![(PathBuf::from(path), access)];
        let held = order.enter(touch(first)).await;
        let mut next = pin!(order.enter(touch(second)));
        let polled = std::future::poll_fn(|cx| Poll::Ready(next.as_mut().poll(cx))).await;
        assert_eq!(polled.is_pending(), waits, "{first:?} {second:?}");
        drop(held);
        if waits {
            next.await;
        }
    }

    #[tokio::test]
    async fn an_operation_waits_only_for_conflicting_ones_on_the_same_path() {
        use Access::{Read, Write};
        check(("/a", Write), ("/a", Read), true).await;
        check(("/a", Read), ("/a", Write), true).await;
        check(("/a", Read), ("/a", Read), false).await;
        check(("/a/b", Write), ("/a", Read), true).await;
        check(("/a", Write), ("/a/b/c", Write), true).await;
        check(("/a", Write), ("/ab", Write), false).await;
        check(("/a/b", Write), ("/a/c", Write), false).await;
    }

    #[tokio::test]
    async fn operations_on_a_path_run_in_request_order() {
        let order = Arc::new(Order::default());
        let first = order.enter(vec![("/a".into(), Access::Write)]).await;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for number in 0..5 {
            let (order, seen) = (Arc::clone(&order), Arc::clone(&seen));
            tasks.push(tokio::spawn(async move {
                let _turn = order.enter(vec![("/a".into(), Access::Write)]).await;
                seen.lock().push(number);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*seen.lock(), [0, 1, 2, 3, 4]);
        assert!(order.state.lock().operations.is_empty());
    }
}
