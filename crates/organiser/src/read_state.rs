//! What has been read of a thread. A thread without a row is read.

use loomd_protocol::{ThreadReadState, ThreadReadStateOperation, ThreadUnreadPosition};
use loomd_store::ThreadId;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::database::{Organiser, blob};
use crate::error::{Error, Result};

/// Stands for the start of the thread in the column of the first unread turn.
const START: &str = "";

impl Organiser {
    /// The read state of a thread.
    pub fn read_state(&self, thread: ThreadId) -> Result<ThreadReadState> {
        Ok(self.read(|db| find(db, thread).map(Some))?.unwrap_or_else(|| state(None, 0)))
    }

    /// Marks a thread unread from a turn that ended, unless it is unread already. The revision changes anyway.
    pub fn turn_ended(&self, thread: ThreadId, turn_id: &str) -> Result<ThreadReadState> {
        self.write(|db| {
            let (unread, revision) = row(db, thread)?;
            put(db, thread, unread.or_else(|| Some(turn_id.to_owned())), revision)
        })
    }

    /// Marks a thread read, or unread from its start. Fails with [`Error::ReadStateConflict`] when `expected` is not the
    /// present revision.
    pub fn update_read_state(
        &self,
        thread: ThreadId,
        expected: &str,
        operation: ThreadReadStateOperation,
    ) -> Result<ThreadReadState> {
        self.write(|db| {
            let (unread, revision) = row(db, thread)?;
            if expected != revision.to_string() {
                return Err(Error::ReadStateConflict(state(unread, revision)));
            }
            let unread = match operation {
                ThreadReadStateOperation::Read => None,
                ThreadReadStateOperation::Unread => Some(START.to_owned()),
            };
            put(db, thread, unread, revision)
        })
    }
}

pub(crate) fn find(db: &Connection, thread: ThreadId) -> Result<ThreadReadState> {
    let (unread, revision) = row(db, thread)?;
    Ok(state(unread, revision))
}

fn row(db: &Connection, thread: ThreadId) -> Result<(Option<String>, i64)> {
    let mut statement = db.prepare_cached("SELECT unread_turn, revision FROM read_states WHERE thread = ?1")?;
    let found = statement.query_row([blob(&thread)], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
    Ok(found.unwrap_or((None, 0)))
}

fn put(db: &Transaction, thread: ThreadId, unread: Option<String>, revision: i64) -> Result<ThreadReadState> {
    let revision = revision + 1;
    db.prepare_cached(
        "INSERT INTO read_states (thread, unread_turn, revision) VALUES (?1, ?2, ?3)
         ON CONFLICT (thread) DO UPDATE SET unread_turn = ?2, revision = ?3",
    )?
    .execute(params![blob(&thread), unread, revision])?;
    Ok(state(unread, revision))
}

pub(crate) fn state(unread: Option<String>, revision: i64) -> ThreadReadState {
    let first_unread = unread.map(|turn_id| match turn_id.as_str() {
        START => ThreadUnreadPosition::ThreadStart,
        _ => ThreadUnreadPosition::Turn { turn_id },
    });
    ThreadReadState { first_unread, revision: revision.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_unread_turn_stays_until_the_thread_is_read() {
        let home = tempfile::tempdir().unwrap();
        let (organiser, thread) = (Organiser::new(home.path()), ThreadId::new());
        let untouched = organiser.read_state(thread).unwrap();
        assert_eq!(untouched.first_unread, None);
        let first = organiser.turn_ended(thread, "one").unwrap();
        let second = organiser.turn_ended(thread, "two").unwrap();
        assert_eq!(first.first_unread, Some(ThreadUnreadPosition::Turn { turn_id: "one".into() }));
        assert_eq!(second.first_unread, first.first_unread);
        assert_ne!(second.revision, first.revision);
        let read = ThreadReadStateOperation::Read;
        let read = organiser.update_read_state(thread, &second.revision, read).unwrap();
        assert_eq!(read.first_unread, None);
        let third = organiser.turn_ended(thread, "three").unwrap();
        assert_eq!(third.first_unread, Some(ThreadUnreadPosition::Turn { turn_id: "three".into() }));
        assert_eq!(Organiser::new(home.path()).read_state(thread).unwrap(), third);
    }

    #[test]
    fn an_update_with_another_revision_is_refused_with_the_present_state() {
        let home = tempfile::tempdir().unwrap();
        let (organiser, thread) = (Organiser::new(home.path()), ThreadId::new());
        let old = organiser.read_state(thread).unwrap();
        let unread = ThreadReadStateOperation::Unread;
        let new = organiser.update_read_state(thread, &old.revision, unread).unwrap();
        assert_eq!(new.first_unread, Some(ThreadUnreadPosition::ThreadStart));
        match organiser.update_read_state(thread, &old.revision, unread) {
            Err(Error::ReadStateConflict(present)) => assert_eq!(present, new),
            other => panic!("{other:?}"),
        }
    }
}
