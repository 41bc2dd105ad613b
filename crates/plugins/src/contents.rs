//! What the folder of a plugin brings: skills, MCP servers and apps.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use loomd_config::config_toml::{McpServer, McpTransport};
use loomd_protocol::{AbsolutePathBuf, AppSummary, JsonObject, JsonValue};

use crate::manifest::Manifest;

const MAX_FILE: u64 = 1 << 20;
/// Servers, and apps, of one plugin.
const MAX_ENTRIES: usize = 256;

/// What a plugin brings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Contents {
    /// Folders that exist.
    pub skill_folders: Vec<PathBuf>,
    pub mcp_servers: BTreeMap<String, McpServer>,
    /// The ids of apps, in the order of the file, each once.
    pub apps: Vec<String>,
}

impl Contents {
    /// Reads the folder of a plugin. What is broken is left out.
    pub fn read(folder: &AbsolutePathBuf, manifest: &Manifest) -> Self {
        let skills = [Some(folder.join("skills")), manifest.skills.clone()];
        let mut skill_folders: Vec<PathBuf> = skills.into_iter().flatten().filter(|folder| folder.is_dir()).collect();
        skill_folders.dedup();
        let file = |named: &Option<PathBuf>, usual: &str| named.clone().unwrap_or_else(|| folder.join(usual));
        Self {
            skill_folders,
            mcp_servers: servers(&file(&manifest.mcp_servers, ".mcp.json"), folder),
            apps: apps(&file(&manifest.apps, ".app.json")),
        }
    }
}

fn servers(file: &Path, folder: &AbsolutePathBuf) -> BTreeMap<String, McpServer> {
    let entries = entries(file, "mcpServers");
    let server = |(name, value): (String, JsonValue)| match server(value, folder) {
        Ok(server) => Some((name, server)),
        Err(error) => {
            tracing::warn!(%error, server = name, file = %file.display(), "invalid MCP server of a plugin");
            None
        }
    };
    entries.into_iter().take(MAX_ENTRIES).filter_map(server).collect()
}

fn server(value: JsonValue, folder: &AbsolutePathBuf) -> Result<McpServer, serde_json::Error> {
    let mut value = value;
    if let Some(object) = value.as_object_mut() {
        // Other programs need it; here the keys tell which kind it is.
        object.remove("type");
    }
    let mut server: McpServer = serde_json::from_value(value)?;
    if let McpTransport::Stdio { cwd: Some(cwd), .. } = &mut server.transport {
        *cwd = folder.join(&*cwd);
    }
    Ok(server)
}

fn apps(file: &Path) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for (_, app) in entries(file, "apps").into_iter().take(MAX_ENTRIES) {
        let id = app.get("id").and_then(JsonValue::as_str).map(str::trim).filter(|id| !id.is_empty());
        if let Some(id) = id.filter(|id| !ids.iter().any(|known| known == id)) {
            ids.push(id.to_owned());
        }
    }
    ids
}

/// The members of an object in a file. A missing file has none.
fn entries(file: &Path, key: &str) -> JsonObject {
    let text = match loomd_regular::read(file, MAX_FILE) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return JsonObject::new(),
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "unreadable file of a plugin");
            return JsonObject::new();
        }
    };
    match serde_json::from_slice::<JsonValue>(&text) {
        Ok(mut value) => match value.get_mut(key).map(JsonValue::take) {
            Some(JsonValue::Object(entries)) => entries,
            _ => JsonObject::new(),
        },
        Err(error) => {
            tracing::warn!(%error, file = %file.display(), "invalid file of a plugin");
            JsonObject::new()
        }
    }
}

/// An app of which no more than its id is known.
pub fn app_summary(id: &str) -> AppSummary {
    let slug: String =
        id.chars().map(|char| if char.is_ascii_alphanumeric() { char.to_ascii_lowercase() } else { '-' }).collect();
    AppSummary {
        id: id.into(),
        name: id.into(),
        description: None,
        install_url: Some(format!("https://chatgpt.com/apps/{}/{id}", slug.trim_matches('-'))),
        needs_auth: true,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn contents(files: &[(&str, &str)]) -> (tempfile::TempDir, Contents) {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let folder = AbsolutePathBuf::new(dir.path()).unwrap();
        let contents = Contents::read(&folder, &Manifest::read(&folder).unwrap());
        (dir, contents)
    }

    const MANIFEST: &str = ".codex-plugin/plugin.json";

    #[test]
    fn the_usual_files_are_read() {
        let (dir, found) = contents(&[
            (MANIFEST, "{}"),
            ("skills/s/SKILL.md", ""),
            (
                ".mcp.json",
                r#"{"mcpServers": {
                "one": {"type": "stdio", "command": "x", "cwd": "sub"},
                "two": {"type": "http", "url": "http://127.0.0.1/"},
                "bad": {"args": []}}}"#,
            ),
            (".app.json", r#"{"apps": {"a": {"id": "connector_x"}, "b": {"id": "connector_x"}, "c": {}}}"#),
        ]);
        assert_eq!(found.skill_folders, [dir.path().join("skills")]);
        assert_eq!(found.mcp_servers.keys().collect::<Vec<_>>(), ["one", "two"]);
        let McpTransport::Stdio { cwd, .. } = &found.mcp_servers["one"].transport else { panic!("not stdio") };
        assert_eq!(cwd.as_deref(), Some(&*dir.path().join("sub")));
        assert_eq!(found.apps, ["connector_x"]);
    }

    #[test]
    fn the_manifest_may_name_other_places() {
        let (dir, found) = contents(&[
            (MANIFEST, r#"{"skills": "./more", "mcpServers": "./m.json", "apps": "./a.json"}"#),
            ("skills/s/SKILL.md", ""),
            ("more/s/SKILL.md", ""),
            (".mcp.json", r#"{"mcpServers": {"one": {"command": "x"}}}"#),
            ("m.json", r#"{"mcpServers": {"other": {"command": "x"}}}"#),
            ("a.json", "[]"),
        ]);
        assert_eq!(found.skill_folders, [dir.path().join("skills"), dir.path().join("more")]);
        assert_eq!(found.mcp_servers.keys().collect::<Vec<_>>(), ["other"]);
        assert!(found.apps.is_empty());
    }

    #[test]
    fn an_app_without_a_directory_is_shown_by_its_id() {
        let app = app_summary("connector_x");
        assert_eq!(app.install_url.as_deref(), Some("https://chatgpt.com/apps/connector-x/connector_x"));
        assert!(app.needs_auth);
    }
}
