//! The decisions about each kind of request: the one that allows nothing, those in one word, and those in JSON.

use std::collections::BTreeMap;

use loomd_protocol::{
    ApprovalDefault, CommandExecutionApprovalDecision, DynamicToolCallOutputContentItem, DynamicToolCallResponse,
    FileChangeApprovalDecision, GrantedPermissionProfile, JsonValue, McpServerElicitationAction,
    McpServerElicitationRequest, McpServerElicitationRequestResponse, PermissionGrantScope,
    PermissionsRequestApprovalResponse, ToolRequestUserInputResponse,
};
use serde::de::DeserializeOwned;

use crate::approval::{ApprovalDecision, ApprovalRequest};

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

    /// The turn and the item that it belongs to, as far as it names them.
    pub(crate) fn place(&self) -> (Option<&str>, Option<&str>) {
        match self {
            Self::Command(params) => (Some(&params.turn_id), Some(&params.item_id)),
            Self::Patch(params) => (Some(&params.turn_id), Some(&params.item_id)),
            Self::Permissions(params) => (Some(&params.turn_id), Some(&params.item_id)),
            Self::UserInput(params) => (Some(&params.turn_id), Some(&params.item_id)),
            Self::ToolCall(params) => (Some(&params.turn_id), Some(&params.call_id)),
            Self::Elicitation(params) => (params.turn_id.as_deref(), None),
        }
    }

    /// The decision that a word makes. What needs an answer beyond yes or no is not accepted: questions get no answers,
    /// and forms with fields and links are declined.
    pub(crate) fn decision_of(&self, word: ApprovalDefault) -> ApprovalDecision {
        match (self, word) {
            (Self::Command(_), ApprovalDefault::Accept) => {
                ApprovalDecision::Command(CommandExecutionApprovalDecision::Accept)
            }
            (Self::Command(_), ApprovalDefault::Cancel) => {
                ApprovalDecision::Command(CommandExecutionApprovalDecision::Cancel)
            }
            (Self::Patch(_), ApprovalDefault::Accept) => ApprovalDecision::Patch(FileChangeApprovalDecision::Accept),
            (Self::Patch(_), ApprovalDefault::Cancel) => ApprovalDecision::Patch(FileChangeApprovalDecision::Cancel),
            (Self::Permissions(params), ApprovalDefault::Accept) => {
                let requested = params.permissions.clone();
                ApprovalDecision::Permissions(PermissionsRequestApprovalResponse {
                    permissions: GrantedPermissionProfile {
                        network: requested.network,
                        file_system: requested.file_system,
                    },
                    scope: PermissionGrantScope::Turn,
                })
            }
            (Self::Elicitation(params), ApprovalDefault::Accept) if !needs_content(&params.request) => {
                elicited(McpServerElicitationAction::Accept)
            }
            (Self::Elicitation(_), ApprovalDefault::Cancel) => elicited(McpServerElicitationAction::Cancel),
            _ => self.declined(""),
        }
    }

    /// The decision in a JSON value: a word, or the decision as [`ApprovalDecision::to_json`] writes it. The error
    /// says what is expected.
    pub(crate) fn parse_decision(&self, value: &JsonValue) -> Result<ApprovalDecision, String> {
        fn read<T: DeserializeOwned>(value: &JsonValue) -> Option<T> {
            T::deserialize(value).ok()
        }
        let decision = match self {
            Self::Command(_) => read(value).map(ApprovalDecision::Command),
            Self::Patch(_) => read(value).map(ApprovalDecision::Patch),
            Self::Permissions(_) => read(value).map(ApprovalDecision::Permissions),
            Self::UserInput(_) => read(value).map(ApprovalDecision::UserInput),
            Self::ToolCall(_) => read(value).map(ApprovalDecision::ToolCall),
            Self::Elicitation(_) => read(value).map(ApprovalDecision::Elicitation),
        };
        let word = || read(value).map(|word| self.decision_of(word));
        decision.or_else(word).ok_or_else(|| {
            let expected = match self {
                Self::Command(_) | Self::Patch(_) => "one of the decisions of the server request",
                Self::Permissions(_) | Self::UserInput(_) | Self::ToolCall(_) | Self::Elicitation(_) => {
                    "the result of the server request, or `accept`, `decline` or `cancel`"
                }
            };
            format!("expected {expected} `{}`", self.method())
        })
    }
}

/// Whether the user would have to fill in fields or open a link.
fn needs_content(request: &McpServerElicitationRequest) -> bool {
    match request {
        McpServerElicitationRequest::Form { requested_schema, .. } => !requested_schema.properties.is_empty(),
        McpServerElicitationRequest::OpenaiForm { .. } | McpServerElicitationRequest::Url { .. } => true,
    }
}

fn elicited(action: McpServerElicitationAction) -> ApprovalDecision {
    ApprovalDecision::Elicitation(McpServerElicitationRequestResponse { action, content: None, meta: None })
}
