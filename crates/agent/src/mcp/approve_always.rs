//! Writes down that a tool needs no approval any more.

use std::path::Path;
use std::sync::Arc;

use loomd_config::{LoadRequest, LoadedConfig};
use loomd_protocol::{AbsolutePathBuf, ConfigLayerSource};

use super::services::McpServices;

/// Sets the approval mode of a tool in the file that defines its server: the project's, else the user's.
pub(crate) async fn approve_always(
    services: &Arc<McpServices>,
    cwd: &str,
    server: &str,
    key: Vec<String>,
) -> Result<(), String> {
    let (services, cwd, server) = (Arc::clone(services), cwd.to_owned(), server.to_owned());
    let written = tokio::task::spawn_blocking(move || {
        let sources = &services.sources;
        let cwd = AbsolutePathBuf::new(cwd);
        let request = LoadRequest { cwd: cwd.as_ref(), ..sources.request() };
        let loaded = loomd_config::load(&request).map_err(|error| error.to_string())?;
        let file = project_file(&loaded, &server).unwrap_or_else(|| request.user_file());
        loomd_config::set_value(&sources.home, &file, &key, &"approve".into()).map_err(|error| error.to_string())
    });
    written.await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The project file that defines a server.
fn project_file(loaded: &LoadedConfig, server: &str) -> Option<AbsolutePathBuf> {
    let defines = |table: &toml::Table| table.get("mcp_servers").is_some_and(|servers| servers.get(server).is_some());
    loaded.stack.enabled().filter(|layer| defines(&layer.table)).find_map(|layer| match &layer.source {
        ConfigLayerSource::Project { dot_codex_folder } => {
            AbsolutePathBuf::new(Path::new(&**dot_codex_folder).join("config.toml"))
        }
        _ => None,
    })
}
