//! Checks of the configuration: files, trust, provider, account, proxies.

use std::env;
use std::path::Path;

use loomd_config::config_toml::TrustLevel;
use loomd_config::{LoadRequest, Settings, load, resolve};
use loomd_protocol::AbsolutePathBuf;

use super::Finding::{self, Fail, Pass, Warn};
use crate::config;
use crate::run::ModelAccess;
use crate::setup::Setup;

/// Environment variables with a proxy for model calls.
const PROXIES: [&str; 3] = ["HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"];

pub fn findings(setup: &Setup, cwd: &str) -> Vec<Finding> {
    let home = &setup.sources.home;
    let mut findings = vec![Pass(format!("loomd {}", env!("CARGO_PKG_VERSION"))), writable(home)];
    let absolute = AbsolutePathBuf::new(cwd);
    let request = LoadRequest { cwd: absolute.as_ref(), ..setup.sources.request() };
    match load(&request).and_then(|loaded| resolve(&loaded).map(|settings| (loaded, settings))) {
        Err(error) => findings.push(Fail(error.to_string())),
        Ok((loaded, settings)) => {
            findings.push(file(&home.join("config.toml")));
            findings.extend(settings.warnings.iter().map(|warning| Warn(warning.summary.clone())));
            findings.extend(config::unknown_keys(&loaded).unwrap_or_default().into_iter().map(Warn));
            findings.push(match loaded.trust {
                Some(TrustLevel::Trusted) => Pass(format!("{cwd} is trusted")),
                Some(TrustLevel::Untrusted) => Warn(format!("{cwd} is not trusted; `loomd trust` trusts it")),
                None => Pass(format!(
                    "{cwd} has no trust level, so its own configuration is ignored; `loomd trust` trusts it"
                )),
            });
            findings.extend(defaults(&settings, loaded.trust));
            let provider = settings.config.model_provider();
            let key = settings.provider.env_key.as_deref();
            findings.push(match (key, ModelAccess::find(setup, cwd)) {
                (Some(key), _) if !is_set(key) => Fail(format!("provider {provider} needs {key} in the environment")),
                (Some(key), _) => Pass(format!("provider {provider}, with the key in {key}")),
                (None, ModelAccess::Configured) => Pass(format!("provider {provider}")),
                (None, ModelAccess::Key { variable, base_url }) => {
                    Pass(format!("{base_url}, with the key in {variable}"))
                }
                (None, ModelAccess::Missing) => Fail(
                    "no model: config.toml names no provider, OPENAI_API_KEY is not set, and you are not signed in; \
                     run `loomd login`, or see `loomd models`"
                        .to_owned(),
                ),
            });
        }
    }
    findings.push(if home.join("auth.json").exists() {
        Pass("signed in to an OpenAI account (auth.json)".to_owned())
    } else {
        Pass("not signed in to an OpenAI account, which only the OpenAI provider needs".to_owned())
    });
    // Only the names: values may hold a password.
    let proxies = PROXIES.into_iter().filter(|name| is_set(name) || is_set(&name.to_lowercase()));
    findings.extend(proxies.map(|name| Warn(format!("calls go through the proxy in {name}"))));
    findings
}

/// The sandbox and the approvals of a turn without flags, and where they come from.
fn defaults(settings: &Settings, trust: Option<TrustLevel>) -> [Finding; 2] {
    let config = &settings.config;
    let sandbox = match (&settings.permissions, config.sandbox_mode, trust) {
        (Some(_), ..) => {
            let profile = config.default_permissions.as_deref().unwrap_or_default();
            format!("sandbox: permission profile `{profile}`")
        }
        (None, Some(mode), _) => format!("sandbox: {} (config.toml)", word(&mode)),
        (None, None, Some(_)) => "sandbox: workspace-write, the default of a folder with a trust level".to_owned(),
        (None, None, None) => "sandbox: read-only, the default of a folder without a trust level".to_owned(),
    };
    let approvals = match (&config.approval_policy, trust) {
        (Some(policy), _) => format!("approvals: {} (config.toml)", word(policy)),
        (None, Some(TrustLevel::Untrusted)) => "approvals: untrusted, the default of an untrusted folder".to_owned(),
        (None, _) => "approvals: on-request, the default".to_owned(),
    };
    [Pass(sandbox), Pass(approvals)]
}

/// A value as config.toml spells it.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(other) => other.to_string(),
        Err(_) => String::new(),
    }
}

fn file(path: &Path) -> Finding {
    let there = if path.exists() { "" } else { " does not exist; defaults are used" };
    Pass(format!("{}{there}", path.display()))
}

fn writable(home: &Path) -> Finding {
    match tempfile::Builder::new().prefix(".loomd-doctor-").tempfile_in(home) {
        Ok(_) => Pass(format!("home {}", home.display())),
        Err(error) => Fail(format!("home {} is not writable: {error}", home.display())),
    }
}

fn is_set(name: &str) -> bool {
    env::var_os(name).is_some_and(|value| !value.is_empty())
}
