//! `config/*` and `configRequirements/read`

use std::path::Path;

use loomd_protocol::{ConfigReadParams, ConfigReadResponse, ConfigRequirementsReadResponse, RpcError};

use crate::dispatch::{Context, not_available};

/// `config/read`: the user's and the system's configuration and the flags, read afresh.
pub(crate) async fn read(cx: &Context, params: ConfigReadParams) -> Result<ConfigReadResponse, RpcError> {
    if params.cwd.is_some() {
        // Without the project's layers the answer would be wrong.
        return Err(not_available("config/read with cwd"));
    }
    // Read here and now: a read that follows a write must see it, and the files are small.
    loomd_config::load(&cx.app.sources.request())
        .and_then(|loaded| loomd_config::read(&loaded, params.include_layers))
        .map_err(|error| RpcError::internal(error.read_message()))
}

/// `configRequirements/read`: null when no administrator requires anything. Requirements are not
/// understood yet, and where there are some, saying "none" would be wrong.
pub(crate) async fn requirements(_: &Context) -> Result<ConfigRequirementsReadResponse, RpcError> {
    let sources = ["/etc/codex/requirements.toml", "/etc/codex/managed_config.toml"];
    if sources.iter().any(|file| Path::new(file).exists()) {
        return Err(not_available("configRequirements/read"));
    }
    Ok(ConfigRequirementsReadResponse { requirements: None })
}
