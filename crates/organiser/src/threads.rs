//! What is known here of single threads, and what becomes of it when a thread is forked or deleted.

use std::collections::HashMap;

use loomd_protocol::{Thread, ThreadAttachment, ThreadMemoryMode, ThreadReadState, ThreadSection};
use loomd_store::ThreadId;
use rusqlite::{Connection, OptionalExtension, params};

use crate::database::{Organiser, blob};
use crate::error::Result;
use crate::sections::{self, PINNED, pinned};
use crate::{attachments, projects, read_state};

/// What users added to a thread, as clients see it.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    pub section: Option<SectionPlace>,
    pub project_id: Option<String>,
    pub read_state: ThreadReadState,
}

/// The section of a thread, and since when it is there, in Unix seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct SectionPlace {
    pub section: ThreadSection,
    pub entered_at: i64,
}

impl Facts {
    /// Fills in the section and the project of a thread that clients see.
    pub fn show_in(&self, thread: &mut Thread) {
        thread.project_id.clone_from(&self.project_id);
        thread.section = self.section.as_ref().map(|place| place.section.clone());
        thread.section_entered_at = self.section.as_ref().map(|place| place.entered_at);
    }
}

impl Default for Facts {
    fn default() -> Self {
        Self { section: None, project_id: None, read_state: read_state::state(None, 0) }
    }
}

impl Organiser {
    /// What users added to threads.
    pub fn facts(&self, threads: &[ThreadId]) -> Result<HashMap<ThreadId, Facts>> {
        let found = self.read(|db| {
            threads.iter().map(|thread| Ok((*thread, facts(db, *thread)?))).collect::<Result<HashMap<_, _>>>()
        })?;
        // Nothing was ever written.
        if found.is_empty() {
            return Ok(threads.iter().map(|thread| (*thread, Facts::default())).collect());
        }
        Ok(found)
    }

    /// Gives a fork the project and the attachments of the thread it was made from. It is in no section, and read.
    pub fn forked(&self, from: ThreadId, to: ThreadId) -> Result<()> {
        let has_any =
            |db: &Connection| Ok(projects::of_thread(db, from)?.is_some() || !attachments::all(db, from)?.is_empty());
        if !self.read(has_any)? {
            return Ok(());
        }
        self.write(|db| {
            if let Some(project) = projects::of_thread(db, from)? {
                projects::assign(db, to, &project)?;
            }
            attachments::copy(db, from, to)
        })
    }

    /// Drops everything about a thread. Returns the attachments that it had.
    pub fn deleted(&self, thread: ThreadId) -> Result<Vec<ThreadAttachment>> {
        // Without a file there is nothing to drop.
        if !self.read(|_| Ok(true))? {
            return Ok(Vec::new());
        }
        self.write(|db| {
            let attached = attachments::all(db, thread)?;
            for table in ["section_threads", "project_threads", "attachments", "read_states", "memory_modes"] {
                db.prepare_cached(&format!("DELETE FROM {table} WHERE thread = ?1"))?.execute([blob(&thread)])?;
            }
            Ok(attached)
        })
    }

    /// Whether a thread takes part in memory; `None` where that was never set.
    pub fn memory_mode(&self, thread: ThreadId) -> Result<Option<ThreadMemoryMode>> {
        self.read(|db| {
            let mut statement = db.prepare_cached("SELECT enabled FROM memory_modes WHERE thread = ?1")?;
            let enabled = statement.query_row([blob(&thread)], |row| row.get::<_, bool>(0)).optional()?;
            Ok(enabled.map(|enabled| if enabled { ThreadMemoryMode::Enabled } else { ThreadMemoryMode::Disabled }))
        })
    }

    pub fn set_memory_mode(&self, thread: ThreadId, mode: ThreadMemoryMode) -> Result<()> {
        self.write(|db| {
            let sql = "INSERT INTO memory_modes (thread, enabled) VALUES (?1, ?2)
                 ON CONFLICT (thread) DO UPDATE SET enabled = ?2";
            db.prepare_cached(sql)?.execute(params![blob(&thread), mode == ThreadMemoryMode::Enabled])?;
            Ok(())
        })
    }
}

fn facts(db: &Connection, thread: ThreadId) -> Result<Facts> {
    let mut statement = db.prepare_cached("SELECT section, entered_at FROM section_threads WHERE thread = ?1")?;
    let place = statement.query_row([blob(&thread)], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
    let section = match place {
        None => None,
        Some((id, entered_at)) => {
            let section = if id == PINNED { Some(pinned()) } else { sections::find(db, &id)? };
            section.map(|section| SectionPlace { section, entered_at })
        }
    };
    Ok(Facts { section, project_id: projects::of_thread(db, thread)?, read_state: read_state::find(db, thread)? })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{NewAttachment, NewProject};

    #[test]
    fn a_fork_inherits_the_project_and_copies_of_the_attachments() {
        let home = tempfile::tempdir().unwrap();
        let organiser = Organiser::new(home.path());
        let [from, to] = [ThreadId::new(), ThreadId::new()];
        organiser.forked(from, to).unwrap();
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0, "nothing was there to inherit");
        let new = NewProject { key: "k".into(), name: "P".into(), ..NewProject::default() };
        let project = organiser.create_project(new, &[from]).unwrap().project;
        let attached = organiser.attach(NewAttachment {
            thread: from,
            attachment_type: "t".into(),
            identity_key: "k".into(),
            payload: json!({ "a": 1 }),
            replace: false,
        });
        organiser.move_to_section(from, PINNED, None).unwrap();
        organiser.turn_ended(from, "turn").unwrap();
        organiser.forked(from, to).unwrap();
        let facts = organiser.facts(&[to]).unwrap().remove(&to).unwrap();
        assert_eq!((facts.project_id, facts.section, facts.read_state.first_unread), (Some(project.id), None, None));
        let copies = organiser.attachments(to, None, None).unwrap().rows;
        let original = attached.unwrap().attachment;
        assert_eq!((copies.len(), &copies[0].payload), (1, &original.payload));
        assert_ne!(copies[0].id, original.id);
    }

    #[test]
    fn nothing_is_left_of_a_deleted_thread() {
        let home = tempfile::tempdir().unwrap();
        let organiser = Organiser::new(home.path());
        let thread = ThreadId::new();
        assert!(organiser.deleted(thread).unwrap().is_empty());
        organiser.move_to_section(thread, PINNED, None).unwrap();
        organiser.turn_ended(thread, "turn").unwrap();
        organiser.set_memory_mode(thread, ThreadMemoryMode::Disabled).unwrap();
        assert_eq!(organiser.memory_mode(thread).unwrap(), Some(ThreadMemoryMode::Disabled));
        organiser.deleted(thread).unwrap();
        assert_eq!(organiser.facts(&[thread]).unwrap()[&thread], Facts::default());
        assert_eq!(organiser.memory_mode(thread).unwrap(), None);
        assert!(organiser.threads_in_section(PINNED).unwrap().is_empty());
    }
}
