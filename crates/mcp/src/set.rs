//! The servers of one thread: those of its configuration, and those that others add.

use std::collections::BTreeMap;

use loomd_config::config_toml::McpServer;
use loomd_protocol::AppsConfig;

use crate::config::ServerConfig;

/// Servers by name, in order.
pub type Entries = BTreeMap<String, SetEntry>;

/// The servers of one thread.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerSet(Entries);

/// One server, with the settings of its tools.
#[derive(Clone, Debug, PartialEq)]
pub struct SetEntry {
    pub config: McpServer,
    /// How it is reached. Usually [`ServerConfig::new`] of `config`.
    pub reached: ServerConfig,
    pub origin: Origin,
}

/// Where a server comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum Origin {
    Configuration,
    /// A plugin, with its id and the name that users see.
    Plugin {
        id: String,
        display_name: String,
    },
    /// The apps of the signed-in account, with their settings.
    Apps(AppsConfig),
}

impl SetEntry {
    /// The plugin that the server belongs to.
    pub fn plugin_id(&self) -> Option<&str> {
        match &self.origin {
            Origin::Plugin { id, .. } => Some(id),
            Origin::Configuration | Origin::Apps(_) => None,
        }
    }
}

impl ServerSet {
    /// The servers of a configuration.
    pub fn new(configured: &BTreeMap<String, McpServer>) -> Self {
        let mut set = Self::default();
        for (name, config) in configured {
            set.add(name, config.clone(), Origin::Configuration);
        }
        set
    }

    /// Adds a server, unless there is one of that name.
    pub fn add(&mut self, name: &str, config: McpServer, origin: Origin) {
        let reached = ServerConfig::new(name, &config);
        self.insert(name, SetEntry { config, reached, origin });
    }

    /// Adds the servers of a plugin. Those of the configuration, and of plugins before it, win.
    pub fn add_plugin(&mut self, id: &str, display_name: &str, servers: &BTreeMap<String, McpServer>) {
        for (name, config) in servers {
            self.add(name, config.clone(), Origin::Plugin { id: id.into(), display_name: display_name.into() });
        }
    }

    /// Adds an entry, unless there is one of that name.
    pub fn insert(&mut self, name: &str, entry: SetEntry) {
        self.0.entry(name.into()).or_insert(entry);
    }

    /// The same servers, which may send forms of any shape or not.
    pub fn with_openai_form(mut self, allowed: bool) -> Self {
        for entry in self.0.values_mut() {
            entry.reached.openai_form = allowed;
        }
        self
    }

    /// Keeps the servers for which `keep` is true.
    pub fn retain(&mut self, mut keep: impl FnMut(&str, &SetEntry) -> bool) {
        self.0.retain(|name, entry| keep(name, entry));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn get(&self, name: &str) -> Option<&SetEntry> {
        self.0.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &SetEntry)> {
        self.0.iter().map(|(name, entry)| (name.as_str(), entry))
    }
}
