//! What the sections of the context are made from.

use std::path::Path;

use jiff::Zoned;
use loomd_config::Feature;
use loomd_model::ModelInfo;
use loomd_protocol::{NetworkDomainPermission, Personality, ReasoningSummary};
use loomd_store::rollout::TurnContext;
use serde_json::json;

use crate::prompts::{self, ManagedNetwork};
use crate::settings::{Profile, Settings, truncation};

/// The surroundings of a turn, as the model is sent them.
pub(crate) struct PromptContext<'a> {
    pub settings: &'a Settings,
    pub profile: &'a Profile,
    pub model: &'a ModelInfo,
    pub turn_id: &'a str,
    /// The name of the user's shell.
    pub shell: &'a str,
    pub home: &'a Path,
    /// Open child agents: id and nickname.
    pub subagents: &'a [(String, String)],
    /// The thread has apps.
    pub has_apps: bool,
    /// A realtime session is open.
    pub realtime_active: bool,
    pub now: Zoned,
}

impl PromptContext<'_> {
    /// The record of this context in the rollout. It is the baseline of the next turn.
    pub fn record(&self) -> TurnContext {
        let settings = self.settings;
        TurnContext {
            turn_id: Some(self.turn_id.into()),
            trace_id: None,
            cwd: settings.cwd.clone(),
            current_date: Some(self.now.date().to_string()),
            timezone: Some(self.timezone().into()),
            approval_policy: settings.approval_policy.clone(),
            sandbox_policy: settings.sandbox.clone().into(),
            active_permission_profile: settings.profile.clone(),
            network: self
                .network()
                .map(|network| json!({ "allowed_domains": network.allowed, "denied_domains": network.denied })),
            model: settings.model.clone(),
            personality: personality(settings, self.profile).and_then(name_of),
            collaboration_mode: Some(settings.collaboration_mode()),
            realtime_active: Some(self.realtime_active),
            effort: settings.reasoning_effort.clone(),
            summary: name_of(reasoning_summary(settings, self.profile, self.model)).unwrap_or_else(|| "auto".into()),
            user_instructions: None,
            developer_instructions: self.profile.developer_instructions.clone(),
            final_output_json_schema: None,
            truncation_policy: Some(truncation(self.model)),
        }
    }

    pub fn timezone(&self) -> &str {
        self.now.time_zone().iana_name().unwrap_or("Etc/UTC")
    }

    /// The hosts that an administrator lists. Those of the user's own profile are not sent.
    pub fn network(&self) -> Option<ManagedNetwork> {
        let network = self.settings.confinement(self.profile).managed_network().ok()??;
        network.required.then(|| ManagedNetwork {
            enabled: network.enabled,
            allowed: network.listed(NetworkDomainPermission::Allow),
            denied: network.listed(NetworkDomainPermission::Deny),
        })
    }
}

/// The personality in force; `None` without the feature.
pub(crate) fn personality(settings: &Settings, profile: &Profile) -> Option<Personality> {
    if !profile.config.features.enabled(Feature::Personality) {
        return None;
    }
    Some(settings.personality.or(profile.config.config.personality).unwrap_or(Personality::Pragmatic))
}

/// The reasoning summary in force.
pub(crate) fn reasoning_summary(settings: &Settings, profile: &Profile, model: &ModelInfo) -> ReasoningSummary {
    let configured = profile.config.config.model_reasoning_summary;
    settings.summary.or(configured).unwrap_or(model.default_summary)
}

/// The `instructions` of model calls: those of the client, of the configuration or of the model, else the built-in ones
/// with a personality.
pub(crate) fn instructions(profile: &Profile, model: &ModelInfo, initial: Option<Personality>) -> String {
    if let Some(given) = &profile.base_instructions {
        return given.clone();
    }
    if let Some(configured) = &profile.config.model_instructions {
        return configured.clone();
    }
    if let Some(own) = &model.instructions {
        return own.to_string();
    }
    prompts::base_instructions(initial.unwrap_or(Personality::None))
}

/// The wire's name of a value of a plain enum.
pub(crate) fn name_of(value: impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(Into::into)
}
