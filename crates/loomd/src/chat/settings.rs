//! [`Settings`]: the model, the mode and the permissions of the next turn.

use loomd_client::Thread;
use loomd_client::protocol::{
    self as protocol, AskForApproval, CollaborationMode, ModeKind, ReadOnlyAccess, ReasoningEffort, SandboxPolicy,
    TurnStartParams,
};
use loomd_editor::MenuItem;

/// The settings of a thread. A turn is sent those that the user has changed since the last one; the server keeps them.
pub struct Settings {
    pub model: String,
    pub provider: String,
    pub effort: Option<ReasoningEffort>,
    pub mode: ModeKind,
    pub approval: AskForApproval,
    pub sandbox: SandboxPolicy,
    changed: Changed,
}

#[derive(Clone, Copy, Default)]
struct Changed {
    model: bool,
    effort: bool,
    mode: bool,
    permissions: bool,
}

/// Permissions by name: the sandbox, when to ask, and what that means.
const PRESETS: [(&str, &str); 3] = [
    ("read-only", "commands can read; everything else needs approval"),
    ("workspace", "commands can also write in this folder; more needs approval"),
    ("full-access", "no sandbox, no approvals"),
];

impl Settings {
    pub fn of(thread: &Thread) -> Self {
        let opened = thread.settings();
        Self {
            model: opened.model.clone(),
            provider: opened.model_provider.clone(),
            effort: opened.reasoning_effort.clone(),
            mode: ModeKind::Default,
            approval: opened.approval_policy.clone(),
            sandbox: opened.sandbox.clone(),
            changed: Changed::default(),
        }
    }

    pub fn set_model(&mut self, model: String) {
        self.changed.model |= self.model != model;
        self.model = model;
    }

    pub fn set_effort(&mut self, effort: ReasoningEffort) {
        self.changed.effort = true;
        self.effort = Some(effort);
    }

    /// Fails with a message for the user.
    pub fn set_mode(&mut self, name: &str) -> Result<(), String> {
        self.mode = match name {
            "plan" => ModeKind::Plan,
            "default" => ModeKind::Default,
            other => return Err(format!("unknown mode `{other}`: expected plan or default")),
        };
        self.changed.mode = true;
        Ok(())
    }

    /// Fails with a message for the user.
    pub fn set_permissions(&mut self, name: &str) -> Result<(), String> {
        let keeps = matches!(self.sandbox, SandboxPolicy::WorkspaceWrite { .. });
        (self.sandbox, self.approval) = match name {
            "read-only" => {
                let read_only = SandboxPolicy::ReadOnly { access: ReadOnlyAccess::FullAccess, network_access: false };
                (read_only, AskForApproval::OnRequest)
            }
            // The folders and the network of the configuration stay.
            "workspace" if keeps => (self.sandbox.clone(), AskForApproval::OnRequest),
            "workspace" => {
                let workspace = SandboxPolicy::WorkspaceWrite {
                    writable_roots: Vec::new(),
                    read_only_access: ReadOnlyAccess::FullAccess,
                    network_access: false,
                    exclude_tmpdir_env_var: false,
                    exclude_slash_tmp: false,
                };
                (workspace, AskForApproval::OnRequest)
            }
            "full-access" => (SandboxPolicy::DangerFullAccess, AskForApproval::Never),
            other => {
                let known: Vec<_> = PRESETS.iter().map(|(name, _)| *name).collect();
                return Err(format!("unknown permissions `{other}`: expected one of {}", known.join(", ")));
            }
        };
        self.changed.permissions = true;
        Ok(())
    }

    /// Adds what has changed to a turn.
    pub fn apply(&self, params: TurnStartParams) -> TurnStartParams {
        let Changed { model, effort, mode, permissions } = self.changed;
        // The model and the effort of a mode come before those of the turn.
        let collaboration_mode = (mode || self.mode != ModeKind::Default).then(|| CollaborationMode {
            mode: self.mode,
            settings: protocol::Settings {
                model: self.model.clone(),
                reasoning_effort: self.effort.clone(),
                developer_instructions: None,
            },
        });
        TurnStartParams {
            model: model.then(|| self.model.clone()),
            effort: self.effort.clone().filter(|_| effort),
            approval_policy: permissions.then(|| self.approval.clone()),
            sandbox_policy: permissions.then(|| self.sandbox.clone()),
            collaboration_mode,
            ..params
        }
    }

    /// Notes that the server has the settings.
    pub fn applied(&mut self) {
        self.changed = Changed::default();
    }

    pub fn mode_name(&self) -> &'static str {
        match self.mode {
            ModeKind::Plan => "plan",
            ModeKind::Default => "default",
        }
    }

    /// The sandbox and when the user is asked, in words.
    pub fn permissions(&self) -> String {
        let sandbox = match &self.sandbox {
            SandboxPolicy::DangerFullAccess => "no sandbox",
            SandboxPolicy::ReadOnly { .. } => "read-only",
            SandboxPolicy::ExternalSandbox { .. } => "external sandbox",
            SandboxPolicy::WorkspaceWrite { .. } => "workspace-write",
        };
        let ask = match &self.approval {
            AskForApproval::Untrusted => "asks for most commands",
            AskForApproval::OnFailure => "asks when a command fails",
            AskForApproval::OnRequest => "asks on request",
            AskForApproval::Granular { .. } => "asks for some things",
            AskForApproval::Never => "never asks",
        };
        format!("{sandbox}, {ask}")
    }
}

pub fn permission_items() -> Vec<MenuItem> {
    items(&PRESETS)
}

pub fn mode_items() -> Vec<MenuItem> {
    items(&[("default", "work at once"), ("plan", "ask and plan first; change nothing")])
}

fn items(named: &[(&str, &str)]) -> Vec<MenuItem> {
    let item = |(name, about): &(&str, &str)| MenuItem {
        value: (*name).to_owned(),
        label: (*name).to_owned(),
        detail: (*about).to_owned(),
    };
    named.iter().map(item).collect()
}
