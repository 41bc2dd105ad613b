//! The permission profiles that always exist.

use std::path::PathBuf;

use loomd_protocol::{AbsolutePathBuf, SandboxMode};

use super::{FileRule, Permissions, RulePath, SLASH_TMP};
use crate::config_toml::{FileAccess, NetworkPermissions};

/// Their ids, in the order in which they are listed, and the modes that they stand for.
pub const BUILT_IN: [(&str, SandboxMode); 3] = [
    (":read-only", SandboxMode::ReadOnly),
    (":workspace", SandboxMode::WorkspaceWrite),
    (":danger-full-access", SandboxMode::DangerFullAccess),
];

/// Returns the mode that an id stands for.
pub(super) fn find(id: &str) -> Option<SandboxMode> {
    BUILT_IN.iter().find(|(name, _)| *name == id).map(|(_, mode)| *mode)
}

/// Returns the rules of a mode, for profiles that add to it.
pub(super) fn rules(mode: SandboxMode) -> Permissions {
    let rule = |path, access| FileRule { path, access };
    let files = match mode {
        SandboxMode::ReadOnly => vec![rule(RulePath::Root, FileAccess::Read)],
        SandboxMode::WorkspaceWrite => {
            let mut files = vec![
                rule(RulePath::Root, FileAccess::Read),
                rule(RulePath::Project(PathBuf::new()), FileAccess::Write),
                rule(RulePath::Tmpdir, FileAccess::Write),
            ];
            files.extend(AbsolutePathBuf::new(SLASH_TMP).map(|path| rule(RulePath::Path(path), FileAccess::Write)));
            files
        }
        SandboxMode::DangerFullAccess => vec![rule(RulePath::Root, FileAccess::Write)],
    };
    let enabled = (mode == SandboxMode::DangerFullAccess).then_some(true);
    Permissions { files, network: NetworkPermissions { enabled, ..NetworkPermissions::default() } }
}
