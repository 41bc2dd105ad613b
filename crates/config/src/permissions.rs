//! Permission profiles: which files commands may read and write. For each file, the rule with the longest path applies.
//! [`policy`](Permissions::policy) is the closest approximation on the wire; the sandbox enforces the whole profile.

mod built_in;
mod network;
mod select;

use std::path::{Path, PathBuf};

use loomd_protocol::{AbsolutePathBuf, ConfigWarningNotification, NetworkAccess, ReadOnlyAccess, SandboxPolicy};

use crate::ConfigError;
use crate::config_toml::{FileAccess, FilePermission, NetworkPermissions, PermissionProfile};

pub use built_in::BUILT_IN;
pub use network::ManagedNetwork;
pub(crate) use select::select;
pub use select::{ProfileRules, SelectedProfile};

/// A resolved profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Permissions {
    pub files: Vec<FileRule>,
    pub network: NetworkPermissions,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileRule {
    pub path: RulePath,
    pub access: FileAccess,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RulePath {
    /// All files.
    Root,
    /// The files that programs need to run.
    Minimal,
    /// A path relative to the working directory; empty for the directory itself.
    Project(PathBuf),
    /// `$TMPDIR`.
    Tmpdir,
    Path(AbsolutePathBuf),
}

/// The error for profiles that allow writing elsewhere but not in the working directory, which the wire cannot express.
const OUTSIDE: &str = "permissions profile requests filesystem writes outside the workspace root, and not to the \
                       workspace root itself, which is not supported";

/// The folder for temporary files that the wire has a flag for.
const SLASH_TMP: &str = "/tmp";

impl Permissions {
    /// Resolves a profile, which adds to `base`. Unknown entries are ignored, with a warning.
    pub(crate) fn resolve(
        name: &str,
        profile: &PermissionProfile,
        base: Option<Self>,
        user_home: Option<&Path>,
        warnings: &mut Vec<ConfigWarningNotification>,
    ) -> Result<Self, ConfigError> {
        let mut files = Vec::new();
        for (path, permission) in profile.filesystem.iter().flatten() {
            match parse_path(path, user_home)? {
                Some(place) => add(&mut files, path, place, permission)?,
                None => warnings.push(unknown(path, permission)),
            }
        }
        let base = base.unwrap_or_default();
        if files.is_empty() && base.files.is_empty() {
            warnings.push(warning(format!(
                "Permissions profile `{name}` has no filesystem entry that this version knows, so commands can read and \
                 write nothing."
            )));
        }
        let kept = base.files.into_iter().filter(|rule| files.iter().all(|own| own.path != rule.path));
        let files = kept.collect::<Vec<_>>().into_iter().chain(files.iter().cloned()).collect();
        Ok(Self { files, network: profile.network.clone().unwrap_or(base.network) })
    }

    pub fn network_enabled(&self) -> bool {
        self.network.enabled == Some(true)
    }

    /// Returns the closest wire policy, for a working directory.
    pub fn policy(&self, cwd: &Path) -> Result<SandboxPolicy, ConfigError> {
        let network_access = self.network_enabled();
        if self.access_of(&RulePath::Root) == FileAccess::Write {
            return Ok(match network_access {
                true => SandboxPolicy::DangerFullAccess,
                false => SandboxPolicy::ExternalSandbox { network_access: NetworkAccess::Restricted },
            });
        }
        let access = self.read_access(cwd);
        let writable = self.paths(cwd, FileAccess::Write);
        let tmpdir = self.access_of(&RulePath::Tmpdir) == FileAccess::Write;
        if self.innermost(cwd) != Some(FileAccess::Write) {
            return match writable.is_empty() && !tmpdir {
                true => Ok(SandboxPolicy::ReadOnly { access, network_access }),
                false => Err(ConfigError::Invalid(OUTSIDE.into())),
            };
        }
        let slash_tmp = Path::new(SLASH_TMP);
        Ok(SandboxPolicy::WorkspaceWrite {
            exclude_slash_tmp: !writable.iter().any(|root| **root == *slash_tmp),
            writable_roots: writable.into_iter().filter(|root| **root != *cwd && **root != *slash_tmp).collect(),
            read_only_access: access,
            network_access,
            exclude_tmpdir_env_var: !tmpdir,
        })
    }

    fn read_access(&self, cwd: &Path) -> ReadOnlyAccess {
        if self.access_of(&RulePath::Root) != FileAccess::None {
            return ReadOnlyAccess::FullAccess;
        }
        ReadOnlyAccess::Restricted {
            include_platform_defaults: self.access_of(&RulePath::Minimal) != FileAccess::None,
            readable_roots: self.paths(cwd, FileAccess::Read),
        }
    }

    fn access_of(&self, place: &RulePath) -> FileAccess {
        self.files.iter().find(|rule| rule.path == *place).map_or(FileAccess::None, |rule| rule.access)
    }

    /// Returns the access that the innermost rule around a path gives.
    fn innermost(&self, path: &Path) -> Option<FileAccess> {
        let rules = self.files.iter().filter_map(|rule| Some((rule.path.resolve(path)?, rule.access)));
        let around = rules.filter(|(place, _)| path.starts_with(place));
        around.max_by_key(|(place, _)| place.components().count()).map(|(_, access)| access)
    }

    fn paths(&self, cwd: &Path, access: FileAccess) -> Vec<AbsolutePathBuf> {
        let rules = self.files.iter().filter(|rule| rule.access == access);
        rules.filter_map(|rule| rule.path.resolve(cwd)).collect()
    }
}

impl RulePath {
    /// Returns the path; `None` for entries that are no single path, or whose path only the environment knows.
    pub fn resolve(&self, cwd: &Path) -> Option<AbsolutePathBuf> {
        match self {
            Self::Project(inside) => AbsolutePathBuf::new(cwd.join(inside).components().collect::<PathBuf>()),
            Self::Path(path) => Some(path.clone()),
            Self::Root | Self::Minimal | Self::Tmpdir => None,
        }
    }

    fn inside(&self, part: &str) -> Option<Self> {
        match self {
            Self::Project(folder) => Some(Self::Project(folder.join(part))),
            Self::Path(folder) => Some(Self::Path(AbsolutePathBuf::resolve(folder, part))),
            Self::Root | Self::Minimal | Self::Tmpdir => None,
        }
    }
}

/// Parses an entry; `None` for an unknown special name.
fn parse_path(written: &str, user_home: Option<&Path>) -> Result<Option<RulePath>, ConfigError> {
    if written.starts_with(':') {
        return Ok(match written {
            ":root" => Some(RulePath::Root),
            ":minimal" => Some(RulePath::Minimal),
            ":project_roots" => Some(RulePath::Project(PathBuf::new())),
            ":tmpdir" => Some(RulePath::Tmpdir),
            _ => None,
        });
    }
    let path = match (written.strip_prefix('~'), user_home) {
        (Some(""), Some(home)) => home.to_path_buf(),
        (Some(rest), Some(home)) if rest.starts_with('/') => home.join(rest.trim_start_matches('/')),
        _ => PathBuf::from(written),
    };
    let path = AbsolutePathBuf::new(path).map(RulePath::Path);
    path.map(Some).ok_or_else(|| {
        ConfigError::Invalid(format!("filesystem path `{written}` must be absolute, use `~/...`, or start with `:`"))
    })
}

fn add(rules: &mut Vec<FileRule>, path: &str, place: RulePath, permission: &FilePermission) -> Result<(), ConfigError> {
    let parts = match permission {
        FilePermission::Whole(access) => {
            rules.push(FileRule { path: place, access: *access });
            return Ok(());
        }
        FilePermission::Parts(parts) => parts,
    };
    for (part, access) in parts {
        let place = match part.as_str() {
            "." => place.clone(),
            part => place.inside(part).ok_or_else(|| {
                ConfigError::Invalid(format!("filesystem path `{path}` does not support nested entries"))
            })?,
        };
        if part != "." && !is_descendant(part) {
            return Err(ConfigError::Invalid(format!(
                "filesystem subpath `{part}` must be a descendant path without `.` or `..` components"
            )));
        }
        rules.push(FileRule { path: place, access: *access });
    }
    Ok(())
}

fn is_descendant(part: &str) -> bool {
    !part.is_empty() && !part.starts_with('/') && part.split('/').all(|name| name != "." && name != "..")
}

fn unknown(path: &str, permission: &FilePermission) -> ConfigWarningNotification {
    let part = match permission {
        FilePermission::Whole(_) => None,
        FilePermission::Parts(parts) => parts.keys().next(),
    };
    let part = part.map(|part| format!(" with nested entry `{part}`")).unwrap_or_default();
    warning(format!("Configured filesystem path `{path}`{part} is not known to this version and is ignored."))
}

fn warning(summary: String) -> ConfigWarningNotification {
    ConfigWarningNotification { summary, details: None, path: None, range: None }
}

#[cfg(test)]
mod tests;
