//! What the model is told of its situation, first and later.

use std::sync::Arc;

use loomd_config::{LoadRequest, Overrides};
use loomd_model::{Catalogue, Identity, Provider};
use loomd_protocol::{AbsolutePathBuf, ApprovalsReviewer, AskForApproval, SandboxPolicy};
use tempfile::TempDir;

use super::*;

struct World {
    dir: TempDir,
    profile: Profile,
    settings: Settings,
}

impl World {
    fn new() -> Self {
        Self::requiring("")
    }

    /// Where an administrator requires this.
    fn requiring(requirements: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let home = AbsolutePathBuf::new(dir.path()).unwrap();
        std::fs::write(dir.path().join("requirements.toml"), requirements).unwrap();
        let system = AbsolutePathBuf::resolve(&home, "system.toml");
        let flags = Overrides::default();
        let request = LoadRequest { system_file: Some(&system), ..LoadRequest::new(&home, &flags) };
        let loaded = loomd_config::load(&request).unwrap();
        let config = loomd_config::resolve(&loaded).unwrap();
        let settings = Settings {
            model: "gpt-5.3-codex".into(),
            model_provider: "openai".into(),
            service_tier: None,
            cwd: dir.path().join("work").to_string_lossy().into_owned(),
            approval_policy: AskForApproval::Never,
            approvals_reviewer: ApprovalsReviewer::User,
            sandbox: SandboxPolicy::DangerFullAccess,
            permissions: None,
            reasoning_effort: None,
            summary: None,
            personality: None,
            mode: ModeKind::Default,
            mode_instructions: None,
        };
        let profile = Profile {
            provider: Provider::new("openai", &config.provider, &|_| None, None),
            catalogue: Arc::new(Catalogue::bundled()),
            base_instructions: None,
            developer_instructions: Some("be brief".into()),
            dynamic_tools: Vec::new(),
            raw_events: false,
            config_folders: Vec::new(),
            client: "test".into(),
            identity: Identity::default(),
            config,
        };
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, profile, settings }
    }

    fn with<T>(&self, settings: &Settings, look: impl FnOnce(&Situation<'_>) -> T) -> T {
        let mut model = self.profile.model(&settings.model);
        model.supports_personality = true;
        look(&Situation {
            settings,
            profile: &self.profile,
            model: &model,
            turn_id: "t",
            shell: "bash",
            home: self.dir.path(),
            subagents: Vec::new(),
        })
    }

    /// The tags of what is told after settings were changed like this.
    fn changes(&self, change: impl FnOnce(&mut Settings)) -> Vec<(String, Vec<String>)> {
        let before = self.with(&self.settings, |situation| situation.record(&now()));
        let mut settings = self.settings.clone();
        change(&mut settings);
        self.with(&settings, |situation| situation.changes(&before, &now()).iter().map(tags).collect())
    }
}

fn now() -> Zoned {
    "2026-11-15T06:42:53[Europe/Berlin]".parse().unwrap()
}

/// Who says it, and the tag or line that each text begins with.
fn tags(item: &ResponseItem) -> (String, Vec<String>) {
    let ResponseItem::Message { role, content, .. } = item else { panic!("not a message: {item:?}") };
    let first = |part: &ContentItem| {
        let ContentItem::InputText { text } = part else { panic!("not a text: {part:?}") };
        let first = if text.starts_with('<') { text.split_inclusive('>').next() } else { text.lines().next() };
        first.unwrap_or_default().to_owned()
    };
    (role.clone(), content.iter().map(first).collect())
}

fn told(role: &str, texts: &[&str]) -> (String, Vec<String>) {
    (role.into(), texts.iter().map(|text| (*text).to_owned()).collect())
}

#[tokio::test]
async fn a_model_that_knows_nothing_is_told_everything() {
    let world = World::new();
    std::fs::write(world.dir.path().join("work/AGENTS.md"), "Use tabs.").unwrap();
    let mut model = world.profile.model(&world.settings.model);
    model.supports_personality = true;
    let mut settings = world.settings.clone();
    let heading = format!("# AGENTS.md instructions for {}", settings.cwd);
    let user = told("user", &[&heading, "<environment_context>"]);
    let whole = async |settings: &Settings| {
        let situation = Situation {
            settings,
            profile: &world.profile,
            model: &model,
            turn_id: "t",
            shell: "bash",
            home: world.dir.path(),
            subagents: vec![("id".into(), "Aspen".into())],
        };
        situation.whole(&now()).await
    };
    let items = whole(&settings).await;
    let first = told("developer", &["<permissions instructions>", "be brief"]);
    assert_eq!(items.iter().map(tags).collect::<Vec<_>>(), [first, user.clone()]);
    let text = crate::message::text_of(&items[1]);
    for part in [&settings.cwd, "Use tabs.", "2026-11-15", "Europe/Berlin", "<shell>bash</shell>", "id: Aspen"] {
        assert!(text.contains(part), "{part} in {text}");
    }

    settings.mode = ModeKind::Plan;
    let planning = told("developer", &["<permissions instructions>", "be brief", "<collaboration_mode>"]);
    assert_eq!(whole(&settings).await.iter().map(tags).collect::<Vec<_>>(), [planning, user]);
}

#[test]
fn later_a_model_is_told_only_what_changed() {
    let world = World::new();
    let environment = || told("user", &["<environment_context>"]);
    assert_eq!(world.changes(|_| {}), []);
    assert_eq!(
        world.changes(|settings| settings.approval_policy = AskForApproval::OnRequest),
        [told("developer", &["<permissions instructions>"])]
    );
    assert_eq!(world.changes(|settings| settings.cwd = "/elsewhere".into()), [environment()]);
    assert_eq!(
        world.changes(|settings| settings.mode = ModeKind::Plan),
        [told("developer", &["<collaboration_mode>"])]
    );
    assert_eq!(
        world.changes(|settings| {
            settings.personality = Some(Personality::Friendly);
            settings.mode_instructions = Some("pair up".into());
            settings.cwd = "/elsewhere".into();
            settings.sandbox = SandboxPolicy::ExternalSandbox { network_access: Default::default() };
        }),
        [
            told("developer", &["<permissions instructions>", "<collaboration_mode>", "<personality_spec>"]),
            environment()
        ]
    );
    // Another model brings its own manner.
    assert_eq!(
        world.changes(|settings| {
            settings.personality = Some(Personality::Friendly);
            settings.model = "another".into();
        }),
        []
    );
}

#[test]
fn the_date_is_news() {
    let world = World::new();
    let before = world.with(&world.settings, |situation| situation.record(&now()));
    let tomorrow = now().tomorrow().unwrap();
    let told_tomorrow = world.with(&world.settings, |situation| situation.changes(&before, &tomorrow));
    assert_eq!(told_tomorrow.iter().map(tags).collect::<Vec<_>>(), [told("user", &["<environment_context>"])]);
}

#[test]
fn the_network_of_an_administrator_is_part_of_the_environment() {
    let plain = World::new();
    let required =
        World::requiring("[experimental_network]\nallowed_domains = ['b.test', 'a.test']\ndenied_domains = ['c']");
    let network = required.with(&required.settings, |situation| situation.environment(&now()).network);
    let expected =
        ManagedNetwork { enabled: true, allowed: vec!["a.test".into(), "b.test".into()], denied: vec!["c".into()] };
    assert_eq!(network, Some(expected));
    let before = plain.with(&plain.settings, |situation| situation.record(&now()));
    let told_later = required.with(&plain.settings, |situation| situation.changes(&before, &now()));
    assert_eq!(told_later.iter().map(tags).collect::<Vec<_>>(), [told("user", &["<environment_context>"])]);
}
