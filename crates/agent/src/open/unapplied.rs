//! Settings of a request that a thread was opened without: what a client is warned about.

use std::sync::Arc;

use loomd_config::without_effect;
use loomd_protocol::{ConfigWarningNotification, JsonValue, SandboxSetting};

use super::overrides::ThreadOverrides;
use super::resolve::{RAW_EVENTS, mode_of};
use crate::settings::{Profile, Settings};
use crate::working_directory::absolute;

/// The settings that a request to open a thread states.
pub(crate) struct Requested {
    pub overrides: ThreadOverrides,
    /// What the thread runs on if it was loaded before: its settings stay what they are.
    pub loaded: Option<Arc<Profile>>,
}

impl Requested {
    /// Returns the warning about the settings that have no effect; `None` if all have.
    pub fn warning(&self, opened: &Settings) -> Option<ConfigWarningNotification> {
        let unapplied = self.unapplied(opened);
        let keys = if self.loaded.is_some() { Vec::new() } else { without_effect(&self.overrides.config) };
        if unapplied.is_empty() && keys.is_empty() {
            return None;
        }
        let mut sentences = Vec::new();
        if !unapplied.is_empty() {
            let names = unapplied.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
            sentences.push(match self.loaded.is_some() {
                true => format!("{names} (the thread is loaded, and keeps its settings)"),
                false => format!("{names} (not allowed by requirements)"),
            });
        }
        let keys: Vec<_> = keys.iter().map(ToString::to_string).collect();
        if !keys.is_empty() {
            sentences.push(format!("in `config`: {}", keys.join(", ")));
        }
        let summary = format!("Settings of the request that have no effect: {}.", sentences.join("; "));
        Some(ConfigWarningNotification { summary, details: None, path: None, range: None })
    }

    /// The names of the params that the thread does not have as requested.
    fn unapplied(&self, opened: &Settings) -> Vec<&'static str> {
        let requested = &self.overrides;
        fn differs<T: PartialEq>(requested: &Option<T>, opened: &T) -> bool {
            requested.as_ref().is_some_and(|requested| requested != opened)
        }
        let cwd = requested.cwd.as_deref().and_then(|cwd| absolute(cwd).ok());
        let sandbox = match &requested.sandbox {
            None => false,
            Some(SandboxSetting::Policy(policy)) => *policy != opened.sandbox,
            Some(mode) => mode_of(mode) != mode_of(&SandboxSetting::Policy(opened.sandbox.clone())),
        };
        let profile = opened.profile.as_ref().map(|active| active.id.clone());
        // Editors repeat their configuration with every request to resume a thread.
        let config = self.loaded.as_ref().is_some_and(|loaded| {
            let is_other = |(key, value): (&String, &JsonValue)| loaded.thread_config.get(key) != Some(value);
            requested.config.iter().filter(|(key, _)| *key != RAW_EVENTS).any(is_other)
        });
        let loaded = self.loaded.is_some();
        [
            ("model", differs(&requested.model, &opened.model)),
            ("modelProvider", differs(&requested.model_provider, &opened.model_provider)),
            ("serviceTier", differs(&requested.service_tier, &opened.service_tier)),
            ("cwd", cwd.is_some_and(|cwd| cwd.to_string_lossy() != opened.cwd)),
            ("approvalPolicy", differs(&requested.approval_policy, &opened.approval_policy)),
            ("approvalsReviewer", differs(&requested.approvals_reviewer, &opened.approvals_reviewer)),
            ("sandbox", sandbox),
            ("permissions", requested.permissions.is_some() && requested.permissions != profile),
            ("config", config),
            ("baseInstructions", loaded && requested.base_instructions.is_some()),
            ("developerInstructions", loaded && requested.developer_instructions.is_some()),
            ("personality", requested.personality.is_some() && requested.personality != opened.personality),
        ]
        .into_iter()
        .filter_map(|(name, is_unapplied)| is_unapplied.then_some(name))
        .collect()
    }
}
