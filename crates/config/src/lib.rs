//! Configuration: the home directory, the layers, and the merged result.
//!
//! Where to start: [`load`] reads all layers and decodes the merged whole, [`resolve`] applies the selected profile and
//! checks values against each other, [`read`] is the result of `config/read`. Nothing is cached, no environment
//! variable is read and there is no global state: functions get what they need as arguments.

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
mod location;
mod nested;
mod overrides;
mod paths;
mod project;
mod requirements;
mod schema;
mod secret;
mod settings;
mod sources;
mod span;
mod stack;
mod view;
mod warnings;
mod without_effect;

pub use config_toml::ConfigToml;
pub use edit::{
    Edit, SkillRuleTarget, WriteError, WriteRequest, import_missing, parse_key_path, set_value, write, write_skill_rule,
};
pub use error::ConfigError;
pub use features::{Enablement, EnablementError, Feature, FeatureSet};
pub use home::{HomeError, find_home, system_file};
pub use layer::Layer;
pub use load::{LoadRequest, LoadedConfig, StartConfig, load, load_or_default};
pub use location::SourceLocation;
pub use overrides::{OverrideError, Overrides};
pub use requirements::{
    CloudError, DisallowedValue, ManagedRequirements, McpIdentity, Requirement, RequirementSource, Requirements,
    SandboxRequirement, check_requirements,
};
pub use schema::schema;
pub use secret::Secret;
pub use settings::{Settings, resolve};
pub use sources::{ConfigSources, LiveSources};
pub use stack::LayerStack;
pub use view::read;
pub use without_effect::{NoEffect, WithoutEffect, without_effect};
