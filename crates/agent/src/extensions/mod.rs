//! Skills and plugins, as threads and clients see them. [`Extensions`] finds them for a working directory, from the
//! configuration and the disk as they are; [`ThreadExtensions`] are those of a loaded thread; `changes.rs` notifies
//! subscribers when skills change.

mod changes;
mod find;
mod needs;
mod of_thread;

pub(crate) use changes::SkillChanges;
pub use find::Extensions;
pub(crate) use needs::{NeededServer, SkillNeeds, installs_servers, missing_servers, variables};
pub(crate) use of_thread::NamedSkill;
pub use of_thread::ThreadExtensions;
