//! `.codex-plugin/plugin.json`: what a plugin says about itself. A field that is not understood is left out alone.

use std::path::{Component, Path, PathBuf};

use loomd_protocol::{AbsolutePathBuf, JsonObject, JsonValue, PluginInterface};

/// Where it is, relative to the plugin's folder.
const FILE: &str = ".codex-plugin/plugin.json";
const MAX_FILE: u64 = 1 << 20;

const MAX_PROMPTS: usize = 3;
const MAX_PROMPT: usize = 128;
/// Strings of lists.
const MAX_LIST: usize = 64;

/// What a plugin says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Manifest {
    /// That of the folder when the file has none.
    pub name: String,
    pub description: Option<String>,
    pub version: Option<String>,
    pub keywords: Vec<String>,
    /// A folder of skills beside `skills`.
    pub skills: Option<PathBuf>,
    /// The file of MCP servers, in place of `.mcp.json`.
    pub mcp_servers: Option<PathBuf>,
    /// The file of apps, in place of `.app.json`.
    pub apps: Option<PathBuf>,
    /// `None` when no field of it is valid.
    pub interface: Option<PluginInterface>,
}

impl Manifest {
    pub fn file_of(folder: &Path) -> PathBuf {
        folder.join(FILE)
    }

    /// Reads the manifest of a folder; `None` when it is missing or no JSON object.
    pub fn read(folder: &AbsolutePathBuf) -> Option<Self> {
        let text = loomd_regular::read(&Self::file_of(folder), MAX_FILE).ok()?;
        let value: JsonValue = serde_json::from_slice(&text).ok()?;
        Some(Self::parse(value.as_object()?, folder))
    }

    fn parse(object: &JsonObject, folder: &AbsolutePathBuf) -> Self {
        let folder_name = || folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let path = |key: &str| inside(folder, text(object, key)?).map(AbsolutePathBuf::into_path_buf);
        Self {
            name: text(object, "name")
                .map(str::trim)
                .filter(|name| !name.is_empty())
                .map_or_else(folder_name, Into::into),
            description: text(object, "description").map(Into::into),
            version: text(object, "version").map(str::trim).filter(|version| !version.is_empty()).map(Into::into),
            keywords: texts(object, "keywords").map(Into::into).collect(),
            skills: path("skills"),
            mcp_servers: path("mcpServers"),
            apps: path("apps"),
            interface: object
                .get("interface")
                .and_then(JsonValue::as_object)
                .map(|object| interface(object, folder))
                .filter(|interface| *interface != empty_interface()),
        }
    }

    /// The name for people.
    pub fn display_name(&self) -> &str {
        let shown = self.interface.as_ref().and_then(|interface| interface.display_name.as_deref());
        shown.map(str::trim).filter(|name| !name.is_empty()).unwrap_or(&self.name)
    }
}

/// The interface of a plugin that has only a category.
pub(crate) fn empty_interface() -> PluginInterface {
    PluginInterface {
        display_name: None,
        short_description: None,
        long_description: None,
        developer_name: None,
        category: None,
        capabilities: Vec::new(),
        website_url: None,
        privacy_policy_url: None,
        terms_of_service_url: None,
        default_prompt: None,
        brand_color: None,
        composer_icon: None,
        logo: None,
        screenshots: Vec::new(),
        screenshot_urls: Vec::new(),
    }
}

fn interface(object: &JsonObject, folder: &AbsolutePathBuf) -> PluginInterface {
    let string = |key: &str| text(object, key).map(Into::into);
    let url = |upper: &str, lower: &str| text(object, upper).or_else(|| text(object, lower)).map(Into::into);
    let asset = |key: &str| inside(folder, text(object, key)?);
    PluginInterface {
        display_name: string("displayName"),
        short_description: string("shortDescription"),
        long_description: string("longDescription"),
        developer_name: string("developerName"),
        category: string("category"),
        capabilities: texts(object, "capabilities").map(Into::into).collect(),
        website_url: url("websiteURL", "websiteUrl"),
        privacy_policy_url: url("privacyPolicyURL", "privacyPolicyUrl"),
        terms_of_service_url: url("termsOfServiceURL", "termsOfServiceUrl"),
        default_prompt: default_prompts(object.get("defaultPrompt")),
        brand_color: string("brandColor"),
        composer_icon: asset("composerIcon"),
        logo: asset("logo"),
        screenshots: texts(object, "screenshots").filter_map(|path| inside(folder, path)).collect(),
        screenshot_urls: Vec::new(),
    }
}

/// One prompt or several; `None` when none is valid.
fn default_prompts(value: Option<&JsonValue>) -> Option<Vec<String>> {
    let given = match value? {
        JsonValue::Array(prompts) => prompts.as_slice(),
        prompt => std::slice::from_ref(prompt),
    };
    let collapsed = given.iter().filter_map(JsonValue::as_str).map(|prompt| {
        let words: Vec<&str> = prompt.split_whitespace().collect();
        words.join(" ")
    });
    let valid = collapsed.filter(|prompt| !prompt.is_empty() && prompt.chars().count() <= MAX_PROMPT);
    Some(valid.take(MAX_PROMPTS).collect()).filter(|prompts: &Vec<String>| !prompts.is_empty())
}

fn text<'a>(object: &'a JsonObject, key: &str) -> Option<&'a str> {
    object.get(key)?.as_str()
}

fn texts<'a>(object: &'a JsonObject, key: &str) -> impl Iterator<Item = &'a str> {
    object.get(key).and_then(JsonValue::as_array).into_iter().flatten().filter_map(JsonValue::as_str).take(MAX_LIST)
}

/// The path of something inside a folder, which need not exist. It is written with `./` and stays inside.
fn inside(folder: &AbsolutePathBuf, path: &str) -> Option<AbsolutePathBuf> {
    let below = path.strip_prefix("./").filter(|below| !below.is_empty())?;
    let stays = Path::new(below).components().all(|part| matches!(part, Component::Normal(_)));
    stays.then(|| AbsolutePathBuf::resolve(folder, below))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(value: JsonValue) -> Manifest {
        Manifest::parse(value.as_object().unwrap(), &AbsolutePathBuf::new("/p/folder").unwrap())
    }

    #[test]
    fn a_manifest_without_a_name_is_named_like_its_folder() {
        assert_eq!(parsed(json!({})).name, "folder");
        assert_eq!(parsed(json!({ "name": " " })).name, "folder");
        let named = parsed(json!({ "name": "n", "interface": { "displayName": "N" } }));
        assert_eq!((named.name.as_str(), named.display_name()), ("n", "N"));
    }

    #[test]
    fn paths_begin_with_a_dot_and_stay_inside() {
        let manifest = parsed(
            json!({ "skills": "./more", "mcpServers": "servers.json", "apps": "./../apps.json", "interface": {
                "logo": "./a/l.png", "composerIcon": "/etc/i.png", "screenshots": ["./s.png", "../t.png", 3, "./"] } }),
        );
        assert_eq!(manifest.skills, Some("/p/folder/more".into()));
        assert_eq!((manifest.mcp_servers, manifest.apps), (None, None));
        let interface = manifest.interface.unwrap();
        assert_eq!((interface.logo, interface.composer_icon), (AbsolutePathBuf::new("/p/folder/a/l.png"), None));
        assert_eq!(interface.screenshots, [AbsolutePathBuf::new("/p/folder/s.png").unwrap()]);
    }

    #[test]
    fn at_most_three_valid_prompts_are_kept() {
        let prompts = |value: JsonValue| default_prompts(Some(&value));
        let long = "x".repeat(129);
        assert_eq!(prompts(json!(["a   b", long, 3, "", "c", "d", "e"])).unwrap(), ["a b", "c", "d"]);
        assert_eq!(prompts(json!("one\nline")).unwrap(), ["one line"]);
        assert_eq!(prompts(json!([long])), None);
    }

    proptest! {
        #[test]
        fn any_json_object_is_a_manifest(keys in proptest::collection::vec(("[a-zA-Z]{1,12}", "[./a-z ]{0,12}"), 0..8)) {
            let object: JsonObject = keys.into_iter().map(|(key, value)| (key, value.into())).collect();
            let manifest = parsed(json!({ "interface": object.clone() }));
            prop_assert_ne!(manifest.interface, Some(empty_interface()));
            parsed(JsonValue::Object(object));
        }
    }
}
