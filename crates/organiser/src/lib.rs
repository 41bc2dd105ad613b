//! What users add to threads and no rollout holds: sections and the order of threads in them, projects, attachments, what
//! has been read, and memory modes.
//!
//! [`Organiser`] is the only owner of this state. It is kept in one database in the home, `loomd/organiser.sqlite`, which
//! several processes may use at once: every change is one transaction. Unlike the index of threads it is the only copy,
//! so a damaged file is reported and never replaced. Functions block; [`Organiser::run`] calls them from a task.

mod attachments;
mod cursor;
mod database;
mod error;
mod projects;
mod read_state;
mod sections;
mod threads;

pub use attachments::{Added, NewAttachment};
pub use cursor::Page;
pub use database::Organiser;
pub use error::{Error, Result};
pub use projects::{Created, NewProject, Project, ProjectChange};
pub use sections::PINNED;
pub use threads::{Facts, SectionPlace};
