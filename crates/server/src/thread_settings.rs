//! What a thread runs on: what the client asked for, else what was stored, else the configuration.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use loomd_agent::{Basis, Profile, Refusal, Resolve, Resolved, Settings};
use loomd_config::config_toml::{ConfigToml, FileAccess, TrustLevel};
use loomd_config::permissions::{FileRule, Permissions, RulePath};
use loomd_config::{ConfigError, Layer, LoadRequest, LoadedConfig, features};
use loomd_exec::sandbox::{Sandbox, Surroundings};
use loomd_model::Identity;
use loomd_protocol::{
    AbsolutePathBuf, ApprovalsReviewer, AskForApproval, DeprecationNoticeNotification, DynamicToolSpec, JsonObject,
    ModeKind, Personality, ReadOnlyAccess, ReasoningEffort, ResidencyRequirement, SandboxMode, SandboxPolicy,
    ServiceTier, ThreadForkParams, ThreadResumeParams, ThreadStartParams,
};

use crate::PROTOCOL_VERSION;
use crate::confinement;
use crate::dispatch::Context;
use crate::working_directory::absolute;

/// The model of a thread when nobody names one.
const DEFAULT_MODEL: &str = "gpt-5.3-codex";

/// What a client asks for when it opens a thread.
#[derive(Default)]
pub(crate) struct ThreadOverrides {
    model: Option<String>,
    model_provider: Option<String>,
    /// Outer `None`: not said; inner `None`: none.
    service_tier: Option<Option<ServiceTier>>,
    cwd: Option<String>,
    approval_policy: Option<AskForApproval>,
    approvals_reviewer: Option<ApprovalsReviewer>,
    sandbox: Option<SandboxMode>,
    config: JsonObject,
    base_instructions: Option<String>,
    developer_instructions: Option<String>,
    personality: Option<Personality>,
    dynamic_tools: Option<Vec<DynamicToolSpec>>,
    raw_events: bool,
}

/// Whether a stored thread's last model and effort count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Restore {
    Model,
    Nothing,
}

/// Works out the settings when the stored thread, if there is one, has been found.
pub(crate) fn resolver(cx: &Context, overrides: ThreadOverrides, restore: Restore) -> Resolve {
    let cx = cx.clone();
    Box::new(move |basis| resolve(&cx, overrides, restore, basis))
}

fn resolve(
    cx: &Context,
    overrides: ThreadOverrides,
    restore: Restore,
    basis: Option<Basis<'_>>,
) -> Result<Resolved, Refusal> {
    let refuse = |error: loomd_config::ConfigError| Refusal::invalid(format!("failed to load configuration: {error}"));
    let cwd = overrides.cwd.as_deref().or(basis.map(|basis| basis.thread.meta.cwd.as_str()));
    let cwd = absolute(cwd.unwrap_or_default())?;
    let names_a_model = overrides.model.is_some()
        || overrides.model_provider.is_some()
        || overrides.config.contains_key("model")
        || overrides.config.contains_key("model_reasoning_effort");
    let mut thread_config = overrides.config;
    if let Some(mode) = overrides.sandbox {
        // So that it counts more than a permission profile.
        thread_config.insert("sandbox_mode".into(), serde_json::json!(mode));
    }
    if let Some(provider) = overrides.model_provider {
        thread_config.insert("model_provider".into(), provider.into());
    }
    let sources = cx.app.sources.request();
    let request = LoadRequest { cwd: Some(&cwd), thread: Some(&thread_config), ..sources };
    let loaded = loomd_config::load(&request).map_err(refuse)?;
    let resolved = loomd_config::resolve(&loaded).map_err(refuse)?;
    let (config, requirements) = (&resolved.config, &resolved.requirements);
    let catalogue = cx
        .app
        .catalogue(config.model_catalog_json.as_ref())
        .map_err(|error| Refusal::invalid(format!("failed to load configuration: {error}")))?;

    let stored = basis.filter(|_| restore == Restore::Model && !names_a_model).and_then(|basis| basis.last_turn);
    let trust = loaded.trust;
    let approval_policy = overrides.approval_policy.or_else(|| config.approval_policy.clone()).unwrap_or(match trust {
        Some(TrustLevel::Untrusted) => AskForApproval::Untrusted,
        _ => AskForApproval::OnRequest,
    });
    let approval_policy = requirements.approval_policy(approval_policy);
    let stored_instructions = || basis.and_then(|basis| basis.thread.meta.base_instructions.clone());
    let stored_tools = || basis.and_then(|basis| basis.thread.meta.dynamic_tools.clone());
    let confined = match overrides.sandbox {
        Some(mode) => Confined::by_mode(requirements.sandbox_mode(mode), config, &cx.app.sources.home),
        None => Confined::by_default(&resolved, trust, &cx.app.sources.home, &cwd).map_err(refuse)?,
    };
    confinement::check_policy(&cx.app, &confined, &cwd);
    loomd_agent::check_network(confined.permissions.as_deref(), requirements)
        .map_err(|problem| Refusal::invalid(format!("failed to load configuration: {problem}")))?;
    Ok(Resolved {
        settings: Settings {
            model: overrides
                .model
                .or_else(|| stored.map(|turn| turn.model.clone()))
                .or_else(|| config.model.clone())
                .unwrap_or_else(|| DEFAULT_MODEL.into()),
            model_provider: config.model_provider().to_owned(),
            service_tier: overrides.service_tier.unwrap_or_else(|| config.service_tier.clone()),
            cwd: cwd.to_string_lossy().into_owned(),
            approval_policy,
            approvals_reviewer: overrides.approvals_reviewer.unwrap_or_else(|| config.approvals_reviewer()),
            sandbox: confined.policy,
            permissions: confined.permissions,
            reasoning_effort: effort(stored.and_then(|turn| turn.effort.clone()), config),
            summary: None,
            personality: overrides.personality,
            mode: ModeKind::Default,
            mode_instructions: None,
        },
        originator: cx.client.name.clone(),
        cli_version: PROTOCOL_VERSION.into(),
        notices: deprecations(config),
        profile: Arc::new(Profile {
            provider: cx.app.provider(config.model_provider(), &resolved.provider),
            catalogue,
            base_instructions: overrides.base_instructions.or_else(|| stored_instructions().map(|stored| stored.text)),
            developer_instructions: overrides.developer_instructions.or_else(|| config.developer_instructions.clone()),
            raw_events: overrides.raw_events,
            config_folders: config_folders(&loaded),
            dynamic_tools: overrides.dynamic_tools.or_else(stored_tools).unwrap_or_default(),
            client: cx.client.name.clone(),
            identity: Identity {
                user_agent: cx.client.user_agent.clone(),
                originator: cx.client.originator.clone(),
                version: PROTOCOL_VERSION.into(),
                residency: resolved.requirements.residency.as_ref().map(|required| match required.value {
                    ResidencyRequirement::Us => "us",
                }),
            },
            config: resolved,
        }),
    })
}

fn effort(stored: Option<ReasoningEffort>, config: &ConfigToml) -> Option<ReasoningEffort> {
    stored.or_else(|| config.model_reasoning_effort.clone())
}

/// The configuration folders that count: of the system, the user and the project.
fn config_folders(loaded: &LoadedConfig) -> Vec<PathBuf> {
    loaded.stack.layers().iter().filter_map(Layer::config_folder).map(Path::to_owned).collect()
}

/// Without a word on it, a folder that the user has decided on is worked in, and others are only looked at.
fn sandbox_mode(config: &ConfigToml, trust: Option<TrustLevel>) -> SandboxMode {
    config.sandbox_mode.unwrap_or(match trust {
        Some(_) => SandboxMode::WorkspaceWrite,
        None => SandboxMode::ReadOnly,
    })
}

/// What commands may do: in the wire's words, and in full where a permission profile says more.
pub(crate) struct Confined {
    pub policy: SandboxPolicy,
    pub permissions: Option<Arc<Permissions>>,
}

impl Confined {
    pub fn by_policy(policy: SandboxPolicy) -> Self {
        Self { policy, permissions: None }
    }

    fn by_mode(mode: SandboxMode, config: &ConfigToml, home: &AbsolutePathBuf) -> Self {
        Self::by_policy(sandbox_policy(mode, config, home))
    }

    /// What holds in a folder when nobody asks for anything else.
    pub fn by_default(
        settings: &loomd_config::Settings,
        trust: Option<TrustLevel>,
        home: &AbsolutePathBuf,
        cwd: &Path,
    ) -> Result<Self, ConfigError> {
        let (config, requirements) = (&settings.config, &settings.requirements);
        let Some(mut permissions) = settings.permissions.clone() else {
            return Ok(Self::by_mode(requirements.sandbox_mode(sandbox_mode(config, trust)), config, home));
        };
        let mut policy = permissions.policy(cwd)?;
        if requirements.check_sandbox_policy(&policy).is_err() {
            return Ok(Self::by_mode(SandboxMode::ReadOnly, config, home));
        }
        if matches!(policy, SandboxPolicy::WorkspaceWrite { .. }) {
            let place = RulePath::Path(memories(home));
            permissions.files.push(FileRule { path: place, access: FileAccess::Write });
            policy = permissions.policy(cwd)?;
        }
        Ok(Self { policy, permissions: Some(Arc::new(permissions)) })
    }

    /// Whether somebody else confines commands.
    pub fn is_elsewhere(&self) -> bool {
        self.permissions.is_none() && matches!(self.policy, SandboxPolicy::ExternalSandbox { .. })
    }

    /// `None` when there is nothing to enforce.
    pub fn sandbox(&self, surroundings: Surroundings) -> Option<Sandbox> {
        match &self.permissions {
            Some(permissions) => Some(Sandbox::of_permissions(permissions, surroundings)),
            None => Sandbox::new(&self.policy, surroundings),
        }
    }
}

/// Where agents keep what they remember; part of every workspace.
fn memories(home: &AbsolutePathBuf) -> AbsolutePathBuf {
    AbsolutePathBuf::resolve(home, "memories")
}

fn sandbox_policy(mode: SandboxMode, config: &ConfigToml, home: &AbsolutePathBuf) -> SandboxPolicy {
    match mode {
        SandboxMode::DangerFullAccess => SandboxPolicy::DangerFullAccess,
        SandboxMode::ReadOnly => SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false },
        SandboxMode::WorkspaceWrite => {
            let workspace = config.sandbox_workspace_write.clone().unwrap_or_default();
            let mut writable_roots = workspace.writable_roots;
            writable_roots.push(memories(home));
            SandboxPolicy::WorkspaceWrite {
                writable_roots,
                read_only_access: ReadOnlyAccess::FullAccess,
                network_access: workspace.network_access,
                exclude_tmpdir_env_var: workspace.exclude_tmpdir_env_var,
                exclude_slash_tmp: workspace.exclude_slash_tmp,
            }
        }
    }
}

fn deprecations(config: &ConfigToml) -> Vec<DeprecationNoticeNotification> {
    let keys = features::deprecated_keys(&config.features).into_iter();
    keys.map(|key| DeprecationNoticeNotification { summary: key.summary(), details: None }).collect()
}

/// The three ways to open a thread have params of their own; what they ask for is the same.
macro_rules! overrides_from {
    ($params:ident, $personality:expr, $dynamic_tools:expr, $raw_events:expr) => {
        impl From<&mut $params> for ThreadOverrides {
            fn from(params: &mut $params) -> Self {
                Self {
                    model: params.model.take(),
                    model_provider: params.model_provider.take(),
                    service_tier: params.service_tier.take(),
                    cwd: params.cwd.take(),
                    approval_policy: params.approval_policy.take(),
                    approvals_reviewer: params.approvals_reviewer,
                    sandbox: params.sandbox,
                    config: params.config.take().unwrap_or_default(),
                    base_instructions: params.base_instructions.take(),
                    developer_instructions: params.developer_instructions.take(),
                    personality: $personality(&mut *params),
                    dynamic_tools: $dynamic_tools(&mut *params),
                    raw_events: $raw_events(params),
                }
            }
        }
    };
}

overrides_from!(
    ThreadStartParams,
    |params: &mut ThreadStartParams| params.personality,
    |params: &mut ThreadStartParams| params.dynamic_tools.take(),
    |params: &mut ThreadStartParams| params.experimental_raw_events
);
overrides_from!(ThreadResumeParams, |params: &mut ThreadResumeParams| params.personality, |_| None, |_| false);
overrides_from!(ThreadForkParams, |_| None, |_| None, |_| false);
