//! Finding a permission profile by its id.

use std::collections::BTreeMap;
use std::path::Path;

use loomd_protocol::{ActivePermissionProfile, ConfigWarningNotification, SandboxMode};

use super::{Permissions, built_in};
use crate::ConfigError;
use crate::config_toml::PermissionProfile;

/// The longest chain of profiles that extend each other.
const MAX_CHAIN: usize = 16;

/// A profile that was selected by its id.
#[derive(Clone, Debug, PartialEq)]
pub struct SelectedProfile {
    pub active: ActivePermissionProfile,
    pub rules: ProfileRules,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ProfileRules {
    BuiltIn(SandboxMode),
    Configured(Permissions),
}

/// Finds a profile: a built-in one by an id with a colon, else one of the `[permissions]` table.
pub(crate) fn select(
    id: &str,
    configured: &BTreeMap<String, PermissionProfile>,
    user_home: Option<&Path>,
    warnings: &mut Vec<ConfigWarningNotification>,
) -> Result<SelectedProfile, ConfigError> {
    let active = |extends| ActivePermissionProfile { id: id.to_owned(), extends };
    if id.starts_with(':') {
        let mode = built_in::find(id).ok_or_else(|| unknown_built_in(id))?;
        return Ok(SelectedProfile { active: active(None), rules: ProfileRules::BuiltIn(mode) });
    }
    if configured.is_empty() {
        return Err(ConfigError::Invalid("default_permissions requires a `[permissions]` table".into()));
    }
    let profile = configured.get(id).ok_or_else(|| undefined(id))?;
    let rules = resolve(id, configured, user_home, warnings, MAX_CHAIN)?;
    Ok(SelectedProfile { active: active(profile.extends.clone()), rules: ProfileRules::Configured(rules) })
}

fn resolve(
    id: &str,
    configured: &BTreeMap<String, PermissionProfile>,
    user_home: Option<&Path>,
    warnings: &mut Vec<ConfigWarningNotification>,
    chain: usize,
) -> Result<Permissions, ConfigError> {
    if id.starts_with(':') {
        return built_in::find(id).map(built_in::rules).ok_or_else(|| unknown_built_in(id));
    }
    if chain == 0 {
        return Err(ConfigError::Invalid(format!("permissions profile `{id}` extends too many others, or itself")));
    }
    let profile = configured.get(id).ok_or_else(|| undefined(id))?;
    let base = match &profile.extends {
        Some(base) => Some(resolve(base, configured, user_home, warnings, chain - 1)?),
        None => None,
    };
    Permissions::resolve(id, profile, base, user_home, warnings)
}

fn unknown_built_in(id: &str) -> ConfigError {
    ConfigError::Invalid(format!("default_permissions refers to unknown built-in profile `{id}`"))
}

fn undefined(id: &str) -> ConfigError {
    ConfigError::Invalid(format!("default_permissions refers to undefined profile `{id}`"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use serde_json::json;

    use super::*;

    fn selected(id: &str, tables: &str) -> Result<(Option<String>, serde_json::Value), String> {
        let configured: BTreeMap<String, PermissionProfile> = toml::from_str(tables).unwrap();
        let found = select(id, &configured, None, &mut Vec::new()).map_err(|error| error.to_string())?;
        let shown = match found.rules {
            ProfileRules::BuiltIn(mode) => json!(mode),
            ProfileRules::Configured(rules) => json!(rules.policy(Path::new("/w")).map_err(|error| error.to_string())?),
        };
        Ok((found.active.extends, shown))
    }

    #[test]
    fn a_profile_is_built_in_or_configured_and_may_extend_another() {
        let tables = "[team]\nextends = ':workspace'\n[team.network]\nenabled = true\n\
                      [strict]\nextends = 'team'\n[strict.filesystem]\n':tmpdir' = 'read'\n\
                      [loop]\nextends = 'loop'\n[bad]\nextends = 'gone'\n";
        assert_eq!(selected(":workspace", ""), Ok((None, json!("workspace-write"))));
        let full = json!({ "type": "fullAccess" });
        let policy = |tmpdir: bool| {
            json!({
                "type": "workspaceWrite", "writableRoots": [], "readOnlyAccess": full, "networkAccess": true,
                "excludeTmpdirEnvVar": !tmpdir, "excludeSlashTmp": false,
            })
        };
        assert_eq!(selected("team", tables), Ok((Some(":workspace".into()), policy(true))));
        assert_eq!(selected("strict", tables), Ok((Some("team".into()), policy(false))));
        for (id, tables, message) in [
            (":nope", tables, "default_permissions refers to unknown built-in profile `:nope`"),
            (":Workspace", "", "default_permissions refers to unknown built-in profile `:Workspace`"),
            ("nope", tables, "default_permissions refers to undefined profile `nope`"),
            ("", tables, "default_permissions refers to undefined profile ``"),
            ("nope", "", "default_permissions requires a `[permissions]` table"),
            ("bad", tables, "default_permissions refers to undefined profile `gone`"),
            ("loop", tables, "permissions profile `loop` extends too many others, or itself"),
        ] {
            assert_eq!(selected(id, tables), Err(message.into()), "{id}");
        }
    }
}
