//! What a turn needs a client for: approvals, answers of the user, calls of client tools. Each has an id and a type of
//! decision of its own. Front ends transport decisions; the first one counts. `event_log/kept_approvals.rs` stores them.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use jiff::Timestamp;
use loomd_protocol::{
    ApprovalDefault, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    DynamicToolCallOutputContentItem, DynamicToolCallParams, DynamicToolCallResponse, FileChangeApprovalDecision,
    FileChangeRequestApprovalParams, GrantedPermissionProfile, JsonValue, McpServerElicitationAction,
    McpServerElicitationRequest, McpServerElicitationRequestParams, McpServerElicitationRequestResponse,
    PermissionGrantScope, PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse,
    ToolRequestUserInputParams, ToolRequestUserInputResponse, server_call,
};
use loomd_store::rollout::{ApprovalAudit, AuditedDecider};
use loomd_store::{ApprovalOutcome, Decider, StoredApproval};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use thiserror::Error;
use tokio::sync::oneshot;
use uuid::Uuid;

/// The id of an approval, unique across threads and restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApprovalId(pub(crate) Uuid);

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
    ($($(#[$doc:meta])* $kind:ident $name:literal $call:ident ($params:ty) -> $decision:ty;)*) => {
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

            /// The method of the server request.
            pub fn method(&self) -> &'static str {
                match self {
                    $(Self::$kind(_) => <server_call::$call as loomd_protocol::Call>::METHOD,)*
                }
            }

            /// The params of the server request as JSON.
            pub(crate) fn params(&self) -> Result<JsonValue, serde_json::Error> {
                match self {
                    $(Self::$kind(params) => serde_json::to_value(params),)*
                }
            }

            /// The request with these stored params; `None` if they are not those of the method.
            pub(crate) fn read(method: &str, params: &JsonValue) -> Option<Self> {
                $(if method == <server_call::$call as loomd_protocol::Call>::METHOD {
                    return serde::Deserialize::deserialize(params).ok().map(Self::$kind);
                })*
                None
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

        impl ApprovalDecision {
            /// The decision as JSON, without the member that it is in where the result of the server request has no
            /// other.
            pub(crate) fn to_json(&self) -> Result<JsonValue, serde_json::Error> {
                match self {
                    $(Self::$kind(decision) => serde_json::to_value(decision),)*
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
    Command "command" CommandExecutionApproval (CommandExecutionRequestApprovalParams) -> CommandExecutionApprovalDecision;
    /// Whether a patch may be applied.
    Patch "patch" FileChangeApproval (FileChangeRequestApprovalParams) -> FileChangeApprovalDecision;
    /// Which permissions beyond the policy are granted.
    Permissions "permissions" PermissionsApproval (PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse;
    /// Answers of the user to the model.
    UserInput "user input" ToolUserInput (ToolRequestUserInputParams) -> ToolRequestUserInputResponse;
    /// A call of a tool that the client brought.
    ToolCall "tool call" DynamicToolCall (DynamicToolCallParams) -> DynamicToolCallResponse;
    /// Answers of the user to an MCP server.
    Elicitation "elicitation" McpServerElicitation (McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse;
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

/// Why a decision did not count.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DecideError {
    #[error("the approval has been decided by {}", shown(.0))]
    Decided(Decider),
    #[error("the approval has been {}", ended(.0))]
    Ended(Box<ApprovalOutcome>),
    #[error("the approval is no longer needed")]
    Closed,
    /// It is stored as open, and its thread is not loaded here, or its turn does not go on.
    #[error("no turn of this server waits for the approval; resume its thread first")]
    NotWaiting,
    #[error("invalid decision: expected one about a {expected}")]
    WrongKind { expected: &'static str },
    #[error("invalid decision: {0}")]
    Invalid(String),
    #[error("unknown approval")]
    Unknown,
    /// The turn that waits for it has gone on without it.
    #[error("the decision cannot be stored: {0}")]
    NotStored(String),
}

/// An outcome as errors name it.
fn ended(outcome: &ApprovalOutcome) -> String {
    match &outcome.by {
        Some(by) => format!("decided by {}", shown(by)),
        None => outcome.end.name().into(),
    }
}

/// A decider as errors name it.
fn shown(by: &Decider) -> String {
    match &by.client {
        Some(client) => format!("connection {} ({client})", by.connection),
        None => by.connection.clone(),
    }
}

/// A decision in a word, for records that must not have its content.
pub(crate) fn decision_word(decision: &JsonValue) -> String {
    let members = match decision {
        JsonValue::String(word) => return word.clone(),
        JsonValue::Object(members) => members,
        _ => return String::new(),
    };
    if let Some(JsonValue::String(action)) = members.get("action") {
        return action.clone();
    }
    if let Some(permissions) = members.get("permissions") {
        let is_empty = permissions.as_object().is_none_or(|granted| granted.values().all(JsonValue::is_null));
        return if is_empty { "decline" } else { "accept" }.into();
    }
    if let Some(answers) = members.get("answers") {
        return if answers.as_object().is_none_or(|answers| answers.is_empty()) { "decline" } else { "answer" }.into();
    }
    members.keys().next().cloned().unwrap_or_default()
}

/// The record of an approval that has ended; `None` while it is open.
pub(crate) fn approval_audit(approval: &StoredApproval) -> Option<ApprovalAudit> {
    let outcome = approval.outcome.as_ref()?;
    Some(ApprovalAudit {
        approval_id: approval.id.to_string(),
        turn_id: approval.turn_id.clone(),
        item_id: approval.item_id.clone(),
        method: approval.method.clone(),
        asked_at_ms: approval.asked_at_ms,
        state: outcome.end.name().into(),
        decision: outcome.decision.as_ref().map(decision_word),
        decided_at_ms: outcome.at_ms,
        decided_by: outcome.by.as_ref().map(|by| AuditedDecider {
            connection: by.connection.clone(),
            client: by.client.clone(),
            role: by.role.clone(),
        }),
    })
}

/// The decider in place of a client: the deadline.
pub(crate) const DEADLINE: &str = "deadline";

/// A decision, and who made it.
#[derive(Debug)]
pub(crate) struct Decided {
    pub decision: ApprovalDecision,
    pub by: Decider,
    /// Gets the approval as it was stored, or why it was not.
    pub stored: oneshot::Sender<Result<StoredApproval, String>>,
}

impl Decided {
    /// A decision that nobody is waited for.
    pub fn settled(decision: ApprovalDecision) -> Self {
        let by = Decider { connection: String::new(), client: None, role: None };
        Self { decision, by, stored: oneshot::channel().0 }
    }

    /// Whether the deadline decided.
    pub fn is_expired(&self) -> bool {
        self.by.connection == DEADLINE
    }
}

/// The end of a decision: the approval as it was stored. Fails when the turn ended first.
pub type DecisionStored = oneshot::Receiver<Result<StoredApproval, String>>;

/// A request that a turn waits for.
pub struct Approval {
    pub id: ApprovalId,
    pub request: ApprovalRequest,
    /// When it was requested first.
    pub asked_at_ms: i64,
    /// When the default decision counts, if there is none.
    pub(crate) deadline: Option<(i64, ApprovalDefault)>,
    /// The number under which the event sink sent it, once it has. Not interpreted by the agent.
    pub sent_as: OnceLock<i64>,
    waiting: Mutex<Waiting>,
}

enum Waiting {
    Open(oneshot::Sender<Decided>),
    Decided(Decider),
    Closed,
}

impl fmt::Debug for Approval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Approval").field("id", &self.id).field("request", &self.request).finish_non_exhaustive()
    }
}

/// Waits for the decision about an approval. Fails when it is closed without one.
#[derive(Debug)]
pub struct PendingDecision(pub(crate) oneshot::Receiver<Decided>);

impl PendingDecision {
    /// The decision, if there is one.
    pub fn try_recv(&mut self) -> Option<ApprovalDecision> {
        self.0.try_recv().ok().map(|decided| decided.decision)
    }
}

impl Approval {
    /// An open approval and its decision.
    pub fn new(request: ApprovalRequest) -> (Self, PendingDecision) {
        Self::with(ApprovalId(Uuid::now_v7()), request, Timestamp::now().as_millisecond(), None)
    }

    pub(crate) fn with(
        id: ApprovalId,
        request: ApprovalRequest,
        asked_at_ms: i64,
        deadline: Option<(i64, ApprovalDefault)>,
    ) -> (Self, PendingDecision) {
        let (waiting, decision) = oneshot::channel();
        let waiting = Mutex::new(Waiting::Open(waiting));
        (Self { id, request, asked_at_ms, deadline, sent_as: OnceLock::new(), waiting }, PendingDecision(decision))
    }

    /// Decides it, unless it has been decided. The decision has effect once it is stored.
    pub fn decide(&self, decision: ApprovalDecision, by: Decider) -> Result<DecisionStored, DecideError> {
        if !self.request.accepts(&decision) {
            return Err(DecideError::WrongKind { expected: self.request.name() });
        }
        let mut waiting = self.waiting.lock();
        match &*waiting {
            Waiting::Decided(by) => return Err(DecideError::Decided(by.clone())),
            Waiting::Closed => return Err(DecideError::Closed),
            Waiting::Open(_) => {}
        }
        let Waiting::Open(open) = std::mem::replace(&mut *waiting, Waiting::Decided(by.clone())) else {
            return Err(DecideError::Closed);
        };
        drop(waiting);
        let (stored, result) = oneshot::channel();
        open.send(Decided { decision, by, stored }).map_err(|_| DecideError::Closed)?;
        Ok(result)
    }

    /// Lets the default decision count, if there is no other one.
    pub(crate) fn expire(&self, word: ApprovalDefault) {
        let by = Decider { connection: DEADLINE.into(), client: None, role: None };
        _ = self.decide(self.request.decision_of(word), by);
    }

    /// Whether a decision would count.
    pub fn is_open(&self) -> bool {
        matches!(&*self.waiting.lock(), Waiting::Open(_))
    }

    /// Ends it without a decision, if there is none.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        if matches!(&*waiting, Waiting::Open(_)) {
            *waiting = Waiting::Closed;
        }
    }
}
