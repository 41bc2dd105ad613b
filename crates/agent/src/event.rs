//! Events of a thread: notifications, server requests and the end of server requests, each with its id.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use jiff::Timestamp;
use loomd_protocol::{ServerNotification, ThreadReplayReason};

use crate::approval::Approval;

/// The place of an event among the events of its thread. Ids of one thread rise, with gaps, also over an unload and a
/// restart: the upper bits are an epoch that grows with every load, the lower ones count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(u128);

impl EventId {
    /// The id before the first event of an epoch.
    pub(crate) fn before(epoch: u64) -> Self {
        Self(u128::from(epoch) << 64)
    }

    /// The id before the first event under a lease. Epochs of leases are in seconds, and grow also when the clock goes back.
    pub(crate) fn before_lease(epoch: u64) -> Self {
        Self::before(epoch.saturating_mul(1_000_000))
    }

    /// An id after those of every thread so far, for an event of a thread that is not loaded.
    pub(crate) fn unlogged() -> Self {
        Self::before(next_epoch()).next()
    }

    pub(crate) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// A decimal number.
impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for EventId {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

/// An epoch in microseconds that is greater than any that this process has used, and than those of earlier processes as
/// long as the clock does not go back; see [`EventId::before_lease`].
pub(crate) fn next_epoch() -> u64 {
    static LAST: AtomicU64 = AtomicU64::new(0);
    let now = u64::try_from(Timestamp::now().as_microsecond()).unwrap_or(0);
    let next = |last: u64| now.max(last + 1);
    match LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))) {
        Ok(last) | Err(last) => next(last),
    }
}

/// One event. Cheap to clone: what it carries is shared.
#[derive(Clone, Debug)]
pub struct Event {
    pub id: EventId,
    /// When it was published, in Unix milliseconds.
    pub at_ms: i64,
    pub kind: EventKind,
}

impl Event {
    /// An event that is published now.
    pub(crate) fn new(id: EventId, kind: EventKind) -> Self {
        Self { id, at_ms: Timestamp::now().as_millisecond(), kind }
    }
}

#[derive(Clone, Debug)]
pub enum EventKind {
    Notification(Arc<ServerNotification>),
    /// A server request, open until [`Approval::decide`] or until the turn no longer waits for it.
    ApprovalRequested(Arc<Approval>),
    /// The turn no longer waits for it, decided or not.
    ApprovalResolved(Arc<Approval>),
}

impl EventKind {
    /// Whether a client can tell which thread it belongs to. Others are sent to the thread's subscribers in order, without
    /// their ids, and not again.
    pub fn names_thread(&self) -> bool {
        let Self::Notification(notification) = self else { return true };
        match &**notification {
            ServerNotification::AccountRateLimitsUpdated(_)
            | ServerNotification::ConfigWarning(_)
            | ServerNotification::DeprecationNotice(_) => false,
            ServerNotification::Warning(warning) => warning.thread_id.is_some(),
            ServerNotification::McpServerStartupStatusUpdated(updated) => updated.thread_id.is_some(),
            _ => true,
        }
    }
}

/// What became of the events that a client has missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissedEvents {
    /// All of them follow the snapshot.
    Follow,
    /// They are not known; the client has the snapshot instead.
    Unknown(ThreadReplayReason),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_rise_within_an_epoch_and_from_one_to_the_next() {
        let (first, second) = (next_epoch(), next_epoch());
        assert!(first < second);
        let mut last = EventId::before(first);
        for _ in 0..1000 {
            assert!(last < last.next());
            last = last.next();
        }
        assert!(last < EventId::before(second));
        assert_eq!(EventId::before(1).next().to_string(), "18446744073709551617");
    }
}
