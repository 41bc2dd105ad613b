//! Whether there is a model at all. A newcomer has neither configured one nor logged in; the built-in rehearsal
//! answers then, so that a first turn shows what a turn is.

use std::env;
use std::io::{Write, stderr};

use anyhow::Result;
use loomd_config::{LoadRequest, load, resolve};
use loomd_protocol::AbsolutePathBuf;

use crate::cli::Overrides;
use crate::setup::Setup;

/// The id of the provider that is built in.
pub const REHEARSAL: &str = "rehearsal";

const SAID: &str = "No model is configured, so the built-in rehearsal model answers. For a real one, log in, set \
OPENAI_API_KEY, or name a `model_provider` in config.toml or with --provider.";

/// What a command line gives, with the rehearsal where there is nothing else. Says so on stderr.
pub fn setup_or_rehearse(mut overrides: Overrides, provider: Option<&str>, cwd: &str) -> Result<Setup> {
    let setup = Setup::new(&overrides)?;
    if provider.is_some() || is_configured(&setup, cwd) {
        return Ok(setup);
    }
    _ = writeln!(stderr(), "{SAID}");
    overrides.config.push(format!("model_provider={REHEARSAL:?}"));
    Setup::new(&overrides)
}

/// Whether a provider is named, or the usual one has a key. A configuration that makes no sense is left to the server
/// to complain about.
pub fn is_configured(setup: &Setup, cwd: &str) -> bool {
    let cwd = AbsolutePathBuf::new(cwd);
    let request = LoadRequest { cwd: cwd.as_ref(), ..setup.sources.request() };
    let named = match load(&request).and_then(|loaded| resolve(&loaded)) {
        Ok(settings) => settings.config.model_provider.is_some() || settings.config.openai_base_url.is_some(),
        Err(_) => true,
    };
    let key = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
    named || key("OPENAI_API_KEY") || key("CODEX_API_KEY") || setup.sources.home.join("auth.json").exists()
}
