//! The account settings, as configured when the process started.

use std::path::{Path, PathBuf};

use loomd_config::LoadedConfig;
use loomd_config::config_toml::CliCredentialsStore;
use loomd_protocol::ForcedLoginMethod;

use crate::issuer::ISSUER;
use crate::login::PORTS;

#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) home: PathBuf,
    pub(crate) store: CliCredentialsStore,
    pub(crate) forced_method: Option<ForcedLoginMethod>,
    pub(crate) forced_workspace: Option<String>,
    pub(crate) issuer: String,
    /// The local ports of the callback server; the first free one is used.
    pub(crate) ports: [u16; 2],
    /// The base URL of the ChatGPT backend.
    pub(crate) backend: String,
    /// The URL of token refreshes, if it is not the issuer's.
    pub(crate) refresh_url: Option<String>,
    /// The default provider uses the account.
    pub(crate) requires_openai_auth: bool,
}

impl Options {
    pub fn new(home: &Path, loaded: &LoadedConfig, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let settings = loomd_config::resolve(loaded).ok();
        let config = settings.as_ref().map_or(&loaded.config, |settings| &settings.config);
        let workspace = config.forced_chatgpt_workspace_id.as_deref().map(str::trim);
        Self {
            home: home.into(),
            store: config.cli_auth_credentials_store.unwrap_or_default(),
            forced_method: config.forced_login_method,
            forced_workspace: workspace.filter(|id| !id.is_empty()).map(str::to_owned),
            issuer: ISSUER.into(),
            ports: PORTS,
            backend: config.chatgpt_base_url().into(),
            refresh_url: env("CODEX_REFRESH_TOKEN_URL_OVERRIDE").filter(|url| !url.is_empty()),
            requires_openai_auth: settings.as_ref().is_none_or(|settings| settings.provider.requires_openai_auth),
        }
    }
}
