//! `<root>/.agents/plugins/marketplace.json`: a list of plugins in folders below its root.

use std::path::{Component, Path, PathBuf};

use loomd_protocol::{AbsolutePathBuf, JsonValue, MarketplaceInterface, PluginAuthPolicy, PluginInstallPolicy};
use serde::Deserialize;

use crate::error::PluginError;

/// The name of the marketplace that is kept in the home.
pub const CURATED: &str = "openai-curated";

/// Where the file is, relative to its root.
const FILE: &str = ".agents/plugins/marketplace.json";
/// Where other agents keep theirs.
const OTHER_FILE: &str = ".claude-plugin/marketplace.json";
const MAX_FILE: u64 = 4 << 20;
/// Plugins of one file.
const MAX_PLUGINS: usize = 10_000;

/// A marketplace file.
#[derive(Clone, Debug, PartialEq)]
pub struct Marketplace {
    pub name: String,
    pub path: AbsolutePathBuf,
    pub interface: Option<MarketplaceInterface>,
    pub plugins: Vec<MarketplacePlugin>,
}

/// A plugin that a marketplace lists. Its folder need not exist.
#[derive(Clone, Debug, PartialEq)]
pub struct MarketplacePlugin {
    pub name: String,
    /// The folder, or why it cannot be used.
    pub source: Result<AbsolutePathBuf, String>,
    pub install_policy: PluginInstallPolicy,
    pub auth_policy: PluginAuthPolicy,
    /// False when it is meant for other products only.
    pub for_us: bool,
    pub category: Option<String>,
}

#[derive(Deserialize)]
struct FileContent {
    name: String,
    #[serde(default)]
    interface: Option<InterfaceContent>,
    plugins: Vec<PluginContent>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InterfaceContent {
    #[serde(default)]
    display_name: Option<String>,
}

#[derive(Deserialize)]
struct PluginContent {
    name: String,
    source: SourceContent,
    #[serde(default)]
    policy: PolicyContent,
    #[serde(default)]
    category: Option<String>,
}

/// A folder, as other agents write it or as we do.
enum SourceContent {
    Path(String),
    Object(SourceObject),
}

#[derive(Deserialize)]
#[serde(tag = "source", rename_all = "lowercase", expecting = "an object with `source` and `path`")]
enum SourceObject {
    Local { path: String },
}

impl<'de> Deserialize<'de> for SourceContent {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match JsonValue::deserialize(deserializer)? {
            JsonValue::String(path) => Ok(Self::Path(path)),
            other => SourceObject::deserialize(other).map(Self::Object).map_err(serde::de::Error::custom),
        }
    }
}

#[derive(Default, Deserialize)]
struct PolicyContent {
    #[serde(default)]
    installation: Option<PluginInstallPolicy>,
    #[serde(default)]
    authentication: Option<PluginAuthPolicy>,
    #[serde(default)]
    products: Option<Vec<String>>,
}

impl Marketplace {
    /// The file of a root, whether it exists or not.
    pub fn file_of(root: &Path) -> PathBuf {
        root.join(FILE)
    }

    /// The file of a root that has one.
    pub fn existing_file(root: &Path) -> Option<PathBuf> {
        [FILE, OTHER_FILE].iter().map(|file| root.join(file)).find(|file| file.is_file())
    }

    /// Reads a file.
    pub fn load(path: &AbsolutePathBuf) -> Result<Self, PluginError> {
        let invalid = |detail: String| PluginError::InvalidMarketplace { path: path.to_path_buf(), detail };
        let text = match loomd_regular::read(path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(PluginError::NoMarketplace(path.to_path_buf()));
            }
            Err(error) => return Err(invalid(error.to_string())),
        };
        let root = root_of(path)
            .ok_or_else(|| invalid("marketplace file must live under `<root>/.agents/plugins/`".into()))?;
        Self::parse(&text, path, &root).map_err(invalid)
    }

    fn parse(text: &[u8], path: &AbsolutePathBuf, root: &AbsolutePathBuf) -> Result<Self, String> {
        let content: FileContent = serde_json::from_slice(text).map_err(|error| error.to_string())?;
        if content.plugins.len() > MAX_PLUGINS {
            return Err(format!("more than {MAX_PLUGINS} plugins"));
        }
        let plugin = |plugin: PluginContent| {
            let (SourceContent::Path(path) | SourceContent::Object(SourceObject::Local { path })) = plugin.source;
            let products = plugin.policy.products;
            let is_ours = |product: &String| product.eq_ignore_ascii_case("codex");
            MarketplacePlugin {
                name: plugin.name,
                source: source_folder(root, &path).map_err(Into::into),
                install_policy: plugin.policy.installation.unwrap_or(PluginInstallPolicy::Available),
                auth_policy: plugin.policy.authentication.unwrap_or(PluginAuthPolicy::OnInstall),
                for_us: products.is_none_or(|products| products.iter().any(is_ours)),
                category: plugin.category,
            }
        };
        Ok(Self {
            name: content.name,
            path: path.clone(),
            interface: content.interface.map(|InterfaceContent { display_name }| MarketplaceInterface { display_name }),
            plugins: content.plugins.into_iter().map(plugin).collect(),
        })
    }

    /// The folder of a plugin of this file.
    pub fn source<'a>(&self, plugin: &'a MarketplacePlugin) -> Result<&'a AbsolutePathBuf, PluginError> {
        let invalid =
            |detail: &String| PluginError::InvalidMarketplace { path: self.path.to_path_buf(), detail: detail.clone() };
        plugin.source.as_ref().map_err(invalid)
    }

    /// The plugin of a name.
    pub fn find(&self, name: &str) -> Result<&MarketplacePlugin, PluginError> {
        self.plugins
            .iter()
            .find(|plugin| plugin.name == name)
            .ok_or_else(|| PluginError::NotFound { plugin: name.into(), marketplace: self.name.clone() })
    }
}

/// The folder whose marketplace a file is.
fn root_of(path: &AbsolutePathBuf) -> Option<AbsolutePathBuf> {
    let plugins = path.parent()?;
    if plugins.file_name()? == ".claude-plugin" {
        return AbsolutePathBuf::new(plugins.parent()?);
    }
    let agents = plugins.parent()?;
    let is_in_place = plugins.file_name()? == "plugins" && agents.file_name()? == ".agents";
    is_in_place.then(|| AbsolutePathBuf::new(agents.parent()?)).flatten()
}

fn source_folder(root: &AbsolutePathBuf, path: &str) -> Result<AbsolutePathBuf, &'static str> {
    let below = path.strip_prefix("./").ok_or("local plugin source path must start with `./`")?;
    if below.is_empty() {
        return Err("local plugin source path must not be empty");
    }
    if !Path::new(below).components().all(|part| matches!(part, Component::Normal(_))) {
        return Err("local plugin source path must stay within the marketplace root");
    }
    Ok(AbsolutePathBuf::resolve(root, below))
}

/// The root of the curated marketplace.
pub fn curated_folder(home: &Path) -> PathBuf {
    home.join(".tmp/plugins")
}

/// The version of the curated marketplace that is in the home.
pub fn curated_version(home: &Path) -> Option<String> {
    let text = loomd_regular::read_to_string(&home.join(".tmp/plugins.sha"), 256).ok()?;
    let version = text.trim();
    let is_name = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_name.then(|| version.to_owned())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parsed(text: &str) -> Result<Marketplace, String> {
        let path = AbsolutePathBuf::new("/r/.agents/plugins/marketplace.json").unwrap();
        Marketplace::parse(text.as_bytes(), &path, &root_of(&path).unwrap())
    }

    fn plugin(text: &str) -> MarketplacePlugin {
        parsed(&format!(r#"{{"name": "m", "plugins": [{text}]}}"#)).unwrap().plugins.remove(0)
    }

    #[test]
    fn what_a_file_does_not_say_has_defaults() {
        let found = plugin(r#"{"name": "p", "source": {"source": "local", "path": "./a/b"}}"#);
        let expected = MarketplacePlugin {
            name: "p".into(),
            source: Ok(AbsolutePathBuf::new("/r/a/b").unwrap()),
            install_policy: PluginInstallPolicy::Available,
            auth_policy: PluginAuthPolicy::OnInstall,
            for_us: true,
            category: None,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn products_decide_for_whom_a_plugin_is() {
        let for_us = |products: &str| {
            plugin(&format!(
                r#"{{"name": "p", "source": {{"source": "local", "path": "./p"}}, "policy": {{"products": {products}}}}}"#
            ))
            .for_us
        };
        assert!(for_us("null") && for_us(r#"["CHATGPT", "CODEX"]"#) && for_us(r#"["codex"]"#));
        assert!(!for_us("[]") && !for_us(r#"["CHATGPT"]"#));
    }

    #[test]
    fn sources_stay_below_the_root() {
        let error = |path: &str| {
            plugin(&format!(r#"{{"name": "p", "source": {{"source": "local", "path": "{path}"}}}}"#))
                .source
                .unwrap_err()
        };
        for path in ["../x", "/x", "x", ""] {
            assert_eq!(error(path), "local plugin source path must start with `./`", "{path}");
        }
        assert_eq!(error("./"), "local plugin source path must not be empty");
        for path in ["./../x", "./a/../../x", ".//etc"] {
            assert_eq!(error(path), "local plugin source path must stay within the marketplace root", "{path}");
        }
        let unknown =
            parsed(r#"{"name": "m", "plugins": [{"name": "p", "source": {"source": "ftp", "path": "./p"}}]}"#);
        assert!(unknown.unwrap_err().starts_with("unknown variant `ftp`, expected `local`"));
    }

    proptest! {
        #[test]
        fn any_text_is_parsed_or_refused(text in "([{}\\[\\]\":,./ a-z0-9]|\\PC){0,200}") {
            _ = parsed(&text);
        }
    }
}
