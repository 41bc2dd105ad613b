//! Which model is used if the configuration names none: that of an account or of a key in the environment, or else
//! the built-in rehearsal model, so that a first turn works without any setup.

use std::env;
use std::io;

use anyhow::Result;
use loomd_config::{LoadRequest, load, resolve};
use loomd_protocol::AbsolutePathBuf;

use super::view::View;
use crate::cli::Overrides;
use crate::setup::Setup;

const REHEARSAL_NOTICE: &str = "no model is configured, so the built-in rehearsal model answers. For a real model set OPENAI_API_KEY, or \
name a provider and a model; `loomd models` lists the usable ones.";

const OPENAI: &str = "https://api.openai.com/v1";

/// How the model is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ModelAccess {
    /// As configured, or with the account of the default provider.
    Configured,
    /// With the key in this variable, at this URL.
    Key { variable: &'static str, base_url: String },
    /// Not at all: the rehearsal model answers.
    Rehearsal,
}

/// The setup for a command line, with a provider chosen.
pub fn setup_with_model(mut overrides: Overrides, provider: Option<&str>, cwd: &str) -> Result<(Setup, ModelAccess)> {
    let setup = Setup::new(&overrides)?;
    let reach = if provider.is_some() { ModelAccess::Configured } else { ModelAccess::find(&setup, cwd) };
    if reach == ModelAccess::Configured {
        return Ok((setup, reach));
    }
    overrides.config.extend(reach.overrides());
    Ok((Setup::new(&overrides)?, reach))
}

impl ModelAccess {
    /// Warns that the rehearsal model answers.
    pub fn announce(&self, view: &mut impl View) -> io::Result<()> {
        if *self == Self::Rehearsal { view.warn("rehearsal", REHEARSAL_NOTICE) } else { Ok(()) }
    }

    /// Chooses a provider. An invalid configuration is left for the server to report.
    pub fn find(setup: &Setup, cwd: &str) -> Self {
        let cwd = AbsolutePathBuf::new(cwd);
        let request = LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() };
        let Ok(settings) = load(&request).and_then(|loaded| resolve(&loaded)) else { return Self::Configured };
        let account = setup.sources.home.join("auth.json").exists();
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
            None if base_url.is_none() => Self::Rehearsal,
            _ => Self::Configured,
        }
    }

    /// Configuration overrides, in the format of `-c`.
    fn overrides(&self) -> Vec<String> {
        match self {
            Self::Configured => Vec::new(),
            Self::Key { variable, base_url } => vec![
                r#"model_provider="openai-api""#.to_owned(),
                r#"model_providers.openai-api.name="OpenAI API""#.to_owned(),
                format!("model_providers.openai-api.base_url={base_url:?}"),
                format!("model_providers.openai-api.env_key={variable:?}"),
            ],
            Self::Rehearsal => vec![r#"model_provider="rehearsal""#.to_owned(), r#"model="rehearsal""#.to_owned()],
        }
    }
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
        check(None, None, false, &[], ModelAccess::Rehearsal);
        check(None, None, true, &[], ModelAccess::Configured);
        check(None, None, false, &["OPENAI_API_KEY"], key("OPENAI_API_KEY", OPENAI));
        check(None, None, true, &["OPENAI_API_KEY"], ModelAccess::Configured);
        check(None, None, true, &["CODEX_API_KEY"], key("CODEX_API_KEY", OPENAI));
        check(None, Some("http://x"), false, &["CODEX_API_KEY"], key("CODEX_API_KEY", "http://x"));
        check(None, Some("http://x"), false, &[], ModelAccess::Configured);
        check(Some("openai"), None, false, &[], ModelAccess::Configured);
        check(Some("openai"), None, false, &["OPENAI_API_KEY"], key("OPENAI_API_KEY", OPENAI));
        check(Some("mine"), None, false, &["CODEX_API_KEY", "OPENAI_API_KEY"], ModelAccess::Configured);
    }
}
