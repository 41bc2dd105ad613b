//! Servers and variables that the named skills of a turn need: the user is asked before the model is called.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_config::Feature;
use loomd_mcp::{Origin, ServerSet};
use loomd_protocol::{
    AskForApproval, SandboxPolicy, SkillToolDependency, ToolRequestUserInputAnswer, ToolRequestUserInputOption,
    ToolRequestUserInputParams, ToolRequestUserInputQuestion,
};
use tokio::task::spawn_blocking;

use super::task::TurnTask;
use crate::extensions::{NamedSkill, NeededServer, installs_servers, missing_servers, variables};
use crate::tools::Role;

/// The id of the question about servers.
const INSTALL: &str = "skill_mcp_dependency_install";
/// The answer that installs them.
const YES: &str = "Install";

impl TurnTask {
    /// Asks for what skills need and the thread does not have. The turn goes on whatever the answer is.
    pub(super) async fn meet_needs(&mut self, skills: &[NamedSkill]) {
        let needs: Vec<&SkillToolDependency> = skills.iter().flat_map(|skill| &skill.dependencies).collect();
        let is_main = self.toolbox.cx().thread.role == Role::Main;
        if needs.is_empty() || !is_main {
            return;
        }
        let features = self.cx.profile.config.features;
        if features.enabled(Feature::SkillMcpDependencyInstall) && installs_servers(&self.cx.profile.client) {
            self.install_servers(&needs).await;
        }
        if features.enabled(Feature::SkillEnvVarDependencyPrompt) {
            self.ask_for_variables(&needs).await;
        }
    }

    async fn install_servers(&self, needs: &[&SkillToolDependency]) {
        let thread = Arc::clone(&self.toolbox.cx().thread);
        let mut set = ServerSet::default();
        for server in thread.mcp.all() {
            set.insert(&server.name, server.entry.clone());
        }
        let requirements = &self.cx.profile.config.requirements;
        let mut missing = missing_servers(needs.iter().copied(), &set);
        missing.retain(|server| requirements.allows_mcp_server(&server.name, &server.config));
        missing.retain(|server| thread.skill_needs.ask_for(&server.name));
        if missing.is_empty() || !self.may_install(&missing).await {
            return;
        }
        let Some(finder) = self.cx.profile.extensions.finder.clone() else { return };
        let installed = missing.clone();
        match spawn_blocking(move || finder.install_servers(&installed)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return tracing::warn!(%error, "cannot install the MCP servers of a skill"),
            Err(error) => return tracing::error!(%error, "the installation of MCP servers failed"),
        }
        for NeededServer { name, config, .. } in missing {
            set.add(&name, config, Origin::Configuration);
        }
        thread.mcp.set(&set, &self.cx.settings);
    }

    /// Whether the user wants servers to be installed. A thread that may do everything unasked may do this, too.
    async fn may_install(&self, missing: &[NeededServer]) -> bool {
        let settings = &self.cx.settings;
        if settings.sandbox == SandboxPolicy::DangerFullAccess && settings.approval_policy == AskForApproval::Never {
            return true;
        }
        let names: Vec<String> = missing.iter().map(|server| format!("`{}`", server.name)).collect();
        let option = |label: &str, description: &str| ToolRequestUserInputOption {
            label: label.into(),
            description: description.into(),
        };
        let question = ToolRequestUserInputQuestion {
            id: INSTALL.into(),
            header: "Install MCP servers?".into(),
            question: format!(
                "The skill needs MCP servers that are not configured: {}. Install them?",
                names.join(", ")
            ),
            is_other: false,
            is_secret: false,
            options: Some(vec![
                option(YES, "Add them to config.toml and connect to them."),
                option("Continue anyway", "Go on without them."),
            ]),
        };
        let answers = self.ask("mcp-deps", vec![question]).await;
        answers.get(INSTALL).is_some_and(|answer| answer.answers.iter().any(|answer| answer == YES))
    }

    async fn ask_for_variables(&self, needs: &[&SkillToolDependency]) {
        let thread = Arc::clone(&self.toolbox.cx().thread);
        let mut missing = variables(needs.iter().copied());
        missing
            .retain(|name, _| self.services.environment.get(name).is_none() && !thread.skill_needs.has_variable(name));
        missing.retain(|name, _| thread.skill_needs.ask_for(name));
        if missing.is_empty() {
            return;
        }
        let question = |(name, description): (&&str, &Option<&str>)| ToolRequestUserInputQuestion {
            id: (*name).into(),
            header: (*name).into(),
            question: match description {
                Some(description) => format!("The skill needs the variable {name}: {description}"),
                None => format!("The skill needs the variable {name}."),
            },
            is_other: false,
            is_secret: true,
            options: None,
        };
        for (name, answer) in self.ask("env-deps", missing.iter().map(question).collect()).await {
            let value = answer.answers.into_iter().find(|value| !value.is_empty() && !value.contains('\0'));
            if let Some(value) = value.filter(|_| missing.contains_key(name.as_str())) {
                thread.skill_needs.set_variable(name, value.into());
            }
        }
    }

    /// The answers of the user; none when the turn was interrupted.
    async fn ask(
        &self,
        item: &str,
        questions: Vec<ToolRequestUserInputQuestion>,
    ) -> BTreeMap<String, ToolRequestUserInputAnswer> {
        let params = ToolRequestUserInputParams {
            thread_id: self.cx.thread_id.clone(),
            turn_id: self.cx.turn_id.clone(),
            item_id: format!("{item}-{}", self.cx.turn_id),
            questions,
            is_blocking: true,
        };
        self.cx.request(params).await.map(|response| response.answers).unwrap_or_default()
    }
}
