//! Attachments: records of clients on threads, identified within a thread by their type and key.

use loomd_protocol::{JsonValue, ThreadAttachment};
use loomd_store::ThreadId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use serde_json::json;
use uuid::Uuid;

use crate::cursor::{self, Page};
use crate::database::{Organiser, blob, json, now, thread_id};
use crate::error::{Error, Result};

/// The most bytes of a type and of a key.
const MAX_NAME: usize = 256;
/// The most bytes of a payload, serialised.
const MAX_PAYLOAD: usize = 65536;

/// A record to be attached.
#[derive(Clone, Debug)]
pub struct NewAttachment {
    pub thread: ThreadId,
    pub attachment_type: String,
    pub identity_key: String,
    pub payload: JsonValue,
    /// Whether a record with the same identity is replaced.
    pub replace: bool,
}

/// What adding a record did.
#[derive(Clone, Debug, PartialEq)]
pub struct Added {
    pub attachment: ThreadAttachment,
    /// Whether it was not there before, or was replaced.
    pub created: bool,
    /// The id of the record that was replaced.
    pub replaced: Option<String>,
}

impl NewAttachment {
    /// Checks the sizes of the parts. Returns the payload's text.
    pub fn check(&self) -> Result<String> {
        check_name("attachmentType", &self.attachment_type)?;
        check_name("identityKey", &self.identity_key)?;
        let payload = self.payload.to_string();
        if payload.len() > MAX_PAYLOAD {
            return Err(Error::invalid(format!("attachment payload must not exceed {MAX_PAYLOAD} bytes")));
        }
        Ok(payload)
    }
}

impl Organiser {
    /// Attaches a record; one with the same identity is kept unless it is to be replaced.
    pub fn attach(&self, new: NewAttachment) -> Result<Added> {
        let payload = new.check()?;
        self.write(|db| {
            let existing = find(db, new.thread, &new.attachment_type, &new.identity_key)?;
            let replaced = match existing {
                Some(attachment) if !new.replace => return Ok(Added { attachment, created: false, replaced: None }),
                Some(attachment) => {
                    delete(db, new.thread, &new.attachment_type, &new.identity_key)?;
                    Some(attachment.id)
                }
                None => None,
            };
            let attachment = ThreadAttachment {
                id: Uuid::now_v7().to_string(),
                attachment_type: new.attachment_type,
                identity_key: new.identity_key,
                payload: new.payload,
                created_at: now(),
            };
            insert(db, new.thread, &attachment, &payload)?;
            Ok(Added { attachment, created: true, replaced })
        })
    }

    /// Removes a record. Returns its id, if it was there.
    pub fn detach(&self, thread: ThreadId, attachment_type: &str, identity_key: &str) -> Result<Option<String>> {
        check_name("attachmentType", attachment_type)?;
        check_name("identityKey", identity_key)?;
        if self.read(|db| find(db, thread, attachment_type, identity_key))?.is_none() {
            return Ok(None);
        }
        self.write(|db| {
            let there = find(db, thread, attachment_type, identity_key)?;
            delete(db, thread, attachment_type, identity_key)?;
            Ok(there.map(|attachment| attachment.id))
        })
    }

    /// A page of a thread's records, in the order in which they were added.
    pub fn attachments(
        &self,
        thread: ThreadId,
        after: Option<&str>,
        limit: Option<u32>,
    ) -> Result<Page<ThreadAttachment>> {
        let limit = cursor::limit(limit);
        let query = json!(["attachments", thread.to_string()]);
        let after = after.map(|after| cursor::decode(&query, after)?.as_i64().ok_or_else(cursor::bad)).transpose()?;
        let rows = self.read(|db| {
            let mut statement = db.prepare_cached(&format!(
                "SELECT {COLUMNS}, number FROM attachments WHERE thread = ?1 AND number > ?2 ORDER BY number LIMIT ?3"
            ))?;
            let wanted = params![blob(&thread), after.unwrap_or(0), limit as i64 + 1];
            let rows = statement.query_map(wanted, |row| Ok((attachment(row)?, row.get::<_, i64>(5)?)))?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })?;
        let page = cursor::page(rows, limit, |(_, number)| cursor::encode(&query, json!(number)));
        Ok(Page { rows: page.rows.into_iter().map(|(attachment, _)| attachment).collect(), next: page.next })
    }

    /// The threads that have a record, in the order of their ids, after one of them.
    pub fn attachment_owners(
        &self,
        attachment_type: &str,
        identity_key: &str,
        after: Option<ThreadId>,
    ) -> Result<Vec<ThreadId>> {
        check_name("attachmentType", attachment_type)?;
        check_name("identityKey", identity_key)?;
        self.read(|db| {
            let sql = "SELECT thread FROM attachments WHERE type = ?1 AND key = ?2 AND thread > ?3 ORDER BY thread";
            let mut statement = db.prepare_cached(sql)?;
            let after = after.as_ref().map_or(&[][..], blob);
            let rows = statement.query_map(params![attachment_type, identity_key, after], |row| thread_id(row, 0))?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })
    }
}

/// Copies the records of a thread to another one, with ids of their own.
pub(crate) fn copy(db: &Transaction, from: ThreadId, to: ThreadId) -> Result<()> {
    for attachment in all(db, from)? {
        let payload = attachment.payload.to_string();
        let attachment = ThreadAttachment { id: Uuid::now_v7().to_string(), ..attachment };
        insert(db, to, &attachment, &payload)?;
    }
    Ok(())
}

pub(crate) fn all(db: &Connection, thread: ThreadId) -> Result<Vec<ThreadAttachment>> {
    let mut statement =
        db.prepare_cached(&format!("SELECT {COLUMNS} FROM attachments WHERE thread = ?1 ORDER BY number"))?;
    let rows = statement.query_map([blob(&thread)], attachment)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

const COLUMNS: &str = "id, type, key, payload, created_at";

fn attachment(row: &Row) -> rusqlite::Result<ThreadAttachment> {
    Ok(ThreadAttachment {
        id: row.get(0)?,
        attachment_type: row.get(1)?,
        identity_key: row.get(2)?,
        payload: json(row, 3)?,
        created_at: row.get(4)?,
    })
}

fn find(db: &Connection, thread: ThreadId, kind: &str, key: &str) -> Result<Option<ThreadAttachment>> {
    let sql = format!("SELECT {COLUMNS} FROM attachments WHERE thread = ?1 AND type = ?2 AND key = ?3");
    Ok(db.prepare_cached(&sql)?.query_row(params![blob(&thread), kind, key], attachment).optional()?)
}

fn insert(db: &Connection, thread: ThreadId, attachment: &ThreadAttachment, payload: &str) -> Result<()> {
    let sql = "INSERT INTO attachments (id, thread, type, key, payload, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    db.prepare_cached(sql)?.execute(params![
        attachment.id,
        blob(&thread),
        attachment.attachment_type,
        attachment.identity_key,
        payload,
        attachment.created_at,
    ])?;
    Ok(())
}

fn delete(db: &Connection, thread: ThreadId, kind: &str, key: &str) -> Result<()> {
    let sql = "DELETE FROM attachments WHERE thread = ?1 AND type = ?2 AND key = ?3";
    db.prepare_cached(sql)?.execute(params![blob(&thread), kind, key])?;
    Ok(())
}

fn check_name(field: &str, value: &str) -> Result<()> {
    match value.len() {
        0 => Err(Error::invalid(format!("{field} must not be empty"))),
        1..=MAX_NAME => Ok(()),
        _ => Err(Error::invalid(format!("{field} must not exceed {MAX_NAME} bytes"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(thread: ThreadId, key: &str, payload: JsonValue) -> NewAttachment {
        NewAttachment { thread, attachment_type: "link".into(), identity_key: key.into(), payload, replace: false }
    }

    #[test]
    fn the_first_payload_of_an_identity_is_kept_unless_it_is_to_be_replaced() {
        let home = tempfile::tempdir().unwrap();
        let (organiser, thread) = (Organiser::new(home.path()), ThreadId::new());
        let first = organiser.attach(new(thread, "k", json!(1))).unwrap();
        let again = organiser.attach(new(thread, "k", json!(2))).unwrap();
        assert!(first.created && !again.created);
        assert_eq!(again.attachment, first.attachment);
        let replaced = organiser.attach(NewAttachment { replace: true, ..new(thread, "k", json!(3)) }).unwrap();
        assert_eq!((replaced.created, replaced.replaced), (true, Some(first.attachment.id)));
        assert_eq!(organiser.attachments(thread, None, None).unwrap().rows, [replaced.attachment]);
        assert!(organiser.detach(thread, "link", "k").unwrap().is_some());
        assert_eq!(organiser.detach(thread, "link", "k").unwrap(), None);
    }

    #[test]
    fn pages_of_attachments_go_on_where_the_last_one_ended_whatever_was_removed() {
        let home = tempfile::tempdir().unwrap();
        let (organiser, thread) = (Organiser::new(home.path()), ThreadId::new());
        for key in ["z", "a", "m"] {
            organiser.attach(new(thread, key, json!(null))).unwrap();
        }
        let first = organiser.attachments(thread, None, Some(2)).unwrap();
        assert_eq!(first.rows.iter().map(|row| row.identity_key.as_str()).collect::<Vec<_>>(), ["z", "a"]);
        organiser.detach(thread, "link", "a").unwrap();
        let next = organiser.attachments(thread, first.next.as_deref(), Some(2)).unwrap();
        assert_eq!((next.rows.len(), next.rows[0].identity_key.as_str(), next.next), (1, "m", None));
        assert!(organiser.attachments(ThreadId::new(), first.next.as_deref(), None).is_err());
    }

    #[test]
    fn sizes_are_limited_in_bytes() {
        let thread = ThreadId::new();
        let refused = |new: NewAttachment| new.check().unwrap_err().to_string();
        assert_eq!(refused(new(thread, "", json!(1))), "identityKey must not be empty");
        assert_eq!(refused(new(thread, &"ü".repeat(129), json!(1))), "identityKey must not exceed 256 bytes");
        assert!(new(thread, "k", json!("x".repeat(65534))).check().is_ok());
        assert_eq!(
            refused(new(thread, "k", json!("x".repeat(65535)))),
            "attachment payload must not exceed 65536 bytes"
        );
    }
}
