use loomd_testkit::{Home, ScriptedModel};

fn config(home: &Home) -> toml::Table {
    let text = std::fs::read_to_string(home.path().join("config.toml")).expect("config.toml was written");
    text.parse().expect("config.toml is TOML")
}

#[tokio::test]
async fn the_configuration_points_at_the_model_and_can_be_overridden() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model).with(
        r#"
        approval_policy = "untrusted"
        [model_providers.scripted]
        stream_max_retries = 3
        [features]
        new = true
        "#,
    );
    let expected = format!(
        r#"
        model = "scripted-model"
        model_provider = "scripted"
        approval_policy = "untrusted"
        sandbox_mode = "read-only"
        [model_providers.scripted]
        name = "Scripted"
        base_url = "http://{}/v1"
        wire_api = "responses"
        request_max_retries = 0
        stream_max_retries = 3
        [features]
        new = true
        "#,
        model.address()
    );
    assert_eq!(config(&home), expected.parse().unwrap());
}

#[test]
fn an_empty_home_has_only_its_folders_and_is_removed() {
    let home = Home::empty();
    let path = home.path();
    for folder in [home.path(), home.user(), home.work()] {
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    }
    assert_eq!(std::fs::read_to_string(home.write("skills/one/SKILL.md", "text")).unwrap(), "text");
    drop(home);
    assert!(!path.exists());
}
