//! [`Providers`]: whether a provider can be used, and what the command line says about provider and model.

use std::collections::BTreeMap;
use std::env;

use loomd_config::config_toml::ModelProvider;
use loomd_config::{LoadRequest, load};
use loomd_protocol::AbsolutePathBuf;

use super::model_access::has_account;
use crate::setup::Setup;
use crate::suggest::did_you_mean;

/// The providers of a configuration.
pub struct Providers {
    configured: BTreeMap<String, ModelProvider>,
    /// Whether calls of the provider `openai` have credentials, or may need none.
    openai: bool,
}

/// The model and the provider that flags name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Named {
    pub model: Option<String>,
    pub provider: Option<String>,
}

impl Providers {
    /// An invalid configuration has no providers of its own; the server reports it.
    pub fn new(setup: &Setup, cwd: &str) -> Self {
        let cwd = AbsolutePathBuf::new(cwd);
        let request = LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() };
        let config = load(&request).map(|loaded| loaded.config).unwrap_or_default();
        let openai = has_account(setup) || config.openai_base_url.is_some();
        Self { configured: config.model_providers, openai }
    }

    /// Returns why a provider cannot be used, and what to do.
    pub fn check(&self, id: &str) -> Result<(), String> {
        let built_in = || ModelProvider::built_in(id);
        let Some(provider) = self.configured.get(id).cloned().or_else(built_in) else {
            let mut known: Vec<&str> = ModelProvider::built_in_ids().collect();
            known.extend(self.configured.keys().map(String::as_str));
            let near = did_you_mean(id, known);
            let end = if near.is_empty() { ";" } else { "" };
            return Err(format!("unknown provider `{id}`{near}{end} `loomd models` lists the usable ones"));
        };
        match &provider.env_key {
            Some(key) if env::var_os(key).is_none_or(|value| value.is_empty()) => {
                Err(format!("the provider `{id}` needs a key in {key}: set it in the environment"))
            }
            None if id == "openai" && !self.openai => Err(
                "not signed in, which the provider `openai` needs: run `loomd login`, or set OPENAI_API_KEY and use \
                 `--provider openai-api`"
                    .to_owned(),
            ),
            _ => Ok(()),
        }
    }
}

impl Named {
    /// What `-m`, `-c` and `--profile` name.
    pub fn new(setup: &Setup) -> Self {
        let flags = setup.sources.flags.table();
        let profile = flags.get("profile").and_then(|_| setup.start.loaded.profile().ok().flatten());
        let flag = |key: &str| flags.get(key).and_then(|value| value.as_str()).map(str::to_owned);
        Self {
            model: flag("model").or_else(|| profile.and_then(|profile| profile.model.clone())),
            provider: flag("model_provider").or_else(|| profile.and_then(|profile| profile.model_provider.clone())),
        }
    }
}
