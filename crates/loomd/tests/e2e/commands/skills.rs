//! `loomd skills`, with the examples of `docs/skills.md`.

use loomd_testkit::model::message;
use loomd_testkit::{Home, ScriptedModel};
use serde_json::{Value, json};

use super::{command, home};
use crate::common::{in_time, launch};

const DOCS: &str = include_str!("../../../../../docs/skills.md");

/// The block of the document with this info string.
fn example(kind: &str) -> String {
    let (_, block) = DOCS.split_once(&format!("```{kind}\n")).unwrap_or_else(|| panic!("no example {kind}"));
    block.split_once("```").unwrap().0.to_owned()
}

async fn listed(home: &Home, args: &[&str]) -> String {
    let mut command = command(home, args);
    command.current_dir(home.work());
    let output = in_time("the list", command.output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn put(home: &Home, file: &str, text: &str) -> String {
    let path = home.work().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.canonicalize().unwrap().to_str().unwrap().to_owned()
}

#[tokio::test]
async fn the_documented_skill_is_listed_with_what_its_settings_say() {
    let model = ScriptedModel::start().await;
    let home = home(&model);
    let path = put(&home, ".agents/skills/release-notes/SKILL.md", &example("markdown skill"));
    put(&home, ".agents/skills/release-notes/agents/openai.yaml", &example("yaml agent"));
    let broken = put(&home, ".agents/skills/broken/SKILL.md", "no head");

    let text = listed(&home, &["skills", "list"]).await;
    assert!(text.starts_with(&format!("release-notes (repo)\n  Draft release notes\n  {path}\n")), "{text}");
    assert!(text.contains("skill-creator (system)"), "{text}");
    let problem = format!("problems:\n  {broken}: missing YAML frontmatter delimited by ---\n");
    assert!(text.ends_with(&problem), "{text}");

    std::fs::write(home.path().join("config.toml"), example("toml config")).unwrap();
    let listed: Value = serde_json::from_str(&listed(&home, &["skills", "list", "--json"]).await).unwrap();
    let [skill] = listed["skills"].as_array().unwrap().as_slice() else { panic!("not one skill: {listed}") };
    assert_eq!((&skill["name"], &skill["enabled"]), (&json!("release-notes"), &json!(false)));
    let interface = &skill["interface"];
    assert_eq!((&interface["displayName"], &interface["brandColor"]), (&json!("Release notes"), &json!("#2F6FED")));
    assert_eq!(skill["dependencies"]["tools"][0]["value"], "tracker");
}

#[tokio::test]
async fn the_documented_plugin_is_installed_and_brings_its_skill_to_a_thread() {
    let model = ScriptedModel::start().await;
    model.reply(message("done"));
    let home = home(&model);
    let marketplace = put(&home, ".agents/plugins/marketplace.json", &example("json marketplace"));
    put(&home, "plugins/team-tools/.codex-plugin/plugin.json", &example("json manifest"));
    put(&home, "plugins/team-tools/.mcp.json", &example("json servers"));
    put(&home, "plugins/team-tools/skills/release-notes/SKILL.md", &example("markdown skill"));
    let server = launch().stdio(&home);
    server.initialize().await;

    let params = json!({ "marketplacePath": marketplace, "pluginName": "team-tools" });
    let read = server.request("plugin/read", params.clone()).await.unwrap();
    assert_eq!(read["plugin"]["mcpServers"], json!(["tracker"]));
    let installed = server.request("plugin/install", params).await.unwrap();
    assert_eq!(installed, json!({ "authPolicy": "ON_INSTALL", "appsNeedingAuth": [] }));
    let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(config.contains(&example("toml plugin")), "{config}");
    // Its server is not installed here; a thread goes on without it.
    server.request("config/value/write", json!({ "keyPath": "mcp_servers.tracker", "value": { "command": "x", "enabled": false }, "mergeStrategy": "replace" })).await.unwrap();

    let started = server.request("thread/start", json!({ "cwd": home.work() })).await.unwrap();
    let thread = started["thread"]["id"].as_str().unwrap();
    let text = "[@Team](plugin://team-tools@team) $team-tools:release-notes";
    let input = json!([{ "type": "text", "text": text }]);
    server.request("turn/start", json!({ "threadId": thread, "input": input })).await.unwrap();
    server.notification("turn/completed").await;
    let call = model.call(0).await;
    let body = call.body.to_string();
    for part in [
        "- team-tools:release-notes: Draft",
        "`Team tools`: How our team",
        "<name>team-tools:release-notes</name>",
        "`team-tools:`",
    ] {
        assert!(body.contains(part), "{part} in {body}");
    }
}

#[tokio::test]
async fn a_turn_with_a_skill_replays_without_difference_after_the_skill_is_gone() {
    let model = ScriptedModel::start().await;
    model.reply(message("done"));
    let home = home(&model);
    let path = put(&home, ".agents/skills/release-notes/SKILL.md", &example("markdown skill"));
    listed(&home, &["run", "please $release-notes"]).await;
    let text = model.call(0).await.body.to_string();
    assert!(text.contains("<skill>"), "{text}");
    listed(&home, &["replay", "last"]).await;
    std::fs::remove_file(path).unwrap();
    listed(&home, &["replay", "last", "--without-situation"]).await;
}
