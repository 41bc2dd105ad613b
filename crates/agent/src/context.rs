//! What the model is told about its situation: all of it before the first message, later only what changed.

use std::path::Path;

use jiff::Zoned;
use loomd_config::Feature;
use loomd_config::config_toml::FileAccess;
use loomd_model::ModelInfo;
use loomd_protocol::{ContentItem, ModeKind, NetworkDomainPermission, Personality, ReasoningSummary, ResponseItem};
use loomd_store::rollout::TurnContext;
use serde_json::json;

use crate::message::message_of;
use crate::project_doc::{self, ProjectDocs};
use crate::prompts::{self, Environment, ManagedNetwork, Permissions};
use crate::settings::{Profile, Settings, truncation};

/// How much of the project's own instructions the model is told when nothing is configured.
const PROJECT_DOC_BYTES: usize = 32 * 1024;

/// Where a turn takes place, and what holds there.
pub(crate) struct Situation<'a> {
    pub settings: &'a Settings,
    pub profile: &'a Profile,
    pub model: &'a ModelInfo,
    pub turn_id: &'a str,
    /// The kind of the user's shell.
    pub shell: &'a str,
    pub home: &'a Path,
    /// Open child agents: id and name.
    pub subagents: Vec<(String, String)>,
}

impl Situation<'_> {
    /// The settings as a rollout records them.
    pub fn record(&self, now: &Zoned) -> TurnContext {
        let settings = self.settings;
        TurnContext {
            turn_id: Some(self.turn_id.into()),
            trace_id: None,
            cwd: settings.cwd.clone(),
            current_date: Some(now.date().to_string()),
            timezone: Some(timezone(now)),
            approval_policy: settings.approval_policy.clone(),
            sandbox_policy: settings.sandbox.clone().into(),
            network: self
                .network()
                .map(|network| json!({ "allowed_domains": network.allowed, "denied_domains": network.denied })),
            model: settings.model.clone(),
            personality: self.personality().and_then(name_of),
            collaboration_mode: Some(settings.collaboration_mode()),
            realtime_active: Some(false),
            effort: settings.reasoning_effort.clone(),
            summary: name_of(self.summary()).unwrap_or_else(|| "auto".into()),
            user_instructions: None,
            developer_instructions: self.profile.developer_instructions.clone(),
            final_output_json_schema: None,
            truncation_policy: Some(truncation(self.model)),
        }
    }

    pub fn personality(&self) -> Option<Personality> {
        if !self.profile.config.features.enabled(Feature::Personality) {
            return None;
        }
        Some(self.settings.personality.or(self.profile.config.config.personality).unwrap_or(Personality::Pragmatic))
    }

    pub fn summary(&self) -> ReasoningSummary {
        let configured = self.profile.config.config.model_reasoning_summary;
        self.settings.summary.or(configured).unwrap_or(self.model.default_summary)
    }

    /// The instructions that stand before everything else.
    pub fn instructions(&self, initial: Option<Personality>) -> String {
        if let Some(given) = &self.profile.base_instructions {
            return given.clone();
        }
        if let Some(configured) = &self.profile.config.model_instructions {
            return configured.clone();
        }
        if let Some(own) = &self.model.instructions {
            return own.to_string();
        }
        prompts::base_instructions(initial.unwrap_or(Personality::None))
    }

    /// Everything there is to say, for a model that knows nothing yet.
    pub async fn whole(&self, now: &Zoned) -> Vec<ResponseItem> {
        let mut sections = vec![self.permissions()];
        sections.extend(self.profile.developer_instructions.clone().filter(|text| !text.is_empty()));
        if self.settings.mode != ModeKind::Default || self.settings.mode_instructions.is_some() {
            sections.extend(self.collaboration());
        }
        let mut situation = Vec::new();
        situation.extend(self.project_doc().await);
        situation.push(self.environment(now).to_string());
        vec![texts("developer", sections), texts("user", situation)]
    }

    /// What a model that knows `before` has to be told.
    pub fn changes(&self, before: &TurnContext, now: &Zoned) -> Vec<ResponseItem> {
        let after = self.record(now);
        let mut sections = Vec::new();
        if (&before.sandbox_policy, &before.approval_policy) != (&after.sandbox_policy, &after.approval_policy) {
            sections.push(self.permissions());
        }
        if mode_of(before) != mode_of(&after) {
            sections.extend(self.collaboration());
        }
        // A model of which nothing is known has a personality in its instructions, too.
        let speaks = self.model.supports_personality || !self.model.known;
        if before.personality != after.personality && before.model == after.model && speaks {
            sections.extend(self.personality().and_then(prompts::personality_section));
        }
        let mut items = Vec::new();
        if !sections.is_empty() {
            items.push(texts("developer", sections));
        }
        let told = |context: &TurnContext| {
            (context.cwd.clone(), context.current_date.clone(), context.timezone.clone(), context.network.clone())
        };
        if told(before) != told(&after) {
            items.push(texts("user", vec![self.environment(now).to_string()]));
        }
        items
    }

    fn permissions(&self) -> String {
        let features = &self.profile.config.features;
        let cwd = Path::new(&self.settings.cwd);
        let rules = self.settings.permissions.iter().flat_map(|permissions| &permissions.files);
        let closed = rules.filter(|rule| rule.access == FileAccess::None).filter_map(|rule| rule.path.resolve(cwd));
        Permissions {
            closed: &closed.collect::<Vec<_>>(),
            proxied: matches!(self.settings.confinement(self.profile).managed_network(), Ok(Some(network)) if network.enabled),
            sandbox: &self.settings.sandbox,
            approval: &self.settings.approval_policy,
            cwd,
            additional_permissions: features.enabled(Feature::ExecPermissionApprovals),
            request_permissions: features.enabled(Feature::RequestPermissionsTool),
        }
        .to_string()
    }

    fn collaboration(&self) -> Option<String> {
        let may_ask = self.may_ask();
        prompts::collaboration_section(self.settings.mode, self.settings.mode_instructions.as_deref(), may_ask)
    }

    /// Whether the model may put questions to the user.
    pub fn may_ask(&self) -> bool {
        self.settings.mode == ModeKind::Plan
            || self.profile.config.features.enabled(Feature::DefaultModeRequestUserInput)
    }

    async fn project_doc(&self) -> Option<String> {
        let config = &self.profile.config.config;
        let (home, cwd) = (self.home.to_path_buf(), self.settings.cwd.clone());
        let markers = config.project_root_markers();
        let fallbacks = config.project_doc_fallback_filenames.clone().unwrap_or_default();
        let max_bytes = config.project_doc_max_bytes.unwrap_or(PROJECT_DOC_BYTES);
        let read = tokio::task::spawn_blocking(move || {
            let docs = ProjectDocs {
                home: &home,
                cwd: Path::new(&cwd),
                root_markers: &markers,
                fallback_names: &fallbacks,
                max_bytes,
            };
            docs.read()
        });
        let text = read.await.ok()??;
        Some(project_doc::section(Path::new(&self.settings.cwd), &text))
    }

    /// What an administrator lists. What a profile of the user lists shows when it is tried.
    fn network(&self) -> Option<ManagedNetwork> {
        let network = self.settings.confinement(self.profile).managed_network().ok()??;
        network.required.then(|| ManagedNetwork {
            enabled: network.enabled,
            allowed: network.listed(NetworkDomainPermission::Allow),
            denied: network.listed(NetworkDomainPermission::Deny),
        })
    }

    fn environment(&self, now: &Zoned) -> Environment {
        Environment {
            cwd: self.settings.cwd.clone().into(),
            shell: self.shell.into(),
            current_date: now.date().to_string(),
            timezone: timezone(now),
            network: self.network(),
            subagents: self.subagents.clone(),
        }
    }
}

fn mode_of(context: &TurnContext) -> Option<(ModeKind, Option<&str>)> {
    let mode = context.collaboration_mode.as_ref()?;
    Some((mode.mode, mode.settings.developer_instructions.as_deref()))
}

fn timezone(now: &Zoned) -> String {
    now.time_zone().iana_name().unwrap_or("Etc/UTC").into()
}

fn texts(role: &str, texts: Vec<String>) -> ResponseItem {
    message_of(role, texts.into_iter().map(|text| ContentItem::InputText { text }).collect())
}

/// The wire's word for a value of a plain enum.
pub(crate) fn name_of(value: impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(Into::into)
}

#[cfg(test)]
mod tests;
