//! Importing the configuration of another agent.

use std::fs;

use loomd_config::external_agent::{ImportPaths, detect, import};
use loomd_protocol::ExternalAgentConfigMigrationItemType as ItemType;

use crate::{Fixture, user};

impl Fixture {
    fn places(&self) -> ImportPaths {
        ImportPaths { home: self.home.clone(), user_home: Some(self.root.join("user")), cwd: self.root.to_path_buf() }
    }

    fn has(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

#[test]
fn the_home_is_imported_and_comments_are_kept() {
    let fixture = user("# mine\nsandbox_mode = 'read-only' # careful\n");
    fixture.has("user/.claude/settings.json", r#"{"env": {"A": "1"}, "sandbox": {"enabled": true}}"#);
    fixture.has("user/.claude/skills/s/SKILL.md", "Ask Claude.");
    fixture.has("user/.claude/CLAUDE.md", "See CLAUDE.md");
    let items = detect(&fixture.places(), true, &[]).unwrap();
    let kinds: Vec<_> = items.iter().map(|item| (item.item_type, item.cwd.clone())).collect();
    assert_eq!(kinds, [(ItemType::Config, None), (ItemType::Skills, None), (ItemType::AgentsMd, None)]);
    assert_eq!(
        fixture.neutral(&items[0].description),
        "Migrate <root>/user/.claude/settings.json into <home>/config.toml"
    );
    import(&fixture.places(), &items).unwrap();
    let text = fs::read_to_string(fixture.home.join("config.toml")).unwrap();
    assert!(text.starts_with("# mine\nsandbox_mode = 'read-only' # careful\n"), "{text}");
    assert!(text.contains("[shell_environment_policy]\ninherit = \"core\"\n"), "{text}");
    assert_eq!(fs::read_to_string(fixture.root.join(".agents/skills/s/SKILL.md")).unwrap(), "Ask Codex.");
    assert_eq!(fs::read_to_string(fixture.home.join("AGENTS.md")).unwrap(), "See AGENTS.md");
    assert_eq!(detect(&fixture.places(), true, &[]).unwrap(), []);
}

#[test]
fn a_folder_is_imported_with_its_repository_and_a_missing_one_is_ignored() {
    let fixture = user("");
    fs::create_dir_all(fixture.root.join("w/.git")).unwrap();
    fixture.has("w/sub/file", "");
    fixture.has("w/.claude/CLAUDE.md", "text");
    let cwds = ["w/sub/file".to_owned(), "nowhere".to_owned()];
    let items = detect(&fixture.places(), false, &cwds).unwrap();
    assert_eq!(items.len(), 1);
    assert_eq!(items[0].cwd.as_deref(), fixture.root.join("w").to_str());
}
