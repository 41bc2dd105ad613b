//! [`ApprovalPolicy`]: when the server requests approvals, and how they are decided without a person.

use loomd_client::protocol::{
    AskForApproval, CommandExecutionApprovalDecision, FileChangeApprovalDecision, GrantedPermissionProfile,
    McpServerElicitationAction, McpServerElicitationRequest, McpServerElicitationRequestResponse, PermissionGrantScope,
    PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse, ReviewDecision,
};

/// When the server requests approvals. There is no person to ask, so the policy decides them, too; the sandbox is what
/// confines commands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ApprovalPolicy {
    /// No approvals; any that are requested nevertheless are accepted.
    #[default]
    Never,
    /// For commands that are not trusted; they are accepted.
    Untrusted,
    /// After a command failed in the sandbox; they are accepted.
    OnFailure,
    /// When the model requests it; they are declined.
    OnRequest,
}

impl ApprovalPolicy {
    pub(crate) fn wire(self) -> AskForApproval {
        match self {
            Self::Never => AskForApproval::Never,
            Self::Untrusted => AskForApproval::Untrusted,
            Self::OnFailure => AskForApproval::OnFailure,
            Self::OnRequest => AskForApproval::OnRequest,
        }
    }

    pub(crate) fn accepts(self) -> bool {
        self != Self::OnRequest
    }

    pub(crate) fn command(self) -> CommandExecutionApprovalDecision {
        if self.accepts() {
            CommandExecutionApprovalDecision::Accept
        } else {
            CommandExecutionApprovalDecision::Decline
        }
    }

    pub(crate) fn file_change(self) -> FileChangeApprovalDecision {
        if self.accepts() { FileChangeApprovalDecision::Accept } else { FileChangeApprovalDecision::Decline }
    }

    pub(crate) fn legacy(self) -> ReviewDecision {
        if self.accepts() { ReviewDecision::Approved } else { ReviewDecision::Denied }
    }

    /// Approvals of MCP servers' tools are elicitations, which servers request under every policy unless the sandbox
    /// is off. Elicitations of other kinds need a person, so they are declined.
    pub(crate) fn elicitation(self, request: &McpServerElicitationRequest) -> McpServerElicitationRequestResponse {
        let approval = match request {
            McpServerElicitationRequest::Form { meta: Some(meta), .. } => {
                meta["codex_approval_kind"] == "mcp_tool_call"
            }
            _ => false,
        };
        let accepted = approval && self.accepts();
        let action = if accepted { McpServerElicitationAction::Accept } else { McpServerElicitationAction::Decline };
        McpServerElicitationRequestResponse { action, content: None, meta: None }
    }

    pub(crate) fn permissions(self, request: PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse {
        let permissions = if self.accepts() {
            let requested = request.permissions;
            GrantedPermissionProfile { network: requested.network, file_system: requested.file_system }
        } else {
            GrantedPermissionProfile { network: None, file_system: None }
        };
        PermissionsRequestApprovalResponse { permissions, scope: PermissionGrantScope::Turn }
    }
}
