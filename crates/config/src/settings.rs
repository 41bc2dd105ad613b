//! The settings that threads run with: the selected profile applied, the files that it names read, and values checked
//! against each other.

use loomd_protocol::{AbsolutePathBuf, ActivePermissionProfile, ConfigWarningNotification, SandboxMode};

use crate::config_toml::ModelProvider;
use crate::permissions::{Permissions, ProfileRules, SelectedProfile};
use crate::{ConfigError, ConfigToml, FeatureSet, LoadedConfig, Requirements, warnings};

/// A valid configuration.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// With the profile applied, so that each value is the effective one.
    pub config: ConfigToml,
    /// The provider that `config.model_provider()` names.
    pub provider: ModelProvider,
    pub features: FeatureSet,
    /// The text of `model_instructions_file`.
    pub model_instructions: Option<String>,
    /// `compact_prompt`, else the text of `experimental_compact_prompt_file`.
    pub compact_prompt: Option<String>,
    /// The permission profile that replaces `config.sandbox_mode`.
    pub profile: Option<ActivePermissionProfile>,
    /// The mode that the profile stands for, if it is built in.
    pub built_in: Option<SandboxMode>,
    /// The rules of the profile, if it is configured.
    pub permissions: Option<Permissions>,
    /// The requirements, for values from other sources; those in `config` meet them.
    pub requirements: Requirements,
    /// Values that were replaced because of requirements, and unknown entries.
    pub warnings: Vec<ConfigWarningNotification>,
}

/// Applies the selected profile and checks the result.
pub fn resolve(loaded: &LoadedConfig) -> Result<Settings, ConfigError> {
    let features = loaded.features()?;
    loaded.requirements.check_pins()?;
    let mut config = loaded.config.clone();
    if let Some(profile) = loaded.profile()? {
        profile.apply(&mut config);
    }
    check_providers(&config)?;
    check_permissions(&config)?;
    let provider = find_provider(&config)?;
    let mut warnings = warnings::enforce(&mut config, &loaded.requirements);
    let (profile, built_in, permissions) = match loaded.permissions(&mut warnings)? {
        Some(SelectedProfile { active, rules: ProfileRules::BuiltIn(mode) }) => (Some(active), Some(mode), None),
        Some(SelectedProfile { active, rules: ProfileRules::Configured(rules) }) => (Some(active), None, Some(rules)),
        None => (None, None, None),
    };
    let model_instructions = read_prompt("model_instructions_file", &config.model_instructions_file)?;
    let compact_file = read_prompt("experimental_compact_prompt_file", &config.experimental_compact_prompt_file)?;
    let compact_prompt = config.compact_prompt.clone().or(compact_file);
    let requirements = loaded.requirements.clone();
    Ok(Settings {
        config,
        provider,
        features,
        model_instructions,
        compact_prompt,
        profile,
        built_in,
        permissions,
        requirements,
        warnings,
    })
}

fn check_providers(config: &ConfigToml) -> Result<(), ConfigError> {
    for (id, provider) in &config.model_providers {
        let problem = if ModelProvider::RESERVED.contains(&id.as_str()) {
            Some("this provider is built in and cannot be defined again".into())
        } else {
            provider.problem()
        };
        if let Some(problem) = problem {
            return Err(ConfigError::Invalid(format!("model_providers.{id}: {problem}")));
        }
    }
    Ok(())
}

fn check_permissions(config: &ConfigToml) -> Result<(), ConfigError> {
    let unused = config.default_permissions.is_none() && config.sandbox_mode.is_none();
    if unused && !config.permissions.is_empty() {
        return Err(ConfigError::Invalid("`permissions` needs `default_permissions`, the profile to use".into()));
    }
    Ok(())
}

fn find_provider(config: &ConfigToml) -> Result<ModelProvider, ConfigError> {
    let id = config.model_provider();
    let mut provider = config
        .model_providers
        .get(id)
        .cloned()
        .or_else(|| ModelProvider::built_in(id))
        .ok_or_else(|| ConfigError::UnknownProvider(id.into()))?;
    if id == "openai" {
        provider.base_url = config.openai_base_url.clone();
    }
    let own = config.loomd.clone().unwrap_or_default();
    (provider.record, provider.scenario) = (own.record, own.scenario);
    Ok(provider)
}

/// The largest prompt file that is read: prompts are sent with every call.
const MAX_PROMPT_BYTES: u64 = 1 << 20;

/// Reads a prompt, trimmed. A blank file is an error.
fn read_prompt(key: &str, path: &Option<AbsolutePathBuf>) -> Result<Option<String>, ConfigError> {
    let Some(path) = path else { return Ok(None) };
    match loomd_regular::read_to_string(path, MAX_PROMPT_BYTES).as_deref().map(str::trim) {
        Err(error) => Err(ConfigError::Invalid(format!("failed to read {key} {}: {error}", path.display()))),
        Ok("") => Err(ConfigError::Invalid(format!("{key} {} is empty", path.display()))),
        Ok(text) => Ok(Some(text.into())),
    }
}
