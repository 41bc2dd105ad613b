//! What a turn needs a client for: approvals, answers of the user, calls of client tools. Each has an id and a type of
//! decision of its own. Front ends transport decisions; the first one counts.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use loomd_protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, DynamicToolCallOutputContentItem,
    DynamicToolCallParams, DynamicToolCallResponse, FileChangeApprovalDecision, FileChangeRequestApprovalParams,
    GrantedPermissionProfile, McpServerElicitationAction, McpServerElicitationRequestParams,
    McpServerElicitationRequestResponse, PermissionGrantScope, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, ToolRequestUserInputParams, ToolRequestUserInputResponse,
};
use parking_lot::Mutex;
use thiserror::Error;
use tokio::sync::oneshot;
use uuid::Uuid;

/// The id of an approval, unique across threads and restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalId(Uuid);

impl fmt::Display for ApprovalId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for ApprovalId {
    type Err = uuid::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self)
    }
}

macro_rules! approvals {
    ($($(#[$doc:meta])* $kind:ident $name:literal ($params:ty) -> $decision:ty;)*) => {
        /// What is requested.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ApprovalRequest {
            $($(#[$doc])* $kind($params),)*
        }

        /// A decision about the request of the same name.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ApprovalDecision {
            $($kind($decision),)*
        }

        impl ApprovalRequest {
            /// The kind, as messages name it.
            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => $name,)*
                }
            }

            /// The thread whose turn waits for it.
            pub fn thread_id(&self) -> &str {
                match self {
                    $(Self::$kind(params) => &params.thread_id,)*
                }
            }

            fn accepts(&self, decision: &ApprovalDecision) -> bool {
                match (self, decision) {
                    $((Self::$kind(_), ApprovalDecision::$kind(_)) => true,)*
                    _ => false,
                }
            }
        }

        $(impl ApprovalParams for $params {
            type Decision = $decision;

            fn into_request(self) -> ApprovalRequest {
                ApprovalRequest::$kind(self)
            }

            fn decision(decision: ApprovalDecision) -> Option<$decision> {
                match decision {
                    ApprovalDecision::$kind(decision) => Some(decision),
                    _ => None,
                }
            }
        })*
    };
}

/// The params of one kind of request, with its type of decision.
pub(crate) trait ApprovalParams {
    type Decision;

    fn into_request(self) -> ApprovalRequest;

    /// `None` for a decision of another kind, which [`Approval::decide`] refuses.
    fn decision(decision: ApprovalDecision) -> Option<Self::Decision>;
}

approvals! {
    /// Whether a command may run or a host may be reached.
    Command "command" (CommandExecutionRequestApprovalParams) -> CommandExecutionApprovalDecision;
    /// Whether a patch may be applied.
    Patch "patch" (FileChangeRequestApprovalParams) -> FileChangeApprovalDecision;
    /// Which permissions beyond the policy are granted.
    Permissions "permissions" (PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse;
    /// Answers of the user to the model.
    UserInput "user input" (ToolRequestUserInputParams) -> ToolRequestUserInputResponse;
    /// A call of a tool that the client brought.
    ToolCall "tool call" (DynamicToolCallParams) -> DynamicToolCallResponse;
    /// Answers of the user to an MCP server.
    Elicitation "elicitation" (McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse;
}

impl ApprovalRequest {
    /// The decision in place of an answer that could not be given or not be decoded: it allows nothing. `reason` is
    /// the output of a tool that could not be called.
    pub fn declined(&self, reason: &str) -> ApprovalDecision {
        match self {
            Self::Command(_) => ApprovalDecision::Command(CommandExecutionApprovalDecision::Decline),
            Self::Patch(_) => ApprovalDecision::Patch(FileChangeApprovalDecision::Decline),
            Self::Permissions(_) => ApprovalDecision::Permissions(PermissionsRequestApprovalResponse {
                permissions: GrantedPermissionProfile { network: None, file_system: None },
                scope: PermissionGrantScope::Turn,
            }),
            Self::UserInput(_) => {
                ApprovalDecision::UserInput(ToolRequestUserInputResponse { answers: BTreeMap::new() })
            }
            Self::ToolCall(_) => ApprovalDecision::ToolCall(DynamicToolCallResponse {
                content_items: vec![DynamicToolCallOutputContentItem::InputText { text: reason.into() }],
                success: false,
            }),
            Self::Elicitation(_) => ApprovalDecision::Elicitation(McpServerElicitationRequestResponse {
                action: McpServerElicitationAction::Decline,
                content: None,
                meta: None,
            }),
        }
    }
}

/// Why a decision did not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum DecideError {
    #[error("the approval has been decided or is no longer needed")]
    Closed,
    #[error("invalid decision: expected one about a {expected}")]
    WrongKind { expected: &'static str },
    #[error("unknown approval")]
    Unknown,
}

/// A request that a turn waits for.
pub struct Approval {
    pub id: ApprovalId,
    pub request: ApprovalRequest,
    /// The number under which the event sink sent it, once it has. Not interpreted by the agent.
    pub sent_as: OnceLock<i64>,
    /// `None` once it is decided or closed.
    waiting: Mutex<Option<oneshot::Sender<ApprovalDecision>>>,
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").field("id", &self.id).field("request", &self.request).finish_non_exhaustive()
    }
}

impl Approval {
    /// An open approval and its decision. The receiver fails when it is closed without one.
    pub fn new(request: ApprovalRequest) -> (Self, oneshot::Receiver<ApprovalDecision>) {
        let (waiting, decision) = oneshot::channel();
        let waiting = Mutex::new(Some(waiting));
        (Self { id: ApprovalId(Uuid::now_v7()), request, sent_as: OnceLock::new(), waiting }, decision)
    }

    /// Decides it, unless it has been decided.
    pub fn decide(&self, decision: ApprovalDecision) -> Result<(), DecideError> {
        if !self.request.accepts(&decision) {
            return Err(DecideError::WrongKind { expected: self.request.name() });
        }
        let waiting = self.waiting.lock().take().ok_or(DecideError::Closed)?;
        waiting.send(decision).map_err(|_| DecideError::Closed)
    }

    /// Whether a decision would count.
    pub fn is_open(&self) -> bool {
        self.waiting.lock().is_some()
    }

    /// Ends it without a decision.
    pub fn close(&self) {
        self.waiting.lock().take();
    }
}
