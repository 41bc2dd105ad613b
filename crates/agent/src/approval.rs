//! What a turn needs a client for: approvals, answers of the user, calls of client tools. Each has an id and a type of
//! decision of its own. Front ends transport decisions; the first one counts. `event_log/kept_approvals.rs` stores them.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use jiff::Timestamp;
use loomd_protocol::{
    ApprovalDefault, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, DynamicToolCallParams,
    DynamicToolCallResponse, FileChangeApprovalDecision, FileChangeRequestApprovalParams, JsonValue,
    McpServerElicitationRequestParams, McpServerElicitationRequestResponse, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, ToolRequestUserInputParams, ToolRequestUserInputResponse, server_call,
};
use loomd_store::{ApprovalOutcome, Decider, StoredApproval};
use parking_lot::Mutex;
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
    /// A decision without a decider, whose storing is not waited for.
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
