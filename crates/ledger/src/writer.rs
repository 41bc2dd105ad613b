//! Appending to a ledger without waiting for the disk.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::{Entry, Ledger};

/// The most entries that wait to be written. More are lost, and counted.
const MAX_QUEUED: usize = 4096;

/// How long a dropped writer waits for its entries to be written.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// Writes entries on a thread of its own, in their order. The thread starts with the first entry.
pub struct Writer(Arc<Shared>);

struct Shared {
    ledger: Arc<Ledger>,
    state: Mutex<State>,
    /// There are entries, or the writer was dropped.
    work: Condvar,
    /// Every entry was written or lost.
    written: Condvar,
}

#[derive(Default)]
struct State {
    queue: Vec<Entry>,
    started: bool,
    writing: bool,
    closed: bool,
    lost: u64,
}

impl State {
    fn is_idle(&self) -> bool {
        self.queue.is_empty() && !self.writing
    }
}

impl Writer {
    pub fn new(ledger: Arc<Ledger>) -> Self {
        Self(Arc::new(Shared { ledger, state: Mutex::default(), work: Condvar::new(), written: Condvar::new() }))
    }

    /// Queues an entry. Never blocks on the disk.
    pub fn push(&self, entry: Entry) {
        let mut state = self.0.state.lock();
        if state.queue.len() >= MAX_QUEUED {
            state.lost += 1;
            return;
        }
        if !state.started {
            let shared = Arc::clone(&self.0);
            let spawned = std::thread::Builder::new().name("ledger".into()).spawn(move || shared.run());
            if let Err(error) = spawned {
                tracing::warn!(%error, "the ledger has no thread to write on");
                state.lost += 1;
                return;
            }
            state.started = true;
        }
        state.queue.push(entry);
        self.0.work.notify_one();
    }

    /// Waits until everything that was pushed is in the file; false when that takes longer.
    pub fn flush(&self, timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        let mut state = self.0.state.lock();
        while !state.is_idle() {
            if self.0.written.wait_until(&mut state, deadline).timed_out() {
                return state.is_idle();
            }
        }
        true
    }

    /// The entries that could not be written.
    pub fn lost(&self) -> u64 {
        self.0.state.lock().lost
    }

    /// The entries that wait to be written.
    pub fn queued(&self) -> usize {
        self.0.state.lock().queue.len()
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.state.lock().closed = true;
        self.0.work.notify_one();
        self.flush(LAST_WAIT);
    }
}

impl Shared {
    fn run(&self) {
        loop {
            let batch = {
                let mut state = self.state.lock();
                state.writing = false;
                while state.queue.is_empty() {
                    self.written.notify_all();
                    if state.closed {
                        return;
                    }
                    self.work.wait(&mut state);
                }
                state.writing = true;
                std::mem::take(&mut state.queue)
            };
            let failed = batch.iter().filter_map(|entry| self.ledger.append(entry).err()).enumerate();
            let mut lost = 0;
            for (at, error) in failed {
                if at == 0 {
                    tracing::warn!(%error, "the ledger cannot be written");
                }
                lost += 1;
            }
            self.state.lock().lost += lost;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use jiff::civil::Date;

    use super::*;
    use crate::{ModelCall, Tokens};

    fn call(input: u64) -> Entry {
        Entry::Call(ModelCall { tokens: Tokens { input, ..Tokens::default() }, ..ModelCall::default() })
    }

    #[test]
    fn everything_that_was_pushed_is_in_the_file_after_a_flush_and_after_a_drop() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::new(dir.path().join("ledger")));
        let writer = Writer::new(Arc::clone(&ledger));
        assert!(writer.flush(Duration::ZERO));
        let inputs = || -> Vec<u64> {
            let calls = ledger.entries(Date::MIN..=Date::MAX);
            calls
                .filter_map(|entry| if let Entry::Call(call) = entry { Some(call.tokens.input) } else { None })
                .collect()
        };
        (0..100).for_each(|input| writer.push(call(input)));
        assert!(writer.flush(Duration::from_secs(60)));
        assert_eq!(inputs(), (0..100).collect::<Vec<_>>());
        (100..200).for_each(|input| writer.push(call(input)));
        drop(writer);
        assert_eq!(inputs(), (0..200).collect::<Vec<_>>());
    }

    #[test]
    fn entries_that_cannot_be_written_are_counted_and_do_not_block() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ledger"), "not a folder").unwrap();
        let writer = Writer::new(Arc::new(Ledger::new(dir.path().join("ledger"))));
        (0..10).for_each(|input| writer.push(call(input)));
        assert!(writer.flush(Duration::from_secs(60)));
        assert_eq!((writer.lost(), writer.queued()), (10, 0));
    }

    #[test]
    fn the_queue_is_bounded_while_the_disk_hangs() {
        let dir = tempfile::tempdir().unwrap();
        let ledger = Arc::new(Ledger::new(dir.path().into()));
        let writer = Writer::new(Arc::clone(&ledger));
        let hanging = ledger.hang();
        let pushed = 3 * MAX_QUEUED;
        (0..pushed).for_each(|_| writer.push(call(1)));
        assert!(writer.queued() <= MAX_QUEUED);
        assert!(!writer.flush(Duration::ZERO));
        drop(hanging);
        assert!(writer.flush(Duration::from_secs(60)));
        let written = ledger.entries(Date::MIN..=Date::MAX).count();
        assert!(written >= MAX_QUEUED);
        assert_eq!(written as u64 + writer.lost(), pushed as u64);
    }
}
