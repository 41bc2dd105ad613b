//! Which sandbox policy or permission profile holds when a thread or a command starts.

use std::path::Path;
use std::sync::Arc;

use loomd_config::config_toml::{ConfigToml, FileAccess, TrustLevel};
use loomd_config::permissions::{FileRule, Permissions, RulePath};
use loomd_config::{ConfigError, Settings};
use loomd_protocol::{AbsolutePathBuf, ReadOnlyAccess, SandboxMode, SandboxPolicy};

use super::Confinement;

/// The permissions of commands: as the wire's policy, and in full where there is a permission profile.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CommandPolicy {
    pub policy: SandboxPolicy,
    pub permissions: Option<Arc<Permissions>>,
}

impl CommandPolicy {
    pub fn of_policy(policy: SandboxPolicy) -> Self {
        Self { policy, permissions: None }
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
        let Some(mut permissions) = settings.permissions.clone() else {
            return Ok(Self::of_mode(requirements.sandbox_mode(sandbox_mode(config, trust)), config, home));
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
        Ok(Self { policy, permissions: Some(Arc::new(permissions)) })
    }

    pub fn confinement<'a>(&'a self, config: &'a Settings) -> Confinement<'a> {
        Confinement { policy: &self.policy, permissions: self.permissions.as_deref(), config }
    }
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
