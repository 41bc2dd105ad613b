//! Defaults of keys that are not set. Defaults that depend on more than the configuration (the model catalogue, a
//! project's trust, the account) are elsewhere.

use std::time::Duration;

use loomd_protocol::{AbsolutePathBuf, ApprovalsReviewer};

use super::{Agents, ConfigToml, Inherit, OtelExporter, ShellEnvironmentPolicy};

impl ConfigToml {
    pub fn model_provider(&self) -> &str {
        self.model_provider.as_deref().unwrap_or("openai")
    }

    pub fn approvals_reviewer(&self) -> ApprovalsReviewer {
        self.approvals_reviewer.unwrap_or(ApprovalsReviewer::User)
    }

    pub fn chatgpt_base_url(&self) -> &str {
        self.chatgpt_base_url.as_deref().unwrap_or("https://chatgpt.com/backend-api/")
    }

    pub fn project_doc_max_bytes(&self) -> usize {
        self.project_doc_max_bytes.unwrap_or(32_768)
    }

    /// The names of entries that mark a folder as a project root.
    pub fn project_root_markers(&self) -> Vec<String> {
        self.project_root_markers.clone().unwrap_or_else(|| vec![".git".into()])
    }

    pub fn allow_login_shell(&self) -> bool {
        self.allow_login_shell.unwrap_or(true)
    }

    pub fn background_terminal_max_timeout(&self) -> Duration {
        Duration::from_millis(self.background_terminal_max_timeout.unwrap_or(300_000))
    }

    pub fn feedback_enabled(&self) -> bool {
        self.feedback.as_ref().and_then(|feedback| feedback.enabled).unwrap_or(true)
    }

    pub fn log_dir(&self, home: &AbsolutePathBuf) -> AbsolutePathBuf {
        self.log_dir.clone().unwrap_or_else(|| AbsolutePathBuf::resolve(home, "log"))
    }

    pub fn max_agent_threads(&self) -> usize {
        self.agents().and_then(|agents| agents.max_threads).map_or(6, |limit| limit.get())
    }

    pub fn max_agent_depth(&self) -> i32 {
        self.agents().and_then(|agents| agents.max_depth).map_or(1, |limit| limit.get())
    }

    fn agents(&self) -> Option<&Agents> {
        self.agents.as_ref()
    }

    pub fn metrics_exporter(&self) -> OtelExporter {
        self.otel.as_ref().and_then(|otel| otel.metrics_exporter.clone()).unwrap_or(OtelExporter::Statsig)
    }
}

impl ShellEnvironmentPolicy {
    pub fn inherit(&self) -> Inherit {
        self.inherit.unwrap_or_default()
    }

    /// Whether variables that look like secrets are passed on.
    pub fn ignore_default_excludes(&self) -> bool {
        self.ignore_default_excludes.unwrap_or(true)
    }
}
