//! Sections: named groups of threads with an order of their own. A thread is in one section at most.

use loomd_protocol::{ThreadSection, ThreadSectionAppearance};
use loomd_store::ThreadId;
use rusqlite::{Connection, OptionalExtension, Row, params};
use uuid::Uuid;

use crate::cursor::{self, Page};
use crate::database::{Organiser, blob, json, now, thread_id};
use crate::error::{Error, Result};

/// The id of the section that always exists.
pub const PINNED: &str = "01984de2-8f74-7c91-a3b2-5c5e937cf318";
/// The most bytes of an icon and of a colour.
const MAX_APPEARANCE: usize = 64;

pub(crate) fn pinned() -> ThreadSection {
    ThreadSection { id: PINNED.into(), name: "Pinned".into(), appearance: None }
}

impl Organiser {
    /// A page of sections: the pinned one, then in the order in which they were created. The cursor is the id of the last
    /// section of a page; an unknown one gives an empty page.
    pub fn sections(&self, after: Option<&str>, limit: Option<u32>) -> Result<Page<ThreadSection>> {
        let limit = cursor::limit(limit);
        let mut all = vec![pinned()];
        all.extend(self.read(|db| {
            let mut statement = db.prepare_cached("SELECT id, name, appearance FROM sections ORDER BY number")?;
            let rows = statement.query_map([], section)?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })?);
        let begin = match after {
            None => 0,
            Some(id) => all.iter().position(|section| section.id == id).map_or(all.len(), |at| at + 1),
        };
        let rows = all.into_iter().skip(begin).take(limit + 1).collect();
        Ok(cursor::page(rows, limit, |section| section.id.clone()))
    }

    pub fn create_section(&self, name: &str, appearance: Option<ThreadSectionAppearance>) -> Result<ThreadSection> {
        let name = section_name(name)?;
        check_appearance(appearance.as_ref())?;
        let section = ThreadSection { id: Uuid::now_v7().to_string(), name, appearance };
        let look = look(section.appearance.as_ref())?;
        self.write(|db| {
            db.prepare_cached("INSERT INTO sections (id, name, appearance) VALUES (?1, ?2, ?3)")?.execute(params![
                section.id,
                section.name,
                look
            ])?;
            Ok(())
        })?;
        Ok(section)
    }

    /// Renames a section. `appearance` is replaced when it is given, and cleared by `Some(None)`.
    pub fn update_section(
        &self,
        id: &str,
        name: &str,
        appearance: Option<Option<ThreadSectionAppearance>>,
    ) -> Result<ThreadSection> {
        if id.is_empty() {
            return Err(Error::invalid("sectionId must not be empty"));
        }
        let name = section_name(name)?;
        check_appearance(appearance.as_ref().and_then(Option::as_ref))?;
        if id == PINNED {
            return Err(Error::invalid("the built-in pinned section cannot be renamed"));
        }
        self.write(|db| {
            let mut section = find(db, id)?.ok_or_else(|| Error::SectionNotFound(id.into()))?;
            section.name = name;
            if let Some(appearance) = appearance {
                section.appearance = appearance;
            }
            db.prepare_cached("UPDATE sections SET name = ?2, appearance = ?3 WHERE id = ?1")?.execute(params![
                id,
                section.name,
                look(section.appearance.as_ref())?
            ])?;
            Ok(section)
        })
    }

    /// Deletes a section. Its threads are in none afterwards.
    pub fn delete_section(&self, id: &str) -> Result<()> {
        if id == PINNED {
            return Err(Error::invalid("the built-in pinned section cannot be deleted"));
        }
        self.write(|db| {
            if db.prepare_cached("DELETE FROM sections WHERE id = ?1")?.execute([id])? == 0 {
                return Err(Error::SectionNotFound(id.into()));
            }
            db.prepare_cached("DELETE FROM section_threads WHERE section = ?1")?.execute([id])?;
            Ok(())
        })
    }

    /// Whether there is a section.
    pub fn has_section(&self, id: &str) -> Result<bool> {
        Ok(id == PINNED || self.read(|db| Ok(find(db, id)?.is_some()))?)
    }

    /// The threads of a section in their order; none for an unknown one.
    pub fn threads_in_section(&self, section: &str) -> Result<Vec<ThreadId>> {
        self.read(|db| in_order(db, section))
    }

    /// Puts a thread into a section, before another one of it or at its end. A thread that is in the section already
    /// keeps the time at which it entered.
    pub fn move_to_section(&self, thread: ThreadId, section: &str, before: Option<ThreadId>) -> Result<()> {
        self.write(|db| {
            if section != PINNED && find(db, section)?.is_none() {
                return Err(Error::SectionNotFound(section.into()));
            }
            let mut order = in_order(db, section)?;
            let was_in = order.contains(&thread);
            order.retain(|other| *other != thread);
            let at = match before {
                None => order.len(),
                Some(before) => order
                    .iter()
                    .position(|other| *other == before)
                    .ok_or_else(|| Error::NotInSection { before, section: section.into() })?,
            };
            order.insert(at, thread);
            if !was_in {
                let sql = "INSERT INTO section_threads (thread, section, position, entered_at) VALUES (?1, ?2, 0, ?3)
                     ON CONFLICT (thread) DO UPDATE SET section = ?2, entered_at = ?3";
                db.prepare_cached(sql)?.execute(params![blob(&thread), section, now()])?;
            }
            let mut place =
                db.prepare_cached("UPDATE section_threads SET position = ?2 WHERE thread = ?1 AND position IS NOT ?2")?;
            for (position, thread) in order.iter().enumerate() {
                place.execute(params![blob(thread), position as i64])?;
            }
            Ok(())
        })
    }

    /// Takes a thread out of its section, if it is in one. Returns whether it was.
    pub fn leave_section(&self, thread: ThreadId) -> Result<bool> {
        if !self.read(|db| is_in_section(db, thread))? {
            return Ok(false);
        }
        self.write(|db| {
            Ok(db.prepare_cached("DELETE FROM section_threads WHERE thread = ?1")?.execute([blob(&thread)])? > 0)
        })
    }
}

fn is_in_section(db: &Connection, thread: ThreadId) -> Result<bool> {
    Ok(db.prepare_cached("SELECT 1 FROM section_threads WHERE thread = ?1")?.exists([blob(&thread)])?)
}

pub(crate) fn find(db: &Connection, id: &str) -> Result<Option<ThreadSection>> {
    let mut statement = db.prepare_cached("SELECT id, name, appearance FROM sections WHERE id = ?1")?;
    Ok(statement.query_row([id], section).optional()?)
}

fn in_order(db: &Connection, section: &str) -> Result<Vec<ThreadId>> {
    let mut statement =
        db.prepare_cached("SELECT thread FROM section_threads WHERE section = ?1 ORDER BY position, thread")?;
    let rows = statement.query_map([section], |row| thread_id(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn section(row: &Row) -> rusqlite::Result<ThreadSection> {
    let appearance = match row.get_ref(2)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(json(row, 2)?),
    };
    Ok(ThreadSection { id: row.get(0)?, name: row.get(1)?, appearance })
}

fn section_name(name: &str) -> Result<String> {
    match name.trim() {
        "" => Err(Error::invalid("section name must not be empty")),
        name => Ok(name.to_owned()),
    }
}

fn check_appearance(appearance: Option<&ThreadSectionAppearance>) -> Result<()> {
    let Some(ThreadSectionAppearance { icon, color }) = appearance else { return Ok(()) };
    for (name, value) in [("icon", icon), ("color", color)] {
        if value.as_ref().is_some_and(|value| value.len() > MAX_APPEARANCE) {
            return Err(Error::invalid(format!("section appearance {name} must not exceed {MAX_APPEARANCE} bytes")));
        }
    }
    Ok(())
}

fn look(appearance: Option<&ThreadSectionAppearance>) -> Result<Option<String>> {
    Ok(appearance.map(serde_json::to_string).transpose()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn organiser() -> (tempfile::TempDir, Organiser) {
        let home = tempfile::tempdir().unwrap();
        let organiser = Organiser::new(home.path());
        (home, organiser)
    }

    #[test]
    fn reading_sections_makes_no_file() {
        let (home, organiser) = organiser();
        assert_eq!(organiser.sections(None, None).unwrap().rows, [pinned()]);
        assert!(!organiser.leave_section(ThreadId::new()).unwrap());
        assert!(organiser.threads_in_section(PINNED).unwrap().is_empty());
        assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 0);
    }

    #[test]
    fn threads_stand_in_a_section_where_they_were_put_also_for_another_process() {
        let (home, organiser) = organiser();
        let [a, b, c] = [ThreadId::new(), ThreadId::new(), ThreadId::new()];
        for thread in [a, b] {
            organiser.move_to_section(thread, PINNED, None).unwrap();
        }
        organiser.move_to_section(c, PINNED, Some(a)).unwrap();
        let other = Organiser::new(home.path());
        assert_eq!(other.threads_in_section(PINNED).unwrap(), [c, a, b]);
        other.move_to_section(a, PINNED, None).unwrap();
        assert_eq!(organiser.threads_in_section(PINNED).unwrap(), [c, b, a]);
        assert!(organiser.leave_section(b).unwrap());
        assert_eq!(other.threads_in_section(PINNED).unwrap(), [c, a]);
    }

    #[test]
    fn a_refused_move_changes_nothing() {
        let (_home, organiser) = organiser();
        let [a, b] = [ThreadId::new(), ThreadId::new()];
        organiser.move_to_section(a, PINNED, None).unwrap();
        let refused = organiser.move_to_section(a, PINNED, Some(b)).unwrap_err();
        assert!(matches!(refused, Error::NotInSection { .. }));
        assert!(matches!(organiser.move_to_section(a, "none", None), Err(Error::SectionNotFound(_))));
        assert_eq!(organiser.threads_in_section(PINNED).unwrap(), [a]);
    }

    #[test]
    fn a_deleted_section_frees_its_threads_and_is_never_found_again() {
        let (_home, organiser) = organiser();
        let section = organiser.create_section(" Work ", None).unwrap();
        assert_eq!(section.name, "Work");
        organiser.move_to_section(ThreadId::new(), &section.id, None).unwrap();
        organiser.delete_section(&section.id).unwrap();
        assert!(organiser.threads_in_section(&section.id).unwrap().is_empty());
        assert!(matches!(organiser.delete_section(&section.id), Err(Error::SectionNotFound(_))));
        assert!(!organiser.has_section(&section.id).unwrap());
    }
}
