//! The tools of an account's apps on disk, for the time until their server has started.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_mcp::Tool;
use loomd_protocol::{JsonObject, JsonValue};
use serde::{Deserialize, Serialize};
use sha1::{Digest, Sha1};

use crate::account::Account;
use crate::connector::Connector;
use crate::names::tool_names;
use crate::server::SERVER;

/// The format that is written. Others are not read.
const VERSION: u32 = 1;

/// The largest file that is read.
const MAX_FILE: u64 = 16 << 20;

/// The file of one account.
pub struct ToolsCache(PathBuf);

#[derive(Serialize, Deserialize)]
struct File {
    schema_version: u32,
    tools: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    server_name: String,
    tool_name: String,
    tool_namespace: String,
    tool: JsonObject,
    connector_id: Option<String>,
    connector_name: Option<String>,
    #[serde(default)]
    plugin_display_names: Vec<String>,
    connector_description: Option<String>,
}

impl ToolsCache {
    pub fn new(home: &Path, account: &Account) -> Self {
        let key = serde_json::to_string(account).unwrap_or_default();
        let name = Sha1::digest(key.as_bytes()).iter().fold(String::new(), |mut hex, byte| {
            _ = write!(hex, "{byte:02x}");
            hex
        });
        Self(home.join("cache").join("codex_apps_tools").join(format!("{name}.json")))
    }

    /// Returns the tools of the file; `None` when there is none that can be used. Blocks.
    pub fn load(&self) -> Option<Vec<Arc<Tool>>> {
        let bytes = loomd_regular::read(&self.0, MAX_FILE).ok()?;
        let file: File = serde_json::from_slice(&bytes).ok().filter(|file: &File| file.schema_version == VERSION)?;
        Some(
            file.tools
                .into_iter()
                .filter_map(|entry| Tool::decode(JsonValue::Object(entry.tool)))
                .map(Arc::new)
                .collect(),
        )
    }

    /// Writes the tools that belong to apps, unless the file has the same. A reader sees the old file or the new one.
    /// Blocks.
    pub fn store(&self, tools: &[Arc<Tool>]) -> io::Result<()> {
        let bytes =
            serde_json::to_vec(&File { schema_version: VERSION, tools: tools.iter().filter_map(entry).collect() })?;
        if loomd_regular::read(&self.0, MAX_FILE).is_ok_and(|known| known == bytes) {
            return Ok(());
        }
        let folder = self.0.parent().unwrap_or(Path::new("."));
        loomd_private::create_dir_all(folder)?;
        let written = self.0.with_extension(format!("{}.tmp", std::process::id()));
        loomd_private::write(&written, bytes)?;
        std::fs::rename(&written, &self.0)
    }
}

fn entry(tool: &Arc<Tool>) -> Option<Entry> {
    let connector = Connector::of(tool)?;
    let names = tool_names(&connector, tool);
    Some(Entry {
        server_name: SERVER.into(),
        tool_name: names.name,
        tool_namespace: names.namespace,
        tool: tool.raw.clone(),
        connector_id: Some(connector.id),
        connector_name: Some(connector.name),
        plugin_display_names: Vec::new(),
        connector_description: connector.description,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn account() -> Account {
        Account {
            account_id: Some("account-1".into()),
            chatgpt_user_id: Some("user-1".into()),
            is_workspace_account: false,
        }
    }

    #[test]
    fn the_file_is_named_after_the_account_and_holds_the_tools_of_apps() {
        let home = tempfile::tempdir().unwrap();
        let cache = ToolsCache::new(home.path(), &account());
        assert!(cache.0.ends_with("cache/codex_apps_tools/f2a14ec67460148fd6d31b2c8c1185f2461de228.json"));
        assert!(cache.load().is_none());
        let tool = |value: JsonValue| Arc::new(Tool::decode(value).unwrap());
        let app = tool(json!({ "name": "beta_x", "_meta": { "connector_id": "beta", "connector_name": "Beta" } }));
        cache.store(&[Arc::clone(&app), tool(json!({ "name": "plain" }))]).unwrap();
        assert_eq!(cache.load(), Some(vec![app]));
        let other = Account { account_id: None, ..account() };
        assert!(ToolsCache::new(home.path(), &other).load().is_none());
    }

    #[test]
    fn a_file_that_is_not_understood_is_no_cache() {
        let home = tempfile::tempdir().unwrap();
        let cache = ToolsCache::new(home.path(), &account());
        std::fs::create_dir_all(cache.0.parent().unwrap()).unwrap();
        for content in ["", "{", r#"{"schema_version":2,"tools":[]}"#, r#"{"schema_version":1,"tools":[{}]}"#] {
            std::fs::write(&cache.0, content).unwrap();
            assert!(cache.load().is_none(), "{content}");
        }
        cache.store(&[]).unwrap();
        assert_eq!(cache.load(), Some(Vec::new()));
    }
}
