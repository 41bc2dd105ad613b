//! The settings of a thread: the client's overrides, else what is stored, else the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_config::config_toml::{ConfigToml, TrustLevel};
use loomd_config::permissions::BUILT_IN;
use loomd_config::{Layer, LoadRequest, LoadedConfig, features};
use loomd_exec::sandbox::Surroundings;
use loomd_mcp::ServerSet;
use loomd_model::Identity;
use loomd_plugins::ActivePlugin;
use loomd_protocol::{
    AskForApproval, DeprecationNoticeNotification, JsonObject, ModeKind, PermissionProfileSummary, ReasoningEffort,
    ResidencyRequirement, SandboxMode, SandboxPolicy, SandboxSetting,
};
use loomd_store::rollout::{StoredSettings, TurnContext};

use super::opener::{Opener, config_refusal};
use super::overrides::{ClientIdentity, ThreadOverrides};
use crate::confinement::{CommandPolicy, check_network};
use crate::extensions::ThreadExtensions;
use crate::mcp::allowed_servers;
use crate::refusal::Refusal;
use crate::settings::{Basis, Profile, Resolve, ResolvedSettings, Settings};
use crate::working_directory::absolute;

/// The model of a thread when neither the client nor the configuration names one.
const DEFAULT_MODEL: &str = "gpt-5.3-codex";

/// The key of a thread's `config` that requests raw events, for methods without `experimentalRawEvents`. It is no key of
/// config.toml.
pub(super) const RAW_EVENTS: &str = "loomd.raw_events";

/// Whether the model and effort of a stored thread's last turn are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restore {
    Model,
    Nothing,
}

impl Opener {
    /// Returns the function that resolves the settings once the stored thread, if there is one, has been found.
    pub fn resolver(
        self: &Arc<Self>,
        overrides: ThreadOverrides,
        restore: Restore,
        client: Arc<ClientIdentity>,
    ) -> Resolve {
        let opener = Arc::clone(self);
        Box::new(move |basis: Option<Basis<'_>>| resolve(&opener, overrides, restore, &client, basis))
    }

    /// Returns the settings of a thread without history.
    pub fn resolve_new(
        &self,
        overrides: ThreadOverrides,
        client: &ClientIdentity,
    ) -> Result<ResolvedSettings, Refusal> {
        resolve(self, overrides, Restore::Nothing, client, None)
    }
}

fn resolve(
    opener: &Opener,
    overrides: ThreadOverrides,
    restore: Restore,
    client: &ClientIdentity,
    basis: Option<Basis<'_>>,
) -> Result<ResolvedSettings, Refusal> {
    if overrides.permissions.is_some() && overrides.sandbox.is_some() {
        return Err(Refusal::invalid("`permissions` cannot be combined with `sandbox`"));
    }
    // What a client of the newer release changed stays in force; an older one finds the configured settings again.
    let changed = basis.filter(|_| client.newer).and_then(|basis| basis.changed);
    let kept = Kept::of(&overrides, changed, basis.filter(|_| client.newer).and_then(|basis| basis.last_turn));
    match resolve_with(opener, overrides.clone(), restore, client, basis, changed, kept.clone()) {
        // A profile that has been removed since, or that is no longer allowed.
        Err(_) if kept != Kept::Nothing => {
            resolve_with(opener, overrides, restore, client, basis, changed, Kept::Nothing)
        }
        resolved => resolved,
    }
}

/// What confines the commands of a stored thread.
#[derive(Clone, Debug, PartialEq)]
enum Kept {
    Profile(String),
    Policy(SandboxPolicy),
    Nothing,
}

impl Kept {
    fn of(overrides: &ThreadOverrides, changed: Option<&StoredSettings>, last_turn: Option<&TurnContext>) -> Self {
        let configured = ["sandbox_mode", "default_permissions"].iter().any(|key| overrides.config.contains_key(*key));
        if configured || overrides.permissions.is_some() || overrides.sandbox.is_some() {
            return Self::Nothing;
        }
        let profile = match changed {
            Some(changed) => changed.active_permission_profile.as_ref(),
            None => last_turn.and_then(|turn| turn.active_permission_profile.as_ref()),
        };
        match (profile, changed.and_then(|changed| changed.sandbox_policy.clone())) {
            (Some(profile), _) => Self::Profile(profile.id.clone()),
            (None, Some(policy)) => Self::Policy(policy.into()),
            (None, None) => Self::Nothing,
        }
    }
}

fn resolve_with(
    opener: &Opener,
    mut overrides: ThreadOverrides,
    restore: Restore,
    client: &ClientIdentity,
    basis: Option<Basis<'_>>,
    changed: Option<&StoredSettings>,
    kept: Kept,
) -> Result<ResolvedSettings, Refusal> {
    match kept {
        Kept::Profile(id) => overrides.permissions = Some(id),
        Kept::Policy(policy) => overrides.sandbox = Some(SandboxSetting::Policy(policy)),
        Kept::Nothing => {}
    }
    let stored_cwd = changed.map(|changed| changed.cwd.as_str());
    let stored_cwd = stored_cwd.or(basis.map(|basis| basis.thread.meta.cwd.as_str()));
    let cwd = overrides.cwd.as_deref().or(stored_cwd);
    let cwd = absolute(cwd.unwrap_or_default())?;
    let names_a_model = overrides.model.is_some()
        || overrides.model_provider.is_some()
        || overrides.config.contains_key("model")
        || overrides.config.contains_key("model_reasoning_effort");
    let mut thread_config = overrides.config;
    let raw_events = thread_config.shift_remove(RAW_EVENTS).is_some_and(|value| value == true) || overrides.raw_events;
    if let Some(sandbox) = &overrides.sandbox {
        // Set as configuration, because it takes precedence over a permission profile there.
        thread_config.insert("sandbox_mode".into(), serde_json::json!(mode_of(sandbox)));
    }
    if let Some(profile) = &overrides.permissions {
        thread_config.remove("sandbox_mode");
        thread_config.insert("default_permissions".into(), profile.clone().into());
    }
    if let Some(provider) = overrides.model_provider {
        thread_config.insert("model_provider".into(), provider.into());
    }
    let sources = opener.sources.request();
    let request = LoadRequest { cwd: Some(&cwd), thread: Some(&thread_config), ..sources };
    let loaded = loomd_config::load(&request).map_err(config_refusal)?;
    let resolved = loomd_config::resolve(&loaded).map_err(config_refusal)?;
    let plugins = opener.extensions.plugins(&loaded);
    let (config, requirements) = (&resolved.config, &resolved.requirements);
    let catalogue = opener
        .models
        .catalogue(config.model_catalog_json.as_ref())
        .map_err(|error| Refusal::invalid(format!("failed to load configuration: {error}")))?;

    let stored = basis.filter(|_| restore == Restore::Model && !names_a_model).and_then(|basis| basis.last_turn);
    let keeps_model = restore == Restore::Model && !names_a_model;
    let mode = changed.filter(|_| keeps_model).and_then(|changed| changed.collaboration_mode.clone());
    let trust = loaded.trust;
    let approval_policy = overrides.approval_policy.or_else(|| changed.map(|changed| changed.approval_policy.clone()));
    let approval_policy = approval_policy.or_else(|| config.approval_policy.clone()).unwrap_or(match trust {
        Some(TrustLevel::Untrusted) => AskForApproval::Untrusted,
        _ => AskForApproval::OnRequest,
    });
    let approval_policy = requirements.approval_policy(approval_policy);
    let stored_instructions = || basis.and_then(|basis| basis.thread.meta.base_instructions.clone());
    let stored_tools = || basis.and_then(|basis| basis.thread.meta.dynamic_tools.clone());
    let confined = match overrides.sandbox {
        Some(SandboxSetting::Mode(mode)) => {
            CommandPolicy::of_mode(requirements.sandbox_mode(mode), config, &opener.sources.home)
        }
        Some(SandboxSetting::Policy(policy)) => {
            let checked = requirements.check_sandbox_policy(&policy);
            checked.map_err(|error| Refusal::invalid(format!("invalid sandbox policy: {error}")))?;
            CommandPolicy::of_policy(policy)
        }
        None => {
            if let (Some(_), Some(mode)) = (&overrides.permissions, resolved.built_in) {
                let checked = requirements.check_sandbox_mode(mode);
                checked.map_err(|error| Refusal::invalid(error.to_string()))?;
            }
            CommandPolicy::of_folder(&resolved, trust, &opener.sources.home, &cwd).map_err(config_refusal)?
        }
    };
    if !opener.enforcement.is_complete() {
        let tmpdir = opener.services.environment.get("TMPDIR").map(Path::new);
        let surroundings = Surroundings { tmpdir, ..Surroundings::new(&cwd) };
        if let Some(sandbox) = confined.confinement(&resolved).sandbox(surroundings, []) {
            opener.enforcement.check(sandbox);
        }
    }
    check_network(confined.permissions.as_deref(), requirements)
        .map_err(|problem| Refusal::invalid(format!("failed to load configuration: {problem}")))?;
    Ok(ResolvedSettings {
        settings: Settings {
            model: overrides
                .model
                .or_else(|| changed.filter(|_| keeps_model).map(|changed| changed.model.clone()))
                .or_else(|| stored.map(|turn| turn.model.clone()))
                .or_else(|| config.model.clone())
                .unwrap_or_else(|| DEFAULT_MODEL.into()),
            model_provider: config.model_provider().to_owned(),
            service_tier: overrides.service_tier.unwrap_or_else(|| config.service_tier.clone()),
            cwd: cwd.to_string_lossy().into_owned(),
            approval_policy,
            approvals_reviewer: overrides
                .approvals_reviewer
                .or_else(|| changed.and_then(|changed| changed.approvals_reviewer))
                .unwrap_or_else(|| config.approvals_reviewer()),
            sandbox: confined.policy,
            permissions: confined.permissions,
            profile: confined.profile,
            reasoning_effort: match changed.filter(|_| keeps_model) {
                Some(changed) => changed.effort.clone(),
                None => effort(stored.and_then(|turn| turn.effort.clone()), config),
            },
            summary: changed.and_then(|changed| changed.summary),
            personality: overrides.personality.or_else(|| changed.and_then(|changed| changed.personality)),
            mode: mode.as_ref().map_or(ModeKind::Default, |mode| mode.mode),
            mode_instructions: mode.and_then(|mode| mode.settings.developer_instructions.clone()),
        },
        originator: client.name.clone(),
        thread_source: overrides.thread_source,
        budget: overrides.budget,
        placement: overrides.placement,
        on_disconnect: overrides.on_disconnect.unwrap_or_default(),
        cli_version: client.protocol_version.clone(),
        notices: deprecations(config),
        profile: Arc::new(Profile {
            provider: opener.models.provider(config.model_provider(), &resolved.provider),
            catalogue,
            base_instructions: overrides.base_instructions.or_else(|| stored_instructions().map(|stored| stored.text)),
            developer_instructions: overrides.developer_instructions.or_else(|| config.developer_instructions.clone()),
            raw_events,
            config_folders: config_folders(&loaded),
            mcp_servers: allowed_servers(&resolved, &plugins, opener.services.mcp.as_deref())
                .with_openai_form(client.openai_form),
            extensions: ThreadExtensions {
                skill_roots: opener
                    .extensions
                    .roots(&loaded, &plugins, &[])
                    .into_iter()
                    .map(|root| root.folder)
                    .collect(),
                finder: Some(Arc::clone(&opener.extensions)),
                plugins,
            },
            thread_config,
            dynamic_tools: overrides.dynamic_tools.or_else(stored_tools).unwrap_or_default(),
            client: client.name.clone(),
            newer_tools: client.newer,
            has_environment: !overrides.without_environment,
            openai_form: client.openai_form,
            identity: Identity {
                user_agent: client.user_agent.clone(),
                originator: client.originator.clone(),
                version: client.protocol_version.clone(),
                residency: resolved.requirements.residency.as_ref().map(|required| match required.value {
                    ResidencyRequirement::Us => "us",
                }),
            },
            config: resolved,
        }),
    })
}

/// The preset that is closest to a sandbox setting.
pub(super) fn mode_of(sandbox: &SandboxSetting) -> SandboxMode {
    match sandbox {
        SandboxSetting::Mode(mode) => *mode,
        SandboxSetting::Policy(SandboxPolicy::ReadOnly { .. }) => SandboxMode::ReadOnly,
        SandboxSetting::Policy(SandboxPolicy::WorkspaceWrite { .. }) => SandboxMode::WorkspaceWrite,
        SandboxSetting::Policy(SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. }) => {
            SandboxMode::DangerFullAccess
        }
    }
}

impl Opener {
    /// What a permission profile stands for in the folder of a thread.
    pub fn choose_profile(&self, id: &str, cwd: &str, thread_config: &JsonObject) -> Result<CommandPolicy, Refusal> {
        let cwd = absolute(cwd)?;
        let mut thread_config = thread_config.clone();
        thread_config.remove("sandbox_mode");
        thread_config.insert("default_permissions".into(), id.into());
        let request = LoadRequest { cwd: Some(&cwd), thread: Some(&thread_config), ..self.sources.request() };
        let loaded = loomd_config::load(&request).map_err(config_refusal)?;
        let resolved = loomd_config::resolve(&loaded).map_err(config_refusal)?;
        let confined =
            CommandPolicy::of_folder(&resolved, loaded.trust, &self.sources.home, &cwd).map_err(config_refusal)?;
        if confined.profile.is_none() {
            return Err(Refusal::invalid(format!(
                "the permission profile `{id}` is not allowed by your administrator"
            )));
        }
        check_network(confined.permissions.as_deref(), &resolved.requirements)
            .map_err(|problem| Refusal::invalid(format!("failed to load configuration: {problem}")))?;
        Ok(confined)
    }

    /// The permission profiles that threads in a folder can be given. Those of its project count if it is trusted; a
    /// folder that cannot be read has none of its own.
    pub fn permission_profiles(&self, cwd: Option<&str>) -> Result<Vec<PermissionProfileSummary>, Refusal> {
        let cwd = cwd.map(absolute).transpose()?;
        let sources = self.sources.request();
        let of_folder = loomd_config::load(&LoadRequest { cwd: cwd.as_ref(), ..sources });
        let loaded = match of_folder {
            Err(_) if cwd.is_some() => loomd_config::load(&self.sources.request()).map_err(config_refusal)?,
            loaded => loaded.map_err(config_refusal)?,
        };
        let requirements = &loaded.requirements;
        let built_in = BUILT_IN.iter().map(|(id, mode)| PermissionProfileSummary {
            id: (*id).into(),
            description: None,
            allowed: requirements.check_sandbox_mode(*mode).is_ok(),
        });
        let folder = cwd.as_deref().map(Path::to_path_buf).unwrap_or_default();
        let configured = loaded.config.permissions.iter().map(|(id, profile)| {
            let policy = loaded.permission_policy(id, &folder);
            PermissionProfileSummary {
                id: id.clone(),
                description: profile.description.clone(),
                allowed: policy.is_ok_and(|policy| requirements.check_sandbox_policy(&policy).is_ok()),
            }
        });
        Ok(built_in.chain(configured).collect())
    }

    /// The MCP servers that a thread would have if it were opened now.
    pub fn mcp_servers(&self, profile: &Profile, settings: &Settings) -> Result<ServerSet, Refusal> {
        let cwd = absolute(&settings.cwd)?;
        let request = LoadRequest { cwd: Some(&cwd), thread: Some(&profile.thread_config), ..self.sources.request() };
        let set = self.servers_of(&loomd_config::load(&request).map_err(config_refusal)?)?;
        Ok(set.with_openai_form(profile.openai_form))
    }

    /// The MCP servers of the configuration and of plugins, without those of a project or a thread.
    pub fn configured_mcp_servers(&self) -> Result<ServerSet, Refusal> {
        self.servers_of(&loomd_config::load(&self.sources.request()).map_err(config_refusal)?)
    }

    /// The configuration as it is now, without that of a project or a thread, and the plugins that it enables.
    pub fn configured(&self) -> Result<(loomd_config::Settings, Vec<ActivePlugin>), Refusal> {
        let loaded = loomd_config::load(&self.sources.request()).map_err(config_refusal)?;
        let config = loomd_config::resolve(&loaded).map_err(config_refusal)?;
        Ok((config, self.extensions.plugins(&loaded)))
    }

    fn servers_of(&self, loaded: &LoadedConfig) -> Result<ServerSet, Refusal> {
        let resolved = loomd_config::resolve(loaded).map_err(config_refusal)?;
        Ok(allowed_servers(&resolved, &self.extensions.plugins(loaded), self.services.mcp.as_deref()))
    }
}

fn effort(stored: Option<ReasoningEffort>, config: &ConfigToml) -> Option<ReasoningEffort> {
    stored.or_else(|| config.model_reasoning_effort.clone())
}

/// The configuration folders in effect: of the system, the user and the project.
fn config_folders(loaded: &LoadedConfig) -> Vec<PathBuf> {
    loaded.stack.layers().iter().filter_map(Layer::config_folder).map(Path::to_owned).collect()
}

fn deprecations(config: &ConfigToml) -> Vec<DeprecationNoticeNotification> {
    let keys = features::deprecated_keys(&config.features).into_iter();
    keys.map(|key| DeprecationNoticeNotification { summary: key.summary(), details: None }).collect()
}
