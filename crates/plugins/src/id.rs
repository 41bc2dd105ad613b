//! `<plugin>@<marketplace>`.

use std::fmt;
use std::str::FromStr;

use crate::error::PluginError;

/// The key of a plugin in the configuration. Both names are safe as names of folders.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PluginId {
    plugin: String,
    marketplace: String,
}

impl PluginId {
    pub fn new(plugin: &str, marketplace: &str) -> Result<Self, PluginError> {
        check("plugin", plugin).map_err(PluginError::Invalid)?;
        check("marketplace", marketplace).map_err(PluginError::Invalid)?;
        Ok(Self { plugin: plugin.into(), marketplace: marketplace.into() })
    }

    pub fn plugin(&self) -> &str {
        &self.plugin
    }

    pub fn marketplace(&self) -> &str {
        &self.marketplace
    }
}

impl FromStr for PluginId {
    type Err = PluginError;

    fn from_str(key: &str) -> Result<Self, PluginError> {
        let parts = key.rsplit_once('@').filter(|(plugin, marketplace)| !plugin.is_empty() && !marketplace.is_empty());
        let (plugin, marketplace) = parts.ok_or_else(|| {
            PluginError::Invalid(format!("invalid plugin key `{key}`; expected <plugin>@<marketplace>"))
        })?;
        let checked = check("plugin", plugin).and_then(|()| check("marketplace", marketplace));
        checked.map_err(|problem| PluginError::Invalid(format!("{problem} in `{key}`")))?;
        Ok(Self { plugin: plugin.into(), marketplace: marketplace.into() })
    }
}

impl fmt::Display for PluginId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}", self.plugin, self.marketplace)
    }
}

fn check(what: &str, name: &str) -> Result<(), String> {
    let is_valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    if is_valid {
        Ok(())
    } else {
        Err(format!("invalid {what} name: only ASCII letters, digits, `_`, and `-` are allowed"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_two_names_that_are_safe_as_folders() {
        let id: PluginId = "my-plugin_1@Market".parse().unwrap();
        assert_eq!(
            (id.plugin(), id.marketplace(), id.to_string()),
            ("my-plugin_1", "Market", "my-plugin_1@Market".into())
        );
        let error = |key: &str| key.parse::<PluginId>().unwrap_err().to_string();
        for key in ["good", "good@", "@market", ""] {
            assert_eq!(error(key), format!("invalid plugin key `{key}`; expected <plugin>@<marketplace>"));
        }
        let allowed = "only ASCII letters, digits, `_`, and `-` are allowed";
        assert_eq!(error("a b@c"), format!("invalid plugin name: {allowed} in `a b@c`"));
        assert_eq!(error("a@../c"), format!("invalid marketplace name: {allowed} in `a@../c`"));
        assert_eq!(PluginId::new("..", "m").unwrap_err().to_string(), format!("invalid plugin name: {allowed}"));
    }
}
