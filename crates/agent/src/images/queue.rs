//! The order in which images are decoded: one at a time in this process, first come, first served. Decoding one
//! takes hundreds of megabytes at worst; a turn can name any number of them.

use tokio::sync::Semaphore;
use tokio::task::{JoinError, spawn_blocking};

static DECODER: Semaphore = Semaphore::const_new(1);

/// Runs blocking work when no other runs and returns what it returns. Cancel-safe: dropped while it waits, it gives
/// its place in the queue up; dropped later, the work goes on and the next one waits for its end.
pub(super) async fn one_at_a_time<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, JoinError> {
    // The semaphore is never closed; without a permit the work would merely not be alone.
    let permit = DECODER.acquire().await.ok();
    spawn_blocking(move || {
        let result = work();
        drop(permit);
        result
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::pin::pin;
    use std::sync::mpsc;
    use std::task::Poll;

    use super::*;

    /// One test for the whole queue, because all tests of the process share it.
    #[tokio::test]
    async fn images_are_decoded_one_after_the_other_and_a_dropped_one_leaves_the_queue() {
        let (finish, finished) = mpsc::channel::<()>();
        let (say, said) = mpsc::channel();
        let reporting = |name: &'static str| {
            let say = say.clone();
            move || say.send(name).unwrap()
        };
        let begun = reporting("first begins");
        let ended = reporting("first ends");
        let mut first = pin!(one_at_a_time(move || {
            begun();
            finished.recv().unwrap();
            ended();
        }));
        let dropped = reporting("never");
        let mut dropped = Box::pin(one_at_a_time(dropped));
        let mut last = pin!(one_at_a_time(reporting("last")));
        poll_fn(|cx| {
            assert!(first.as_mut().poll(cx).is_pending());
            assert!(dropped.as_mut().poll(cx).is_pending());
            assert!(last.as_mut().poll(cx).is_pending());
            Poll::Ready(())
        })
        .await;
        drop(dropped);
        let before = tokio::task::spawn_blocking(move || (said.recv().unwrap(), said)).await.unwrap();
        assert_eq!((before.0, before.1.try_recv().ok()), ("first begins", None));
        finish.send(()).unwrap();
        first.await.unwrap();
        last.await.unwrap();
        assert_eq!(before.1.try_iter().collect::<Vec<_>>(), ["first ends", "last"]);
    }
}
