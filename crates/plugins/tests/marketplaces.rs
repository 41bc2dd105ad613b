//! Marketplaces and plugins on disk, from the listing to what a thread gets.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::fs;
use std::path::PathBuf;

use loomd_config::{LayerStack, LoadRequest, Overrides};
use loomd_plugins::{ListRequest, PluginCache, PluginError, PluginId, PluginStates};
use loomd_protocol::{AbsolutePathBuf, PluginDetail, PluginMarketplaceEntry, UserInput};
use loomd_skills::SkillRules;
use serde_json::json;

struct World {
    _dir: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for folder in ["home", "user", "work"] {
            fs::create_dir(root.join(folder)).unwrap();
        }
        Self { _dir: dir, root }
    }

    fn at(&self, path: &str) -> AbsolutePathBuf {
        AbsolutePathBuf::new(self.root.join(path)).unwrap()
    }

    fn put(&self, path: &str, text: impl ToString) -> AbsolutePathBuf {
        let path = self.at(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text.to_string()).unwrap();
        path
    }

    /// A marketplace with plugins in `plugins/<name>`.
    fn marketplace(&self, root: &str, name: &str, plugins: &[&str]) -> AbsolutePathBuf {
        let plugin =
            |name: &&str| json!({ "name": name, "source": { "source": "local", "path": format!("./plugins/{name}") } });
        let plugins: Vec<_> = plugins.iter().map(plugin).collect();
        self.put(&format!("{root}/.agents/plugins/marketplace.json"), json!({ "name": name, "plugins": plugins }))
    }

    fn plugin(&self, root: &str, name: &str) {
        let folder = format!("{root}/plugins/{name}");
        let manifest =
            json!({ "name": name, "description": "d\n d", "interface": { "displayName": name.to_uppercase() } });
        self.put(&format!("{folder}/.codex-plugin/plugin.json"), manifest);
        self.put(&format!("{folder}/skills/sk/SKILL.md"), "---\ndescription: d\n---\n");
        self.put(&format!("{folder}/.mcp.json"), json!({ "mcpServers": { "helper": { "command": "x" } } }));
        self.put(&format!("{folder}/.app.json"), json!({ "apps": { "a": { "id": "connector_x" } } }));
    }

    fn stack(&self) -> LayerStack {
        let (home, flags) = (self.at("home"), Overrides::default());
        loomd_config::load(&LoadRequest::new(&home, &flags)).unwrap().stack
    }

    fn list(&self, cwds: &[&str]) -> (Vec<PluginMarketplaceEntry>, Vec<String>) {
        let cwds: Vec<_> = cwds.iter().map(|cwd| self.at(cwd)).collect();
        let (listed, errors) = loomd_plugins::list(&ListRequest {
            home: &self.at("home"),
            user_home: Some(&self.at("user")),
            cwds: &cwds,
            states: &PluginStates::of(&self.stack()),
            added: &[],
            lenient: false,
        });
        (listed, errors.into_iter().map(|error| error.message).collect())
    }

    fn read(&self, marketplace: &AbsolutePathBuf, plugin: &str) -> Result<PluginDetail, PluginError> {
        loomd_plugins::read(&self.at("home"), marketplace, plugin, &PluginStates::default(), &SkillRules::default())
    }
}

fn names(listed: &[PluginMarketplaceEntry]) -> Vec<(String, Vec<String>)> {
    let plugins = |entry: &PluginMarketplaceEntry| entry.plugins.iter().map(|plugin| plugin.id.clone()).collect();
    listed.iter().map(|entry| (entry.name.clone(), plugins(entry))).collect()
}

fn entry(name: &str, plugin: &str) -> (String, Vec<String>) {
    (name.into(), vec![plugin.into()])
}

#[test]
fn the_users_marketplace_comes_first_and_a_plugin_is_listed_once() {
    let world = World::new();
    world.marketplace("user", "own", &["a"]);
    world.marketplace("work/z", "own", &["a", "b"]);
    world.marketplace("work/a", "other", &["c"]);
    world.marketplace("home/.tmp/plugins", "openai-curated", &["d"]);
    world.marketplace("work/empty", "empty", &[]);
    fs::create_dir_all(world.at("work/a/.git")).unwrap();
    fs::write(world.at("work/a/.git/HEAD"), "ref: refs/heads/main").unwrap();
    fs::create_dir_all(world.at("work/a/deep")).unwrap();
    let (listed, errors) = world.list(&["work/z", "work/a/deep", "work/a", "work/empty"]);
    assert_eq!(
        names(&listed),
        [
            entry("own", "a@own"),
            entry("openai-curated", "d@openai-curated"),
            entry("other", "c@other"),
            entry("own", "b@own")
        ]
    );
    assert_eq!(errors, [""; 0]);
}

#[test]
fn a_broken_marketplace_is_an_error_and_the_others_are_listed() {
    let world = World::new();
    world.marketplace("user", "own", &["a"]);
    let broken = world.put("work/.agents/plugins/marketplace.json", "{nope");
    let (listed, errors) = world.list(&["work"]);
    assert_eq!(names(&listed), [entry("own", "a@own")]);
    assert!(errors[0].starts_with(&format!("invalid marketplace file `{}`: ", broken.display())), "{errors:?}");
}

#[test]
fn reading_shows_what_a_plugin_brings() {
    let world = World::new();
    let file = world.marketplace("work", "m", &["good", "gone", "empty"]);
    world.plugin("work", "good");
    fs::create_dir_all(world.at("work/plugins/empty")).unwrap();
    let found = world.read(&file, "good").unwrap();
    assert_eq!(found.skills.iter().map(|skill| &*skill.name).collect::<Vec<_>>(), ["good:sk"]);
    assert_eq!((found.mcp_servers, found.apps[0].id.as_str()), (vec!["helper".into()], "connector_x"));
    let error = |plugin: &str| world.read(&file, plugin).unwrap_err().to_string();
    assert_eq!(error("nope"), "plugin `nope` was not found in marketplace `m`");
    assert_eq!(error("gone"), "path does not exist or is not a directory");
    assert_eq!(error("empty"), "missing or invalid .codex-plugin/plugin.json");
    let elsewhere = world.put("work/market.json", "{}");
    let misplaced = world.read(&elsewhere, "x").unwrap_err().to_string();
    assert!(misplaced.ends_with("marketplace file must live under `<root>/.agents/plugins/`"), "{misplaced}");
    let missing = world.at("work/none.json");
    let expected = format!("marketplace file `{}` does not exist", missing.display());
    assert_eq!(world.read(&missing, "x").unwrap_err().to_string(), expected);
}

#[test]
fn a_plugin_is_active_when_it_is_installed_and_enabled_by_the_user() {
    let world = World::new();
    world.plugin("work", "good");
    let (home, id): (_, PluginId) = (world.at("home"), "good@m".parse().unwrap());
    PluginCache::new(&home).install(&world.at("work/plugins/good"), &id, "local").unwrap();
    let active = |config: &str| {
        world.put("home/config.toml", config);
        loomd_plugins::active(&home, &world.stack())
    };
    assert_eq!(active(""), []);
    assert_eq!(active("[plugins.\"good@m\"]\nenabled = false"), []);
    assert_eq!(active("[plugins.\"missing@m\"]\n[plugins.\"no id\"]"), []);
    let [plugin] = active("[plugins.\"good@m\"]").try_into().unwrap();
    assert_eq!((&*plugin.name, &*plugin.display_name, plugin.description.as_deref()), ("good", "GOOD", Some("d d")));
    assert_eq!(plugin.mcp_servers.keys().collect::<Vec<_>>(), ["helper"]);

    let plugins = [plugin];
    let text = |text: &str| UserInput::Text { text: text.into(), text_elements: Vec::new() };
    let mention = |path: &str| UserInput::Mention { name: "x".into(), path: path.into() };
    let mentioned = |input| loomd_plugins::mentioned(&plugins, &[input]).len();
    assert_eq!((mentioned(text("[@good](plugin://good@m) go")), mentioned(mention("plugin://good@m"))), (1, 1));
    assert_eq!((mentioned(text("@good plugin://good@m")), mentioned(mention("plugin://other@m"))), (0, 0));
}
