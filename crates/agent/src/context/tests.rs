//! The messages about the surroundings of a turn: before the first message, and after changes.

use std::path::Path;
use std::sync::Arc;

use jiff::Zoned;
use loomd_config::{LoadRequest, Overrides};
use loomd_model::{Catalogue, Identity, ModelInfo, Provider};
use loomd_protocol::{AbsolutePathBuf, ApprovalsReviewer, AskForApproval, ModeKind, Personality, SandboxPolicy};
use tempfile::TempDir;

use super::*;
use crate::prompts::ManagedNetwork;
use crate::settings::{Profile, Settings};

struct World {
    dir: TempDir,
    profile: Profile,
    settings: Settings,
}

impl World {
    fn new() -> Self {
        Self::requiring("")
    }

    /// A world with requirements of an administrator.
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
            profile: None,
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
            mcp_servers: Default::default(),
            thread_config: Default::default(),
            raw_events: false,
            config_folders: Vec::new(),
            extensions: Default::default(),
            newer_tools: false,
            has_environment: true,
            openai_form: false,
            client: "test".into(),
            identity: Identity::default(),
            config,
        };
        std::fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, profile, settings }
    }

    fn model(&self, settings: &Settings) -> ModelInfo {
        let mut model = self.profile.model(&settings.model);
        model.supports_personality = true;
        model
    }

    fn with<T>(&self, settings: &Settings, look: impl FnOnce(&PromptContext<'_>) -> T) -> T {
        self.at(settings, now(), look)
    }

    fn at<T>(&self, settings: &Settings, now: Zoned, look: impl FnOnce(&PromptContext<'_>) -> T) -> T {
        let model = self.model(settings);
        look(&prompt_context(settings, &self.profile, &model, self.dir.path(), now))
    }

    /// The tags of the messages after settings were changed like this.
    fn changes(&self, change: impl FnOnce(&mut Settings)) -> Vec<(String, Vec<String>)> {
        let before = self.with(&self.settings, |cx| cx.record());
        let mut settings = self.settings.clone();
        change(&mut settings);
        self.with(&settings, |cx| changes(cx, &before).iter().map(tags).collect())
    }
}

fn prompt_context<'a>(
    settings: &'a Settings,
    profile: &'a Profile,
    model: &'a ModelInfo,
    home: &'a Path,
    now: Zoned,
) -> PromptContext<'a> {
    PromptContext {
        settings,
        profile,
        model,
        turn_id: "t",
        shell: "bash",
        home,
        subagents: &[],
        has_apps: false,
        realtime_active: false,
        now,
    }
}

fn now() -> Zoned {
    "2026-11-15T06:42:53[Europe/Berlin]".parse().unwrap()
}

/// The role, and the tag or line that each text begins with.
fn tags(item: &ResponseItem) -> (String, Vec<String>) {
    let ResponseItem::Message { role, content, .. } = item else { panic!("not a message: {item:?}") };
    let first = |part: &ContentItem| {
        let ContentItem::InputText { text } = part else { panic!("not a text: {part:?}") };
        let first = if text.starts_with('<') { text.split_inclusive('>').next() } else { text.lines().next() };
        first.unwrap_or_default().to_owned()
    };
    (role.clone(), content.iter().map(first).collect())
}

fn message(role: &str, texts: &[&str]) -> (String, Vec<String>) {
    (role.into(), texts.iter().map(|text| (*text).to_owned()).collect())
}

#[tokio::test]
async fn a_new_conversation_begins_with_all_sections() {
    let world = World::new();
    std::fs::write(world.dir.path().join("work/AGENTS.md"), "Use tabs.").unwrap();
    let mut settings = world.settings.clone();
    let heading = format!("# AGENTS.md instructions for {}", settings.cwd);
    let user = message("user", &[&heading, "<environment_context>"]);
    let children = [("id".into(), "Aspen".into())];
    let whole = async |settings: &Settings| {
        let model = world.model(settings);
        let cx = prompt_context(settings, &world.profile, &model, world.dir.path(), now());
        initial(&PromptContext { subagents: &children, ..cx }).await
    };
    let items = whole(&settings).await;
    let first = message("developer", &["<permissions instructions>", "be brief"]);
    assert_eq!(items.iter().map(tags).collect::<Vec<_>>(), [first, user.clone()]);
    let text = crate::message::text_of(&items[1]);
    for part in [&settings.cwd, "Use tabs.", "2026-11-15", "Europe/Berlin", "<shell>bash</shell>", "id: Aspen"] {
        assert!(text.contains(part), "{part} in {text}");
    }

    settings.mode = ModeKind::Plan;
    let planning = message("developer", &["<permissions instructions>", "be brief", "<collaboration_mode>"]);
    assert_eq!(whole(&settings).await.iter().map(tags).collect::<Vec<_>>(), [planning, user]);
}

#[test]
fn only_changed_sections_are_sent_again() {
    let world = World::new();
    let environment = || message("user", &["<environment_context>"]);
    assert_eq!(world.changes(|_| {}), []);
    assert_eq!(
        world.changes(|settings| settings.approval_policy = AskForApproval::OnRequest),
        [message("developer", &["<permissions instructions>"])]
    );
    assert_eq!(world.changes(|settings| settings.cwd = "/elsewhere".into()), [environment()]);
    assert_eq!(
        world.changes(|settings| settings.mode = ModeKind::Plan),
        [message("developer", &["<collaboration_mode>"])]
    );
    assert_eq!(
        world.changes(|settings| {
            settings.personality = Some(Personality::Friendly);
            settings.mode_instructions = Some("pair up".into());
            settings.cwd = "/elsewhere".into();
            settings.sandbox = SandboxPolicy::ExternalSandbox { network_access: Default::default() };
        }),
        [
            message("developer", &["<permissions instructions>", "<collaboration_mode>", "<personality_spec>"]),
            environment()
        ]
    );
    // Another model has a personality in its own instructions.
    assert_eq!(
        world.changes(|settings| {
            settings.personality = Some(Personality::Friendly);
            settings.model = "another".into();
        }),
        []
    );
}

#[test]
fn the_environment_is_sent_again_when_the_date_changes() {
    let world = World::new();
    let before = world.with(&world.settings, |cx| cx.record());
    let tomorrow = now().tomorrow().unwrap();
    let messages = world.at(&world.settings, tomorrow, |cx| changes(cx, &before));
    assert_eq!(messages.iter().map(tags).collect::<Vec<_>>(), [message("user", &["<environment_context>"])]);
}

#[test]
fn the_network_of_an_administrator_is_part_of_the_environment() {
    let plain = World::new();
    let required =
        World::requiring("[experimental_network]\nallowed_domains = ['b.test', 'a.test']\ndenied_domains = ['c']");
    let network = required.with(&required.settings, |cx| cx.network());
    let expected =
        ManagedNetwork { enabled: true, allowed: vec!["a.test".into(), "b.test".into()], denied: vec!["c".into()] };
    assert_eq!(network, Some(expected));
    let before = plain.with(&plain.settings, |cx| cx.record());
    let messages = required.with(&plain.settings, |cx| changes(cx, &before));
    assert_eq!(messages.iter().map(tags).collect::<Vec<_>>(), [message("user", &["<environment_context>"])]);
}

#[tokio::test]
async fn the_start_and_the_end_of_a_realtime_session_are_sent_once() {
    let world = World::new();
    let model = world.model(&world.settings);
    let cx = |realtime_active| PromptContext {
        realtime_active,
        ..prompt_context(&world.settings, &world.profile, &model, world.dir.path(), now())
    };
    let (off, on) = (cx(false).record(), cx(true).record());
    let sent = |items: Vec<ResponseItem>| items.iter().map(tags).collect::<Vec<_>>();
    let section = || message("developer", &["<realtime_conversation>"]);
    assert_eq!(sent(changes(&cx(true), &off)), [section()]);
    assert_eq!(sent(changes(&cx(true), &on)), []);
    assert_eq!(sent(changes(&cx(false), &on)), [section()]);
    let (_, parts) = tags(&initial(&cx(true)).await[0]);
    assert!(parts.contains(&"<realtime_conversation>".to_owned()), "{parts:?}");
}

#[tokio::test]
async fn apps_are_explained_to_threads_that_have_them() {
    let world = World::new();
    let model = world.model(&world.settings);
    for has_apps in [false, true] {
        let cx = prompt_context(&world.settings, &world.profile, &model, world.dir.path(), now());
        let (_, parts) = tags(&initial(&PromptContext { has_apps, ..cx }).await[0]);
        assert_eq!(parts.contains(&"<apps_instructions>".to_owned()), has_apps, "{parts:?}");
    }
}
