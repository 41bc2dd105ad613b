//! [`WatchedValue`]: a shared value whose changes can be awaited.

use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Default)]
pub(crate) struct WatchedValue<T> {
    value: Mutex<T>,
    changed: Notify,
}

impl<T> WatchedValue<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Mutex::new(value), changed: Notify::new() }
    }

    pub(crate) fn read<R>(&self, read: impl FnOnce(&T) -> R) -> R {
        read(&self.value.lock())
    }

    pub(crate) fn update<R>(&self, update: impl FnOnce(&mut T) -> R) -> R {
        let result = update(&mut self.value.lock());
        self.changed.notify_waiters();
        result
    }

    /// Calls `look` now and after every change, until it returns a value. It may take what it found.
    pub(crate) async fn until<R>(&self, mut look: impl FnMut(&mut T) -> Option<R>) -> R {
        loop {
            let mut changed = std::pin::pin!(self.changed.notified());
            changed.as_mut().enable();
            let found = look(&mut self.value.lock());
            match found {
                Some(found) => return found,
                None => changed.await,
            }
        }
    }
}
