//! Which model is used if the configuration names none: that of an account or of a key in the environment. Without
//! either there is none: the built-in rehearsal model answers only where it is named.

use std::env;

use anyhow::{Result, anyhow};
use loomd_config::{LoadRequest, load, resolve};
use loomd_protocol::AbsolutePathBuf;

use super::providers::Providers;
use crate::cli::Overrides;
use crate::setup::Setup;

/// What to do without a model.
const NO_MODEL: &str =
    "no model: config.toml names no provider, there is no key in OPENAI_API_KEY, and you are not signed in

  loomd login                    sign in to OpenAI
  export OPENAI_API_KEY=…        or use a key
  loomd run --provider ID …      or another provider; `loomd models` lists them
  loomd demo                     or see a whole turn without a model";

const OPENAI: &str = "https://api.openai.com/v1";

/// How the model is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelAccess {
    /// As configured, or with the account of the default provider.
    Configured,
    /// With the key in this variable, at this URL.
    Key { variable: &'static str, base_url: String },
    /// Not at all.
    Missing,
}

/// The setup for a new thread. Fails if no provider is usable; `provider` is the one of the command line.
pub fn setup_with_model(overrides: Overrides, provider: Option<&str>, cwd: &str) -> Result<Setup> {
    let setup = Setup::new(&overrides)?;
    if let Some(provider) = provider {
        Providers::new(&setup, cwd).check(provider).map_err(|problem| anyhow!(problem))?;
        return Ok(setup);
    }
    match ModelAccess::find(&setup, cwd) {
        ModelAccess::Missing => Err(anyhow!(NO_MODEL)),
        access => access.apply(setup, overrides),
    }
}

/// The setup for a stored thread, which has a provider of its own. A key in the environment is made usable.
pub fn setup_for_thread(overrides: Overrides, cwd: &str) -> Result<Setup> {
    let setup = Setup::new(&overrides)?;
    ModelAccess::find(&setup, cwd).apply(setup, overrides)
}

impl ModelAccess {
    /// Chooses a provider. An invalid configuration is left for the server to report.
    pub fn find(setup: &Setup, cwd: &str) -> Self {
        let cwd = AbsolutePathBuf::new(cwd);
        let request = LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() };
        let Ok(settings) = load(&request).and_then(|loaded| resolve(&loaded)) else { return Self::Configured };
        let account = has_account(setup);
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let config = settings.config;
        Self::choose(config.model_provider.as_deref(), config.openai_base_url.as_deref(), account, is_set)
    }

    /// `CODEX_API_KEY`, which is set for a single run, comes before the account, and the account before any other
    /// key.
    fn choose(provider: Option<&str>, base_url: Option<&str>, account: bool, is_set: impl Fn(&str) -> bool) -> Self {
        let key = |variable| Self::Key { variable, base_url: base_url.unwrap_or(OPENAI).to_owned() };
        match provider {
            Some(id) if id != "openai" => Self::Configured,
            _ if is_set("CODEX_API_KEY") => key("CODEX_API_KEY"),
            _ if account => Self::Configured,
            _ if is_set("OPENAI_API_KEY") => key("OPENAI_API_KEY"),
            // A server of the user's own may need no credentials.
            _ if base_url.is_some() => Self::Configured,
            _ => Self::Missing,
        }
    }

    /// The setup with the overrides of this access.
    fn apply(&self, setup: Setup, mut overrides: Overrides) -> Result<Setup> {
        let Self::Key { variable, base_url } = self else { return Ok(setup) };
        overrides.config.extend([
            r#"model_provider="openai-api""#.to_owned(),
            r#"model_providers.openai-api.name="OpenAI API""#.to_owned(),
            format!("model_providers.openai-api.base_url={base_url:?}"),
            format!("model_providers.openai-api.env_key={variable:?}"),
        ]);
        Setup::new(&overrides)
    }
}

/// Whether the user is signed in to OpenAI.
pub fn has_account(setup: &Setup) -> bool {
    setup.sources.home.join("auth.json").exists()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provider_choice_prefers_configuration_then_account_then_keys() {
        let check = |provider, base_url, account, keys: &[&str], expected: ModelAccess| {
            let chosen = ModelAccess::choose(provider, base_url, account, |name| keys.contains(&name));
            assert_eq!(chosen, expected, "{provider:?} {base_url:?} {account} {keys:?}");
        };
        let key = |variable, base_url: &str| ModelAccess::Key { variable, base_url: base_url.to_owned() };
        check(None, None, false, &[], ModelAccess::Missing);
        check(None, None, true, &[], ModelAccess::Configured);
        check(None, None, false, &["OPENAI_API_KEY"], key("OPENAI_API_KEY", OPENAI));
        check(None, None, true, &["OPENAI_API_KEY"], ModelAccess::Configured);
        check(None, None, true, &["CODEX_API_KEY"], key("CODEX_API_KEY", OPENAI));
        check(None, Some("http://x"), false, &["CODEX_API_KEY"], key("CODEX_API_KEY", "http://x"));
        check(None, Some("http://x"), false, &[], ModelAccess::Configured);
        check(Some("openai"), None, false, &[], ModelAccess::Missing);
        check(Some("openai"), None, false, &["OPENAI_API_KEY"], key("OPENAI_API_KEY", OPENAI));
        check(Some("rehearsal"), None, false, &[], ModelAccess::Configured);
        check(Some("mine"), None, false, &["CODEX_API_KEY", "OPENAI_API_KEY"], ModelAccess::Configured);
    }
}
