//! Which sandbox policy or permission profile holds when a thread or a command starts.

use std::path::Path;
use std::sync::Arc;

use loomd_config::config_toml::{ConfigToml, FileAccess, TrustLevel};
use loomd_config::permissions::{BUILT_IN, FileRule, Permissions, RulePath};
use loomd_config::{ConfigError, Settings};
use loomd_protocol::{AbsolutePathBuf, ActivePermissionProfile, ReadOnlyAccess, SandboxMode, SandboxPolicy};

use super::Confinement;

/// The permissions of commands: as the wire's policy, and in full where there is a permission profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandPolicy {
    pub policy: SandboxPolicy,
    pub permissions: Option<Arc<Permissions>>,
    /// The profile that they come from.
    pub profile: Option<ActivePermissionProfile>,
}

impl CommandPolicy {
    pub fn of_policy(policy: SandboxPolicy) -> Self {
        Self { policy, permissions: None, profile: None }
    }

    /// Returns the policy of a mode, with the configured writable roots.
    pub fn of_mode(mode: SandboxMode, config: &ConfigToml, home: &AbsolutePathBuf) -> Self {
        Self::of_policy(sandbox_policy(mode, config, home))
    }

    /// Returns what holds in `cwd` when the client names neither a mode nor a policy. A profile that the managed
    /// requirements forbid is replaced by read-only access.
    pub fn of_folder(
        settings: &Settings,
        trust: Option<TrustLevel>,
        home: &AbsolutePathBuf,
        cwd: &Path,
    ) -> Result<Self, ConfigError> {
        let (config, requirements) = (&settings.config, &settings.requirements);
        if let Some(mode) = settings.built_in {
            let allowed = requirements.check_sandbox_mode(mode).is_ok();
            let profile = settings.profile.clone().filter(|_| allowed);
            return Ok(Self { profile, ..Self::of_policy(built_in(requirements.sandbox_mode(mode))) });
        }
        let Some(mut permissions) = settings.permissions.clone() else {
            let mode = requirements.sandbox_mode(sandbox_mode(config, trust));
            let profile = config.sandbox_mode.is_none().then(|| built_in_profile(mode)).flatten();
            return Ok(Self { profile, ..Self::of_mode(mode, config, home) });
        };
        let mut policy = permissions.policy(cwd)?;
        if requirements.check_sandbox_policy(&policy).is_err() {
            return Ok(Self::of_mode(SandboxMode::ReadOnly, config, home));
        }
        if matches!(policy, SandboxPolicy::WorkspaceWrite { .. }) {
            let place = RulePath::Path(memories(home));
            permissions.files.push(FileRule { path: place, access: FileAccess::Write });
            policy = permissions.policy(cwd)?;
        }
        Ok(Self { policy, permissions: Some(Arc::new(permissions)), profile: settings.profile.clone() })
    }

    pub fn confinement<'a>(&'a self, config: &'a Settings) -> Confinement<'a> {
        Confinement { policy: &self.policy, permissions: self.permissions.as_deref(), config }
    }
}

/// The policy of a built-in profile: without the roots that are configured for sandbox modes.
fn built_in(mode: SandboxMode) -> SandboxPolicy {
    match mode {
        SandboxMode::DangerFullAccess => SandboxPolicy::DangerFullAccess,
        SandboxMode::ReadOnly => SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false },
        SandboxMode::WorkspaceWrite => SandboxPolicy::WorkspaceWrite {
            writable_roots: Vec::new(),
            read_only_access: ReadOnlyAccess::FullAccess,
            network_access: false,
            exclude_tmpdir_env_var: false,
            exclude_slash_tmp: false,
        },
    }
}

/// The built-in profile that stands for a mode.
fn built_in_profile(mode: SandboxMode) -> Option<ActivePermissionProfile> {
    let (id, _) = BUILT_IN.iter().find(|(_, other)| *other == mode)?;
    Some(ActivePermissionProfile { id: (*id).into(), extends: None })
}

/// Returns the configured mode; without one, a folder with a trust level is writable and any other read-only.
fn sandbox_mode(config: &ConfigToml, trust: Option<TrustLevel>) -> SandboxMode {
    config.sandbox_mode.unwrap_or(match trust {
        Some(_) => SandboxMode::WorkspaceWrite,
        None => SandboxMode::ReadOnly,
    })
}

/// The agents' memories, writable in every workspace.
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
