//! Project layers, and an administrator's requirements.

use std::fs;

use loomd_config::config_toml::TrustLevel;
use loomd_config::{LoadRequest, ManagedRequirements};
use loomd_protocol::{AbsolutePathBuf, AskForApproval};

use crate::{Fixture, user};

fn project(fixture: &Fixture, text: &str) -> AbsolutePathBuf {
    let folder = AbsolutePathBuf::resolve(&fixture.root, "w");
    fs::create_dir_all(folder.join(".codex")).unwrap();
    fs::write(folder.join(".codex/config.toml"), text).unwrap();
    folder
}

fn trusting() -> Fixture {
    let fixture = user("");
    let key = fixture.root.join("w");
    let text = format!("model = 'user'\n[projects.'{}']\ntrust_level = 'trusted'\n", key.display());
    fs::write(fixture.home.join("config.toml"), text).unwrap();
    fixture
}

#[test]
fn a_trusted_project_overrides_the_user_and_resolves_paths_in_its_folder() {
    let fixture = trusting();
    let cwd = project(&fixture, "model = 'project'\nsandbox_workspace_write.writable_roots = ['./out']");
    let loaded = loomd_config::load(&LoadRequest { cwd: Some(&cwd), ..fixture.request() }).unwrap();
    assert_eq!(loaded.config.model.as_deref(), Some("project"));
    assert_eq!(loaded.trust, Some(TrustLevel::Trusted));
    let roots = loaded.config.sandbox_workspace_write.unwrap().writable_roots;
    assert_eq!(roots, [AbsolutePathBuf::resolve(&cwd, ".codex/out")]);
    assert_eq!(fixture.load().unwrap().config.model.as_deref(), Some("user"));
}

#[test]
fn an_error_in_a_trusted_project_has_its_location() {
    let fixture = trusting();
    let cwd = project(&fixture, "\nmodel = 5");
    let error = loomd_config::load(&LoadRequest { cwd: Some(&cwd), ..fixture.request() }).unwrap_err();
    assert!(
        fixture.neutral(&error.to_string()).starts_with("<root>/w/.codex/config.toml:2:9: invalid type"),
        "{error}"
    );
}

#[test]
fn an_untrusted_project_gives_a_warning_at_start() {
    let fixture = user("model = 'user'");
    let cwd = project(&fixture, "model = 'project'");
    let start = loomd_config::load_or_default(&LoadRequest { cwd: Some(&cwd), ..fixture.request() }).unwrap();
    assert_eq!(start.loaded.config.model.as_deref(), Some("user"));
    let summaries: Vec<_> = start.warnings.iter().map(|warning| fixture.neutral(&warning.summary)).collect();
    assert_eq!(
        summaries,
        ["The following project folders have configuration that is not used:\n    <root>/w/.codex\n        \
          To load config.toml, add <root>/w as a trusted project in <home>/config.toml."]
    );
}

#[test]
fn a_disallowed_value_falls_back_with_a_warning() {
    let fixture = user("approval_policy = 'never'");
    fs::write(fixture.root.join("requirements.toml"), "allowed_approval_policies = ['on-request']").unwrap();
    let start = fixture.start().unwrap();
    assert_eq!(start.settings.config.approval_policy, Some(AskForApproval::OnRequest));
    assert_eq!(start.loaded.config.approval_policy, Some(AskForApproval::Never), "what was written is shown");
    let summary = &start.warnings[0].summary;
    assert!(
        summary.starts_with(
            "Configured value for `approval_policy` is disallowed by requirements; falling back to required value"
        ),
        "{summary}"
    );
}

#[test]
fn a_managed_config_is_the_highest_layer_and_sets_requirements() {
    let fixture = user("approval_policy = 'untrusted'\nmodel = 'user'").flags(&["model=flag"]);
    fs::write(fixture.root.join("managed_config.toml"), "approval_policy = 'never'\nmodel = 'managed'").unwrap();
    let loaded = fixture.load().unwrap();
    assert_eq!(loaded.config.model.as_deref(), Some("managed"));
    assert!(loaded.requirements.check_approval_policy(&AskForApproval::OnRequest).is_err());
}

#[test]
fn contradictory_requirements_are_refused_by_key_from_every_source() {
    let contradictions = [
        ("allowed_approval_policies = []", "field `allowed_approval_policies` cannot be empty"),
        (
            "allowed_sandbox_modes = []",
            "invalid value for `allowed_sandbox_modes`: `[]` is not in the allowed set must include 'read-only' to \
             allow any SandboxPolicy (set by <source>)",
        ),
    ];
    for (text, message) in contradictions {
        let fixture = user("");
        let managed = ManagedRequirements::default();
        managed.set(Ok(Some(text.into())));
        let error = loomd_config::load(&LoadRequest { managed: Some(&managed), ..fixture.request() }).unwrap_err();
        let expected = message.replace("<source>", "cloud requirements");
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.read_message(), format!("failed to read configuration layers: {expected}"));
        fs::write(fixture.root.join("requirements.toml"), text).unwrap();
        let error = fixture.neutral(&fixture.load().unwrap_err().to_string());
        let source = "<root>/requirements.toml";
        assert_eq!(error, format!("{source}: {}", message.replace("<source>", source)));
    }
}

#[test]
fn an_unknown_pinned_feature_can_be_read_but_not_resolved() {
    let fixture = user("");
    fs::write(fixture.root.join("requirements.toml"), "features.nope = true").unwrap();
    let loaded = fixture.load().unwrap();
    let shown = loaded.requirements.to_wire().and_then(|wire| wire.feature_requirements).unwrap();
    assert_eq!(shown.get("nope"), Some(&true));
    let error = loomd_config::resolve(&loaded).unwrap_err();
    assert_eq!(
        fixture.neutral(&error.to_string()),
        "invalid `features` requirement `nope` from <root>/requirements.toml"
    );
}

#[test]
fn no_invalid_file_prevents_the_start() {
    for file in ["home/config.toml", "system.toml", "requirements.toml", "managed_config.toml", "w/.codex/config.toml"]
    {
        for text in [&b"model = ["[..], b"model = 5", b"\xff\xfe", b"allowed_approval_policies = []", &[b'#'; 17 << 20]]
        {
            let fixture = trusting();
            let cwd = project(&fixture, "");
            let user = fs::read_to_string(fixture.home.join("config.toml")).unwrap();
            let text = [text, b"\n", if file.starts_with("home") { user.as_bytes() } else { b"" }].concat();
            fs::write(fixture.root.join(file), text).unwrap();
            let request = LoadRequest { cwd: Some(&cwd), ..fixture.request() };
            let start = loomd_config::load_or_default(&request).unwrap();
            match loomd_config::load(&request) {
                Ok(_) => assert_eq!(start.warnings.len(), 0),
                Err(error) => assert_eq!(start.warnings[0], error.warning(), "{file}"),
            }
        }
    }
}
