//! Configuration: the home directory, the layers it is read from, and what they say together.
//!
//! Where to start: [`load`] reads every layer afresh and decodes the merged whole, [`resolve`] applies the
//! selected profile and checks what only makes sense together, [`read`] is the answer of `config/read`.
//! Nothing is cached, no environment variable is read and no global is kept: what a function needs is
//! passed in.

pub mod config_toml;
pub mod external_agent;
pub mod features;
pub mod permissions;

mod edit;
mod error;
mod file;
mod home;
mod json;
mod layer;
mod load;
mod nested;
mod overrides;
mod paths;
mod place;
mod project;
mod requirements;
mod schema;
mod secret;
mod settings;
mod sources;
mod stack;
mod view;
mod warnings;

pub use config_toml::ConfigToml;
pub use edit::{Edit, WriteError, WriteRequest, import_missing, write};
pub use error::ConfigError;
pub use features::{Enablement, EnablementError, Feature, FeatureSet};
pub use home::{HomeError, find_home, system_file};
pub use layer::Layer;
pub use load::{LoadRequest, Loaded, Start, load, load_or_default};
pub use overrides::{OverrideError, Overrides};
pub use place::Place;
pub use requirements::{
    CloudError, Disallowed, Managed, McpIdentity, Required, RequirementSource, Requirements, SandboxRequirement,
    check_requirements,
};
pub use schema::schema;
pub use secret::Secret;
pub use settings::{Settings, resolve};
pub use sources::{ConfigSources, LiveSources};
pub use stack::Stack;
pub use view::read;
