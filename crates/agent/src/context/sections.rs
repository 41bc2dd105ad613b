//! The sections of the context.

use std::path::Path;

use loomd_config::Feature;
use loomd_config::config_toml::FileAccess;
use loomd_protocol::ModeKind;
use loomd_store::rollout::TurnContext;

use super::prompt_context::{PromptContext, personality};
use super::section::{Role, Section, SectionFuture};
use crate::project_doc::{self, ProjectDocs};
use crate::prompts::{self, Environment, ListedSkill, Permissions};

/// The most bytes of `AGENTS.md` files that are sent when nothing is configured.
const PROJECT_DOC_BYTES: usize = 32 * 1024;

/// All sections in the order in which they are sent.
pub(super) const SECTIONS: &[&dyn Section] = &[
    &PermissionsSection,
    &DeveloperInstructions,
    &CollaborationMode,
    &RealtimeSection,
    &PersonalitySection,
    &AppsSection,
    &SkillsSection,
    &PluginsSection,
    &ProjectDocSection,
    &EnvironmentSection,
];

fn ready(text: Option<String>) -> SectionFuture<'static> {
    Box::pin(std::future::ready(text))
}

/// What commands may touch, and when approval is requested.
struct PermissionsSection;

impl PermissionsSection {
    fn text(cx: &PromptContext<'_>) -> String {
        let features = &cx.profile.config.features;
        let cwd = Path::new(&cx.settings.cwd);
        let rules = cx.settings.permissions.iter().flat_map(|permissions| &permissions.files);
        let closed = rules.filter(|rule| rule.access == FileAccess::None).filter_map(|rule| rule.path.resolve(cwd));
        Permissions {
            closed: &closed.collect::<Vec<_>>(),
            proxied: matches!(cx.settings.confinement(cx.profile).managed_network(), Ok(Some(network)) if network.enabled),
            sandbox: &cx.settings.sandbox,
            approval: &cx.settings.approval_policy,
            cwd,
            additional_permissions: features.enabled(Feature::ExecPermissionApprovals),
            request_permissions: features.enabled(Feature::RequestPermissionsTool),
        }
        .to_string()
    }
}

impl Section for PermissionsSection {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        ready(Some(Self::text(cx)))
    }

    fn changed(&self, cx: &PromptContext<'_>, before: &TurnContext, after: &TurnContext) -> Option<String> {
        let differs =
            (&before.sandbox_policy, &before.approval_policy) != (&after.sandbox_policy, &after.approval_policy);
        differs.then(|| Self::text(cx))
    }
}

/// The developer instructions of the client.
struct DeveloperInstructions;

impl Section for DeveloperInstructions {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        ready(cx.profile.developer_instructions.clone().filter(|text| !text.is_empty()))
    }

    /// They are fixed when the thread is loaded.
    fn changed(&self, _: &PromptContext<'_>, _: &TurnContext, _: &TurnContext) -> Option<String> {
        None
    }
}

struct CollaborationMode;

impl CollaborationMode {
    fn text(cx: &PromptContext<'_>) -> Option<String> {
        let settings = cx.settings;
        let may_ask =
            settings.mode == ModeKind::Plan || cx.profile.config.features.enabled(Feature::DefaultModeRequestUserInput);
        prompts::collaboration_section(settings.mode, settings.mode_instructions.as_deref(), may_ask)
    }

    fn mode_of(context: &TurnContext) -> Option<(ModeKind, Option<&str>)> {
        let mode = context.collaboration_mode.as_ref()?;
        Some((mode.mode, mode.settings.developer_instructions.as_deref()))
    }
}

impl Section for CollaborationMode {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        let plain = cx.settings.mode == ModeKind::Default && cx.settings.mode_instructions.is_none();
        ready(if plain { None } else { Self::text(cx) })
    }

    fn changed(&self, cx: &PromptContext<'_>, before: &TurnContext, after: &TurnContext) -> Option<String> {
        if Self::mode_of(before) == Self::mode_of(after) { None } else { Self::text(cx) }
    }
}

/// Whether the user speaks through a realtime session.
struct RealtimeSection;

impl Section for RealtimeSection {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        let own = cx.profile.config.config.experimental_realtime_start_instructions.as_deref();
        ready(cx.realtime_active.then(|| prompts::realtime_started(own)))
    }

    fn changed(&self, cx: &PromptContext<'_>, before: &TurnContext, after: &TurnContext) -> Option<String> {
        let own = cx.profile.config.config.experimental_realtime_start_instructions.as_deref();
        match (before.realtime_active.unwrap_or(false), after.realtime_active.unwrap_or(false)) {
            (false, true) => Some(prompts::realtime_started(own)),
            (true, false) => Some(prompts::realtime_ended()),
            _ => None,
        }
    }
}

/// A change of personality. The initial one is part of the instructions, which stay the same for a whole thread.
struct PersonalitySection;

impl Section for PersonalitySection {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, _: &'a PromptContext<'a>) -> SectionFuture<'a> {
        ready(None)
    }

    fn changed(&self, cx: &PromptContext<'_>, before: &TurnContext, after: &TurnContext) -> Option<String> {
        // The instructions of a model that is not in the catalogue have a personality, too.
        let supported = cx.model.supports_personality || !cx.model.known;
        let differs = before.personality != after.personality && before.model == after.model;
        if !differs || !supported {
            return None;
        }
        personality(cx.settings, cx.profile).and_then(prompts::personality_section)
    }
}

/// How the apps of the account are used.
struct AppsSection;

impl Section for AppsSection {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        ready(cx.has_apps.then(|| prompts::APPS.to_owned()))
    }

    /// A thread has apps from its start, or not.
    fn changed(&self, _: &PromptContext<'_>, _: &TurnContext, _: &TurnContext) -> Option<String> {
        None
    }
}

/// The skills that the model may use by itself.
struct SkillsSection;

impl Section for SkillsSection {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        Box::pin(async {
            let set = cx.profile.extensions.skills(&cx.settings.cwd, &cx.profile.thread_config).await;
            let implicit = set.enabled().filter(|skill| skill.allow_implicit_invocation);
            prompts::skills_section(implicit.map(|skill| ListedSkill {
                name: &skill.name,
                description: &skill.description,
                path: &skill.path,
            }))
        })
    }

    /// They are listed once per conversation.
    fn changed(&self, _: &PromptContext<'_>, _: &TurnContext, _: &TurnContext) -> Option<String> {
        None
    }
}

/// The active plugins.
struct PluginsSection;

impl Section for PluginsSection {
    fn role(&self) -> Role {
        Role::Developer
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        let plugins = cx.profile.extensions.plugins.iter();
        ready(prompts::plugins_section(plugins.map(|plugin| (&*plugin.display_name, plugin.description.as_deref()))))
    }

    /// They are fixed when the thread is loaded.
    fn changed(&self, _: &PromptContext<'_>, _: &TurnContext, _: &TurnContext) -> Option<String> {
        None
    }
}

/// The `AGENTS.md` files of the home and the project.
struct ProjectDocSection;

impl Section for ProjectDocSection {
    fn role(&self) -> Role {
        Role::User
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        Box::pin(async {
            let config = &cx.profile.config.config;
            let (home, cwd) = (cx.home.to_path_buf(), cx.settings.cwd.clone());
            let markers = config.project_root_markers();
            let fallbacks = config.project_doc_fallback_filenames.clone().unwrap_or_default();
            let max_bytes = config.project_doc_max_bytes.unwrap_or(PROJECT_DOC_BYTES);
            let read = tokio::task::spawn_blocking(move || {
                let docs = ProjectDocs {
                    home: &home,
                    cwd: Path::new(&cwd),
                    root_markers: &markers,
                    fallback_names: &fallbacks,
                    max_bytes,
                };
                docs.read()
            });
            let text = read.await.ok()??;
            Some(project_doc::section(Path::new(&cx.settings.cwd), &text))
        })
    }

    /// They are read once per conversation.
    fn changed(&self, _: &PromptContext<'_>, _: &TurnContext, _: &TurnContext) -> Option<String> {
        None
    }
}

/// Where and when the turn runs.
struct EnvironmentSection;

impl EnvironmentSection {
    fn text(cx: &PromptContext<'_>) -> String {
        Environment {
            cwd: cx.settings.cwd.clone().into(),
            shell: cx.shell.into(),
            current_date: cx.now.date().to_string(),
            timezone: cx.timezone().into(),
            network: cx.network(),
            subagents: cx.subagents.to_vec(),
        }
        .to_string()
    }
}

impl Section for EnvironmentSection {
    fn role(&self) -> Role {
        Role::User
    }

    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a> {
        ready(Some(Self::text(cx)))
    }

    /// The shell of a thread does not change, and child agents notify their parent themselves.
    fn changed(&self, cx: &PromptContext<'_>, before: &TurnContext, after: &TurnContext) -> Option<String> {
        let differs = before.cwd != after.cwd
            || before.current_date != after.current_date
            || before.timezone != after.timezone
            || before.network != after.network;
        differs.then(|| Self::text(cx))
    }
}
