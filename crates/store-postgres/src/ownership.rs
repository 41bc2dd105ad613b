//! Which threads this process owns: what the database answered when they were taken. Writers and notes of an owned
//! thread carry its session and epoch, and fail without asking the database once the ownership has ended here.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use loomd_store::{Error, Result, ThreadId};
use parking_lot::Mutex;
use uuid::Uuid;

/// The ownership of one thread by one session, with one epoch.
pub(crate) struct Ownership {
    pub session: Uuid,
    pub epoch: i64,
    /// Nothing more is written under it.
    ended: AtomicBool,
    /// Whether one of its writers was not dropped.
    has_writer: AtomicBool,
    /// The number of its last note. Locked while a note is written, so that notes reach the database in their order.
    pub notes: tokio::sync::Mutex<i64>,
}

impl Ownership {
    fn new(session: Uuid, epoch: i64) -> Self {
        let notes = tokio::sync::Mutex::new(0);
        Self { session, epoch, ended: AtomicBool::new(false), has_writer: AtomicBool::new(false), notes }
    }

    pub fn is_ended(&self) -> bool {
        self.ended.load(Ordering::Acquire)
    }

    fn end(&self) {
        self.ended.store(true, Ordering::Release);
    }

    /// Fails with [`Error::StaleLease`] when the ownership has ended.
    pub fn check(&self, thread: ThreadId) -> Result<()> {
        if self.is_ended() { Err(Error::StaleLease { id: thread }) } else { Ok(()) }
    }

    /// The right to make its only writer. Fails with [`Error::Held`] while there is another one.
    pub fn writer_slot(self: Arc<Self>, thread: ThreadId) -> Result<WriterSlot> {
        self.check(thread)?;
        if self.has_writer.swap(true, Ordering::AcqRel) {
            return Err(Error::Held { id: thread, pid: Some(std::process::id()) });
        }
        Ok(WriterSlot(self))
    }
}

/// Held by the only writer of an ownership.
pub(crate) struct WriterSlot(Arc<Ownership>);

impl WriterSlot {
    pub fn ownership(&self) -> &Ownership {
        &self.0
    }
}

impl Drop for WriterSlot {
    fn drop(&mut self) {
        self.0.has_writer.store(false, Ordering::Release);
    }
}

/// The ownerships of one store. One that was abandoned stays here until the thread is taken again, or until the process
/// registers another session.
#[derive(Default)]
pub(crate) struct Ownerships(Mutex<HashMap<ThreadId, Arc<Ownership>>>);

impl Ownerships {
    pub fn get(&self, thread: ThreadId) -> Option<Arc<Ownership>> {
        self.0.lock().get(&thread).cloned()
    }

    /// The ownership of a thread, unless it has ended.
    pub fn live(&self, thread: ThreadId) -> Option<Arc<Ownership>> {
        self.get(thread).filter(|ownership| !ownership.is_ended())
    }

    /// Notes that a thread was taken. Of two that overlap, the greater epoch counts.
    pub fn taken(&self, thread: ThreadId, session: Uuid, epoch: i64) {
        let mut all = self.0.lock();
        if all.get(&thread).is_none_or(|known| known.session != session || known.epoch < epoch) {
            all.insert(thread, Arc::new(Ownership::new(session, epoch)));
        }
    }

    /// Notes that the database refused an ownership. One that a later ownership has replaced is left as it is: readers
    /// that used it go on with the later one.
    pub fn lost(&self, thread: ThreadId, ownership: &Ownership) {
        if self.0.lock().get(&thread).is_some_and(|known| std::ptr::eq(&**known, ownership)) {
            ownership.end();
        }
    }

    pub fn abandon(&self, thread: ThreadId) {
        if let Some(ownership) = self.0.lock().get(&thread) {
            ownership.end();
        }
    }

    pub fn release(&self, thread: ThreadId, session: Uuid, epoch: i64) {
        let mut all = self.0.lock();
        if let Some(known) = all.get(&thread)
            && (known.session, known.epoch) == (session, epoch)
        {
            known.end();
            all.remove(&thread);
        }
    }

    /// Ends all ownerships of a session.
    pub fn end_session(&self, session: Uuid) {
        for ownership in self.0.lock().values().filter(|ownership| ownership.session == session) {
            ownership.end();
        }
    }

    /// Forgets what has ended.
    pub fn forget_ended(&self) {
        self.0.lock().retain(|_, ownership| !ownership.is_ended());
    }
}
