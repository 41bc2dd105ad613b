//! Projects: named groups of threads, with folders and an order. A thread is in one project at most.

use std::collections::{BTreeMap, HashSet};

use loomd_protocol::{AbsolutePathBuf, ProjectRoot};
use loomd_store::ThreadId;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};
use uuid::Uuid;

use crate::database::{Organiser, blob, json, now, thread_id};
use crate::error::{Error, Result};

/// The most bytes of an idempotency key.
const MAX_KEY: usize = 512;

/// A stored project. When it was last used depends on its threads, which are not stored here.
#[derive(Clone, Debug, PartialEq)]
pub struct Project {
    pub id: String,
    pub name: String,
    pub roots: Vec<ProjectRoot>,
    pub metadata: BTreeMap<String, String>,
    pub position: i64,
    pub created_at: i64,
    pub updated_at: i64,
}

/// A project to be created.
#[derive(Clone, Debug, Default)]
pub struct NewProject {
    /// Used once, for ever: another call with it creates nothing.
    pub key: String,
    pub name: String,
    pub roots: Vec<ProjectRoot>,
    pub metadata: BTreeMap<String, String>,
}

/// What creating a project did.
#[derive(Clone, Debug, PartialEq)]
pub struct Created {
    pub project: Project,
    /// The key was used before: nothing was created or assigned.
    pub replayed: bool,
    /// The threads whose project changed.
    pub assigned: Vec<ThreadId>,
}

/// What a change replaces; `None` keeps.
#[derive(Clone, Debug, Default)]
pub struct ProjectChange {
    pub name: Option<String>,
    pub roots: Option<Vec<ProjectRoot>>,
    pub metadata: Option<BTreeMap<String, String>>,
}

impl Organiser {
    /// Creates a project at the end of the order and assigns threads to it. With a key that was used before, answers
    /// with the project that it made, as it is now.
    pub fn create_project(&self, new: NewProject, threads: &[ThreadId]) -> Result<Created> {
        let NewProject { key, name, roots, metadata } = new;
        match key.len() {
            0 => return Err(Error::invalid("idempotencyKey must not be empty")),
            1..=MAX_KEY => {}
            _ => return Err(Error::invalid(format!("idempotencyKey must be at most {MAX_KEY} bytes"))),
        }
        let name = project_name(&name)?;
        check_roots(&roots)?;
        self.write(|db| {
            let mut statement = db.prepare_cached("SELECT project FROM project_keys WHERE key = ?1")?;
            if let Some(id) = statement.query_row([&key], |row| row.get::<_, String>(0)).optional()? {
                let project = find(db, &id)?.ok_or(Error::KeyOfDeletedProject(key))?;
                return Ok(Created { project, replayed: true, assigned: Vec::new() });
            }
            let (id, at) = (Uuid::now_v7().to_string(), now());
            let position: i64 =
                db.query_row("SELECT coalesce(max(position) + 1, 0) FROM projects", [], |row| row.get(0))?;
            let project = Project { id, name, roots, metadata, position, created_at: at, updated_at: at };
            db.prepare_cached(
                "INSERT INTO projects (id, position, name, roots, metadata, created_at, updated_at)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?6)",
            )?
            .execute(params![
                project.id,
                position,
                project.name,
                serde_json::to_string(&project.roots)?,
                serde_json::to_string(&project.metadata)?,
                at,
            ])?;
            db.prepare_cached("INSERT INTO project_keys (key, project) VALUES (?1, ?2)")?
                .execute([&key, &project.id])?;
            let mut assigned = Vec::new();
            for thread in threads {
                if assign(db, *thread, &project.id)? {
                    assigned.push(*thread);
                }
            }
            Ok(Created { project, replayed: false, assigned })
        })
    }

    /// All projects in their order.
    pub fn projects(&self) -> Result<Vec<Project>> {
        self.read(|db| {
            let sql = format!("SELECT {COLUMNS} FROM projects ORDER BY position, id");
            let mut statement = db.prepare_cached(&sql)?;
            let rows = statement.query_map([], project)?;
            Ok(rows.collect::<rusqlite::Result<_>>()?)
        })
    }

    pub fn project(&self, id: &str) -> Result<Project> {
        self.read(|db| find(db, id))?.ok_or_else(|| Error::ProjectNotFound(id.into()))
    }

    /// The threads of a project.
    pub fn project_threads(&self, id: &str) -> Result<Vec<ThreadId>> {
        self.read(|db| threads_of(db, id))
    }

    /// Replaces parts of a project. Returns whether anything changed.
    pub fn update_project(&self, id: &str, change: ProjectChange) -> Result<(Project, bool)> {
        let name = change.name.as_deref().map(project_name).transpose()?;
        if let Some(roots) = &change.roots {
            check_roots(roots)?;
        }
        let old = self.project(id)?;
        if name.is_none() && change.roots.is_none() && change.metadata.is_none() {
            return Ok((old, false));
        }
        self.write(|db| {
            let old = find(db, id)?.ok_or_else(|| Error::ProjectNotFound(id.into()))?;
            let new = Project {
                name: name.unwrap_or_else(|| old.name.clone()),
                roots: change.roots.unwrap_or_else(|| old.roots.clone()),
                metadata: change.metadata.unwrap_or_else(|| old.metadata.clone()),
                updated_at: now(),
                ..old.clone()
            };
            db.prepare_cached(
                "UPDATE projects SET name = ?2, roots = ?3, metadata = ?4, updated_at = ?5 WHERE id = ?1",
            )?
            .execute(params![
                id,
                new.name,
                serde_json::to_string(&new.roots)?,
                serde_json::to_string(&new.metadata)?,
                new.updated_at
            ])?;
            Ok((new, true))
        })
    }

    /// Moves a project before another one, or to the end. Positions count from 0 afterwards.
    pub fn move_project(&self, id: &str, before: Option<&str>) -> Result<()> {
        self.project(id)?;
        if before == Some(id) {
            return Err(Error::invalid(format!("project {id} cannot be moved before itself")));
        }
        self.write(|db| {
            let mut statement = db.prepare_cached("SELECT id FROM projects ORDER BY position, id")?;
            let rows = statement.query_map([], |row| row.get(0))?;
            let mut order: Vec<String> = rows.collect::<rusqlite::Result<_>>()?;
            if !order.iter().any(|other| other == id) {
                return Err(Error::ProjectNotFound(id.into()));
            }
            order.retain(|other| other != id);
            let at = match before {
                None => order.len(),
                Some(before) => order
                    .iter()
                    .position(|other| other == before)
                    .ok_or_else(|| Error::BeforeProjectNotFound(before.into()))?,
            };
            order.insert(at, id.to_owned());
            let mut place = db.prepare_cached("UPDATE projects SET position = ?2 WHERE id = ?1 AND position <> ?2")?;
            for (position, id) in order.iter().enumerate() {
                place.execute(params![id, position as i64])?;
            }
            Ok(())
        })
    }

    /// Deletes a project. Returns the threads that were in it; they are in none afterwards.
    pub fn delete_project(&self, id: &str) -> Result<Vec<ThreadId>> {
        self.project(id)?;
        self.write(|db| {
            if db.prepare_cached("DELETE FROM projects WHERE id = ?1")?.execute([id])? == 0 {
                return Err(Error::ProjectNotFound(id.into()));
            }
            let threads = threads_of(db, id)?;
            db.prepare_cached("DELETE FROM project_threads WHERE project = ?1")?.execute([id])?;
            Ok(threads)
        })
    }

    /// Puts a thread into a project, or into none. Returns whether that changed anything.
    pub fn assign_project(&self, thread: ThreadId, project: Option<&str>) -> Result<bool> {
        if let Some(project) = project {
            self.project(project)?;
        }
        self.write(|db| match project {
            Some(project) => {
                find(db, project)?.ok_or_else(|| Error::ProjectNotFound(project.into()))?;
                assign(db, thread, project)
            }
            None => {
                Ok(db.prepare_cached("DELETE FROM project_threads WHERE thread = ?1")?.execute([blob(&thread)])? > 0)
            }
        })
    }
}

const COLUMNS: &str = "id, name, roots, metadata, position, created_at, updated_at";

fn project(row: &Row) -> rusqlite::Result<Project> {
    Ok(Project {
        id: row.get(0)?,
        name: row.get(1)?,
        roots: json(row, 2)?,
        metadata: json(row, 3)?,
        position: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
    })
}

fn find(db: &Connection, id: &str) -> Result<Option<Project>> {
    let mut statement = db.prepare_cached(&format!("SELECT {COLUMNS} FROM projects WHERE id = ?1"))?;
    Ok(statement.query_row([id], project).optional()?)
}

fn threads_of(db: &Connection, id: &str) -> Result<Vec<ThreadId>> {
    let mut statement = db.prepare_cached("SELECT thread FROM project_threads WHERE project = ?1 ORDER BY thread")?;
    let rows = statement.query_map([id], |row| thread_id(row, 0))?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

pub(crate) fn of_thread(db: &Connection, thread: ThreadId) -> Result<Option<String>> {
    let mut statement = db.prepare_cached("SELECT project FROM project_threads WHERE thread = ?1")?;
    Ok(statement.query_row([blob(&thread)], |row| row.get(0)).optional()?)
}

/// Returns whether the thread was in another project, or in none.
pub(crate) fn assign(db: &Transaction, thread: ThreadId, project: &str) -> Result<bool> {
    if of_thread(db, thread)?.as_deref() == Some(project) {
        return Ok(false);
    }
    let sql = "INSERT INTO project_threads (thread, project) VALUES (?1, ?2)
         ON CONFLICT (thread) DO UPDATE SET project = ?2";
    db.prepare_cached(sql)?.execute(params![blob(&thread), project])?;
    Ok(true)
}

fn project_name(name: &str) -> Result<String> {
    match name.trim() {
        "" => Err(Error::invalid("project name must not be empty")),
        name => Ok(name.to_owned()),
    }
}

fn check_roots(roots: &[ProjectRoot]) -> Result<()> {
    let mut seen: HashSet<&AbsolutePathBuf> = HashSet::new();
    match roots.iter().find(|root| !seen.insert(&root.path)) {
        Some(twice) => Err(Error::invalid(format!("duplicate project root: {}", twice.path.display()))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(key: &str, name: &str) -> NewProject {
        NewProject { key: key.into(), name: name.into(), ..NewProject::default() }
    }

    fn names(organiser: &Organiser) -> Vec<String> {
        organiser.projects().unwrap().into_iter().map(|project| project.name).collect()
    }

    #[test]
    fn a_key_creates_one_project_for_ever() {
        let home = tempfile::tempdir().unwrap();
        let organiser = Organiser::new(home.path());
        let first = organiser.create_project(new("k", " One "), &[]).unwrap();
        organiser
            .update_project(&first.project.id, ProjectChange { name: Some("Two".into()), ..Default::default() })
            .unwrap();
        let again = Organiser::new(home.path()).create_project(new("k", "Three"), &[ThreadId::new()]).unwrap();
        assert_eq!((again.replayed, again.project.name.as_str(), again.assigned.len()), (true, "Two", 0));
        organiser.delete_project(&first.project.id).unwrap();
        assert!(matches!(organiser.create_project(new("k", "x"), &[]), Err(Error::KeyOfDeletedProject(_))));
    }

    #[test]
    fn moved_projects_are_numbered_from_zero() {
        let home = tempfile::tempdir().unwrap();
        let organiser = Organiser::new(home.path());
        let ids: Vec<String> = ["a", "b", "c"]
            .iter()
            .map(|name| organiser.create_project(new(name, name), &[]).unwrap().project.id)
            .collect();
        organiser.move_project(&ids[2], Some(&ids[0])).unwrap();
        assert_eq!(names(&organiser), ["c", "a", "b"]);
        organiser.move_project(&ids[2], None).unwrap();
        assert_eq!(names(&organiser), ["a", "b", "c"]);
        organiser.delete_project(&ids[1]).unwrap();
        organiser.create_project(new("d", "d"), &[]).unwrap();
        assert_eq!(names(&organiser), ["a", "c", "d"]);
        assert!(organiser.move_project(&ids[0], Some(&ids[0])).is_err());
        assert!(matches!(organiser.move_project(&ids[0], Some("x")), Err(Error::BeforeProjectNotFound(_))));
    }

    #[test]
    fn a_deleted_project_gives_back_its_threads() {
        let home = tempfile::tempdir().unwrap();
        let organiser = Organiser::new(home.path());
        let [a, b] = [ThreadId::new(), ThreadId::new()];
        let one = organiser.create_project(new("one", "one"), &[a, b]).unwrap();
        let two = organiser.create_project(new("two", "two"), &[a]).unwrap();
        assert_eq!((one.assigned.len(), two.assigned), (2, vec![a]));
        assert!(!organiser.assign_project(a, Some(&two.project.id)).unwrap());
        assert_eq!(organiser.delete_project(&two.project.id).unwrap(), [a]);
        assert_eq!(organiser.project_threads(&one.project.id).unwrap(), [b]);
        assert!(organiser.assign_project(b, None).unwrap());
        assert!(matches!(organiser.assign_project(b, Some("gone")), Err(Error::ProjectNotFound(_))));
    }
}
