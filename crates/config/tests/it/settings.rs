//! The settings that threads run with: profiles, providers, prompt files, features.

use std::fs;

use loomd_config::config_toml::{ModelProvider, WireApi};
use loomd_config::{Feature, Settings};
use loomd_protocol::{AskForApproval, SandboxMode};
use serde_json::json;

use crate::{bare, user};

fn settings(text: &str) -> Settings {
    user(text).settings().unwrap()
}

#[test]
fn a_profile_overrides_the_top_level() {
    let text = "
        profile = 'p'
        model = 'top'
        review_model = 'top'
        sandbox_mode = 'read-only'
        tools = { view_image = true, web_search = { context_size = 'low' } }
        [features]
        apps = false
        undo = true
        [profiles.p]
        model = 'profile'
        approval_policy = 'untrusted'
        tools = { view_image = false }
        features = { apps = true }
        review_model = 'not a key of profiles'
    ";
    let Settings { config, features, .. } = settings(text);
    assert_eq!(
        (config.model.as_deref(), config.review_model.as_deref(), config.approval_policy, config.sandbox_mode),
        (Some("profile"), Some("top"), Some(AskForApproval::Untrusted), Some(SandboxMode::ReadOnly))
    );
    let tools = config.tools.unwrap();
    assert_eq!((tools.view_image, tools.web_search.is_some()), (Some(false), true));
    assert_eq!((features.enabled(Feature::Apps), features.enabled(Feature::Undo)), (true, true));
}

#[test]
fn a_thread_can_select_a_profile() {
    let fixture = user("[profiles.p]\nmodel = 'profile'").thread(json!({"profile": "p"}));
    assert_eq!(fixture.settings().unwrap().config.model.as_deref(), Some("profile"));
    assert_eq!(bare().thread(json!({"profile": "nope"})).error(), "config profile `nope` not found");
}

#[test]
fn the_selected_provider_is_looked_up() {
    let provider = |text: &str| settings(text).provider;
    assert_eq!(provider(""), ModelProvider::built_in("openai").unwrap());
    assert_eq!(provider("openai_base_url = 'http://o'").base_url.as_deref(), Some("http://o"));
    assert_eq!(provider("model_provider = 'ollama'").base_url.as_deref(), Some("http://localhost:11434/v1"));
    let mine = "model_provider = 'm'\n[model_providers.m]\nname = 'Mine'";
    assert_eq!(provider(mine), ModelProvider { name: "Mine".into(), ..ModelProvider::default() });
    assert_eq!(settings("model_provider = 'rehearsal'").provider.name, "Rehearsal");
    assert_eq!(user("model_provider = 'nope'").error(), "Model provider `nope` not found");
}

#[test]
fn keyed_providers_need_no_configuration() {
    let ids: Vec<_> = ModelProvider::built_in_ids().collect();
    assert!(ids.iter().all(|id| ModelProvider::built_in(id).is_some()));
    let anthropic = settings("model_provider = 'anthropic'").provider;
    assert_eq!((anthropic.wire_api, anthropic.env_key.as_deref()), (WireApi::Anthropic, Some("ANTHROPIC_API_KEY")));
    let own = "model_provider = 'groq'\n[model_providers.groq]\nname = 'Mine'\nbase_url = 'http://x/v1'";
    assert_eq!((settings(own).provider.name, settings(own).provider.env_key), ("Mine".into(), None));
}

#[test]
fn recordings_and_scenarios_apply_to_any_provider() {
    let provider = settings("model_provider = 'rehearsal'\n[loomd]\nrecord = '/tmp/r'\nscenario = 's.jsonl'").provider;
    assert_eq!(provider.record.as_deref(), Some(std::path::Path::new("/tmp/r")));
    assert!(provider.scenario.is_some_and(|path| path.is_absolute() && path.ends_with("s.jsonl")));
}

#[test]
fn contradictory_providers_are_refused() {
    let refused = |provider: &str| user(format!("model_providers.m = {{ name = 'M', {provider} }}")).error();
    assert_eq!(
        refused("auth = { command = 'x' }, env_key = 'K', requires_openai_auth = true"),
        "model_providers.m: provider auth cannot be combined with env_key, requires_openai_auth"
    );
    assert_eq!(refused("auth = { command = ' ' }"), "model_providers.m: provider auth.command must not be empty");
    for id in ModelProvider::RESERVED {
        assert_eq!(
            user(format!("[model_providers.{id}]\nname = 'x'")).error(),
            format!("model_providers.{id}: this provider is built in and cannot be defined again")
        );
    }
}

#[test]
fn retries_have_a_default_and_an_upper_bound() {
    let retries = |provider: ModelProvider| (provider.request_max_retries(), provider.stream_max_retries());
    assert_eq!(retries(ModelProvider::default()), (4, 5));
    let many = ModelProvider { request_max_retries: Some(1000), stream_max_retries: Some(0), ..Default::default() };
    assert_eq!(retries(many), (100, 0));
}

#[test]
fn prompt_files_are_read_and_trimmed() {
    let fixture = user("model_instructions_file = 'i.md'\nexperimental_compact_prompt_file = '~/c.md'");
    assert!(fixture.error().starts_with("failed to read model_instructions_file <home>/i.md: "), "{}", fixture.error());
    fs::write(fixture.home.join("i.md"), " \n").unwrap();
    assert_eq!(fixture.error(), "model_instructions_file <home>/i.md is empty");
    fs::write(fixture.home.join("i.md"), "be brief\n").unwrap();
    fs::write(fixture.root.join("c.md"), "sum up").unwrap();
    let settings = fixture.settings().unwrap();
    assert_eq!(
        (settings.model_instructions.as_deref(), settings.compact_prompt.as_deref()),
        (Some("be brief"), Some("sum up"))
    );
    let inline = fixture.flags(&["compact_prompt=inline"]).settings().unwrap();
    assert_eq!(inline.compact_prompt.as_deref(), Some("inline"));
}

#[test]
fn permission_profiles_require_a_selected_one() {
    let permissions = "[permissions.p.filesystem]\n':root' = 'read'";
    assert_eq!(user(permissions).error(), "`permissions` needs `default_permissions`, the profile to use");
    settings(&format!("default_permissions = 'p'\n{permissions}"));
    settings(&format!("sandbox_mode = 'read-only'\n{permissions}"));
    assert_eq!(user("default_permissions = 'p'").error(), "default_permissions requires a `[permissions]` table");
    let other = user(format!("default_permissions = 'q'\n{permissions}"));
    assert_eq!(other.error(), "default_permissions refers to undefined profile `q`");
}

#[test]
fn the_highest_layer_decides_between_permission_profile_and_sandbox_mode() {
    let check = |text: &str, flags: &[&str], expected: bool| {
        let fixture = user(format!("{text}\n[permissions.p.filesystem]\n':root' = 'read'"));
        let permissions = fixture.flags(flags).settings().unwrap().permissions;
        assert_eq!(permissions.is_some(), expected, "{text} {flags:?}");
    };
    let (profile, mode) = ("default_permissions = 'p'", "sandbox_mode = 'workspace-write'");
    check(profile, &[], true);
    check(&format!("{profile}\n{mode}"), &[], true);
    check(mode, &["default_permissions=p"], true);
    check(profile, &["sandbox_mode=read-only"], false);
    check(&format!("{profile}\nprofile = 'x'\n[profiles.x]\n{mode}"), &[], false);
    check(&format!("profile = 'x'\n[profiles.x]\n{mode}"), &["default_permissions=p"], true);
}

#[test]
fn features_follow_layer_precedence() {
    let enabled = |fixture: crate::Fixture, feature| fixture.settings().unwrap().features.enabled(feature);
    assert!(enabled(bare().enablement("tool_search", true), Feature::ToolSearch));
    assert!(!enabled(user("features.tool_search = false").enablement("tool_search", true), Feature::ToolSearch));
    assert!(!enabled(bare().enablement("apps", true).flags(&["features.apps=false"]), Feature::Apps));
    // A deprecated name in a higher layer overrides the current name in a lower one.
    assert!(enabled(user("features.multi_agent = false").flags(&["features.collab=true"]), Feature::MultiAgent));
}
