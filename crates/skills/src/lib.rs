//! Skills: folders with a `SKILL.md`, instructions that a model reads when a task needs them.
//!
//! Where to start: [`find`] returns the skills in a list of [`SkillRoot`]s, [`roots`] the roots of a working directory,
//! [`select`] the skills that user input names, [`Watch`] the changes below roots. Functions that read files block.
//! Nothing is cached: a listing shows the disk as it is.

mod agent_yaml;
mod bundled;
mod find;
mod front_matter;
mod mention;
mod namespace;
mod roots;
mod rules;
mod skill;
mod walk;
mod watch;
pub mod yaml;

pub use bundled::{install_bundled, remove_bundled};
pub use find::{find, read_skill};
pub use front_matter::{FrontMatter, SkillFileError};
pub use mention::{Mentions, select};
pub use namespace::plugin_name;
pub use roots::{RootsRequest, roots};
pub use rules::{SkillRules, SkillSelector};
pub use skill::{Skill, SkillRoot, SkillSet};
pub use watch::{OnChange, Watch, WatchGuard};
