//! The prefix of skills that belong to a plugin.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The manifest of a plugin, relative to its folder.
const MANIFEST: &str = ".codex-plugin/plugin.json";
const MAX_MANIFEST: u64 = 1 << 20;

/// The plugins of folders, each looked up once.
#[derive(Default)]
pub(crate) struct Namespaces {
    known: HashMap<PathBuf, Option<String>>,
}

impl Namespaces {
    /// Returns the name of the plugin that a folder lies in.
    pub fn of(&mut self, folder: &Path) -> Option<String> {
        let mut above = Vec::new();
        let mut found = None;
        for ancestor in folder.ancestors() {
            if let Some(known) = self.known.get(ancestor) {
                found = known.clone();
                break;
            }
            above.push(ancestor);
            found = plugin_name(ancestor);
            if found.is_some() {
                break;
            }
        }
        for ancestor in above {
            self.known.insert(ancestor.to_owned(), found.clone());
        }
        found
    }
}

/// The folders of installed plugins are `<marketplace>/<plugin>/<version>` below this.
const INSTALLED: &str = "plugins/cache";

/// Returns the name of the plugin whose folder this is: that of its manifest, else of the folder. `None` without a
/// manifest that is a JSON object.
pub fn plugin_name(folder: &Path) -> Option<String> {
    let text = loomd_regular::read(&folder.join(MANIFEST), MAX_MANIFEST).ok()?;
    let manifest: Value = serde_json::from_slice(&text).ok()?;
    let name = manifest.as_object()?.get("name").and_then(Value::as_str).unwrap_or_default().trim();
    if !name.is_empty() {
        return Some(name.to_owned());
    }
    let is_installed = folder.ancestors().nth(3).is_some_and(|cache| cache.ends_with(INSTALLED));
    let named = if is_installed { folder.parent()? } else { folder };
    Some(named.file_name()?.to_str()?.to_owned())
}
