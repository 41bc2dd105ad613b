//! Plugins: folders of skills, MCP servers and apps that are installed from marketplaces.
//!
//! Where to start: [`Marketplace`] is a file that lists plugins, [`Manifest`] what a plugin says about itself,
//! [`Contents`] what it brings, [`PluginCache`] the installed copies, [`list`] and [`read`] what clients see, [`active`]
//! what threads get. Functions block, and none of them reaches the network.

mod active;
mod cache;
mod contents;
mod copy;
mod error;
mod id;
mod list;
mod manifest;
mod marketplace;
mod read;
mod settings;

pub use active::{ActivePlugin, active, mentioned};
pub use cache::PluginCache;
pub use contents::{Contents, app_summary};
pub use error::PluginError;
pub use id::PluginId;
pub use list::{ListRequest, list};
pub use manifest::Manifest;
pub use marketplace::{CURATED, Marketplace, MarketplacePlugin, curated_folder, curated_version};
pub use read::{check_source, read};
pub use settings::PluginStates;
