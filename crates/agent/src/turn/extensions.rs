//! The skills and plugins that the user names in the input of a turn.

use std::sync::Arc;

use loomd_protocol::{ResponseItem, UserInput};

use super::task::TurnTask;
use crate::message::message;
use crate::prompts::{self, MentionedPlugin};

impl TurnTask {
    /// Returns the messages that follow an input: the instructions of the skills that it names, each once per turn, and
    /// what the plugins bring that it mentions. In a replay they come from the recording.
    pub(super) async fn mentioned(&mut self, input: &[UserInput]) -> Vec<ResponseItem> {
        if self.services.replayed.is_some() {
            return Vec::new();
        }
        let profile = Arc::clone(&self.cx.profile);
        let (cwd, known) = (&self.cx.settings.cwd, &self.progress.skills);
        let skills = profile.extensions.named_skills(cwd, &profile.thread_config, input, known).await;
        self.meet_needs(&skills).await;
        let mut items = Vec::new();
        for skill in skills {
            items.push(message("user", prompts::skill_message(&skill.name, &skill.path, &skill.text)));
            self.progress.skills.insert(skill.path);
        }
        for plugin in profile.extensions.mentioned_plugins(input) {
            items.push(message(
                "developer",
                prompts::plugin_message(&MentionedPlugin {
                    display_name: &plugin.display_name,
                    skill_prefix: (!plugin.skill_folders.is_empty()).then_some(&plugin.name),
                    mcp_servers: plugin.mcp_servers.keys().map(String::as_str).collect(),
                    apps: plugin.apps.iter().map(String::as_str).collect(),
                }),
            ));
        }
        items
    }
}
