//! Warnings about a valid configuration that may not have the intended effect.

use loomd_protocol::{ConfigLayerSource, ConfigWarningNotification};

use crate::{ConfigToml, LayerStack, Requirements};

/// Lists the disabled project layers in one warning.
pub(crate) fn disabled_projects(stack: &LayerStack) -> Option<ConfigWarningNotification> {
    let mut text = String::from("The following project folders have configuration that is not used:");
    let mut any = false;
    for layer in stack.layers() {
        if let (ConfigLayerSource::Project { dot_codex_folder }, Some(reason)) = (&layer.source, &layer.disabled_reason)
        {
            any = true;
            text.push_str(&format!("\n    {}\n        {reason}", dot_codex_folder.display()));
        }
    }
    any.then(|| warning(text))
}

/// Replaces disallowed values, with a warning for each.
pub(crate) fn enforce(config: &mut ConfigToml, requirements: &Requirements) -> Vec<ConfigWarningNotification> {
    let mut warnings = Vec::new();
    let mut warn = |field: &str, required: String, why: String| {
        warnings.push(warning(format!(
            "Configured value for `{field}` is disallowed by requirements; falling back to required value {required}. \
             Details: {why}"
        )));
    };
    if let Some(policy) = &config.approval_policy
        && let Err(why) = requirements.check_approval_policy(policy)
    {
        let required = requirements.approval_policy(policy.clone());
        warn("approval_policy", format!("{required:?}"), why.to_string());
        config.approval_policy = Some(required);
    }
    if let Some(mode) = config.sandbox_mode
        && let Err(why) = requirements.check_sandbox_mode(mode)
    {
        let required = requirements.sandbox_mode(mode);
        warn("sandbox_mode", format!("{required:?}"), why.to_string());
        config.sandbox_mode = Some(required);
    }
    if let Some(mode) = config.web_search {
        let required = requirements.web_search_mode(mode);
        if required != mode {
            warn("web_search", format!("{required:?}"), format!("`{mode:?}` is not allowed"));
            config.web_search = Some(required);
        }
    }
    warnings
}

fn warning(summary: String) -> ConfigWarningNotification {
    ConfigWarningNotification { summary, details: None, path: None, range: None }
}
