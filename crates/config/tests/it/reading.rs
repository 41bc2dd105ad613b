//! The result of `config/read`.

use loomd_protocol::{ConfigReadResponse, JsonValue};
use serde_json::json;

use crate::{Fixture, bare, user};

fn read(fixture: &Fixture) -> ConfigReadResponse {
    loomd_config::read(&fixture.load().unwrap(), true).unwrap()
}

fn config(fixture: &Fixture) -> JsonValue {
    serde_json::to_value(read(fixture).config).unwrap()
}

/// The message of `config/read` when it fails.
fn refused(fixture: &Fixture) -> String {
    let error = fixture.load().and_then(|loaded| loomd_config::read(&loaded, false)).unwrap_err();
    fixture.neutral(&error.read_message())
}

const DEFAULT_FEATURES: &str =
    r#"{"apps":true,"plugins":true,"tool_search":false,"tool_suggest":true,"tool_call_mcp_elicitation":true}"#;

#[test]
fn every_known_key_is_listed() {
    let config = config(&bare());
    let shown: Vec<_> = config.as_object().unwrap().iter().filter(|(_, value)| !value.is_null()).collect();
    let nulls = json!({
        "inherit": null, "ignore_default_excludes": null, "exclude": null, "set": null, "include_only": null,
        "experimental_use_profile": null,
    });
    let expected = [
        ("profiles", json!({})),
        ("model_providers", json!({})),
        ("shell_environment_policy", nulls),
        ("features", serde_json::from_str(DEFAULT_FEATURES).unwrap()),
        ("mcp_servers", json!({})),
        ("plugins", json!({})),
        ("marketplaces", json!({})),
    ];
    let expected: Vec<_> = expected.iter().map(|(key, value)| ((*key).to_owned(), value)).collect();
    assert_eq!(shown.into_iter().map(|(key, value)| (key.clone(), value)).collect::<Vec<_>>(), expected);
    for key in ["model", "review_model", "web_search", "developer_instructions", "profile", "otel", "tui", "apps"] {
        assert_eq!(config.get(key), Some(&JsonValue::Null), "{key}");
    }
}

#[test]
fn structured_values_are_listed_with_defaults() {
    let fixture = user(
        "future = 1
        sandbox_workspace_write.writable_roots = ['cache']
        apps.a.enabled = false
        history.max_bytes = 5
        audio.microphone = 'm'
        tui.unknown = 1
        [model_providers.m]
        name = 'M'
        experimental_bearer_token = 't'
        [mcp_servers.s]
        command = 'c'
        env = { A = '1' }",
    );
    let config = config(&fixture);
    assert_eq!(config.get("future"), None);
    assert_eq!(
        config["sandbox_workspace_write"],
        json!({
            "writable_roots": [fixture.home.join("cache")],
            "network_access": false, "exclude_tmpdir_env_var": false, "exclude_slash_tmp": false,
        })
    );
    assert_eq!(
        config["apps"],
        json!({"_default": null, "a": {
            "default_tools_approval_mode": null, "default_tools_enabled": null, "destructive_enabled": null,
            "enabled": false, "open_world_enabled": null, "tools": null,
        }})
    );
    assert_eq!(config["history"], json!({"persistence": "save-all", "max_bytes": 5}));
    assert_eq!(config["audio"], json!({"microphone": "m", "speaker": null}));
    assert_eq!((config["tui"].get("unknown"), &config["tui"]["animations"]), (None, &json!(true)));
    assert_eq!(
        config["model_providers"]["m"],
        json!({
            "name": "M", "base_url": null, "env_key": null, "env_key_instructions": null,
            "experimental_bearer_token": "t", "auth": null, "wire_api": "responses", "query_params": null,
            "http_headers": null, "env_http_headers": null, "request_max_retries": null, "stream_max_retries": null,
            "stream_idle_timeout_ms": null, "websocket_connect_timeout_ms": null, "requires_openai_auth": false,
            "supports_websockets": false,
        })
    );
    assert_eq!(
        config["mcp_servers"]["s"],
        json!({"command": "c", "args": [], "env": {"A": "1"}, "enabled": true, "tool_timeout_sec": null})
    );
}

#[test]
fn profiles_are_listed_but_not_applied() {
    let config = config(&user("profile = 'p'\nmodel = 'top'\n[profiles.p]\nmodel = 'profile'"));
    assert_eq!((&config["model"], &config["profile"]), (&json!("top"), &json!("p")));
    assert_eq!(config["profiles"]["p"]["model"], "profile");
}

#[test]
fn features_are_listed_with_their_effective_state() {
    let features = |fixture: Fixture| config(&fixture)["features"].clone();
    let changed = |changes: JsonValue| {
        let mut features: JsonValue = serde_json::from_str(DEFAULT_FEATURES).unwrap();
        features.as_object_mut().unwrap().extend(changes.as_object().unwrap().clone());
        features
    };
    assert_eq!(
        features(user("features = { js_repl = true, connectors = false }").enablement("tool_search", true)),
        changed(json!({"js_repl": true, "connectors": false, "apps": false, "tool_search": true}))
    );
    assert_eq!(
        features(user("profile = 'p'\nprofiles.p.features.plugins = false")),
        changed(json!({"plugins": false}))
    );
}

#[test]
fn layers_are_listed_highest_first() {
    let fixture = user("model = 'user'\nfuture = [1, 2]").system("model = 'system'").flags(&["model=flag"]);
    let answer = serde_json::to_value(read(&fixture)).unwrap();
    let layers: Vec<_> = answer["layers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|layer| (layer["name"].clone(), layer["config"].clone(), layer["disabledReason"].clone()))
        .collect();
    let user = json!({"type": "user", "file": fixture.root.join("home/config.toml"), "profile": null});
    let system = json!({"type": "system", "file": fixture.root.join("system.toml")});
    assert_eq!(
        layers,
        [
            (json!({"type": "sessionFlags"}), json!({"model": "flag"}), json!(null)),
            (user, json!({"model": "user", "future": [1, 2]}), json!(null)),
            (system, json!({"model": "system"}), json!(null)),
        ]
    );
    let origins = answer["origins"].as_object().unwrap();
    assert_eq!(origins.keys().collect::<Vec<_>>(), ["future.0", "future.1", "model"]);
    assert_eq!(origins["model"]["name"], json!({"type": "sessionFlags"}));
    assert_eq!(origins["model"]["version"], answer["layers"][0]["version"]);
    assert_eq!(loomd_config::read(&fixture.load().unwrap(), false).unwrap().layers, None);
}

#[test]
fn errors_are_worded_for_config_read() {
    assert_eq!(
        refused(&user("model = 5")),
        "invalid configuration: invalid type: integer `5`, expected a string\nin `model`\n"
    );
    assert_eq!(
        refused(&user("model = 'a'\nmodel = 'b'")),
        "failed to read configuration layers: <home>/config.toml:2:1: duplicate key"
    );
    assert_eq!(
        refused(&user("profile = 'x'")),
        "failed to resolve feature override precedence: config profile `x` not found"
    );
    assert_eq!(config(&user("model_provider = 'nope'"))["model_provider"], "nope");
}
