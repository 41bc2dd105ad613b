//! [`Handler`]: answers server requests, such as approvals, tool calls and questions. What it does not implement is
//! declined.

use std::collections::BTreeMap;
use std::pin::Pin;

use loomd_protocol::{
    ApplyPatchApprovalParams, ApplyPatchApprovalResponse, ChatgptAuthTokensRefreshParams,
    ChatgptAuthTokensRefreshResponse, CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    CommandExecutionRequestApprovalResponse, DynamicToolCallOutputContentItem, DynamicToolCallParams,
    DynamicToolCallResponse, ExecCommandApprovalParams, ExecCommandApprovalResponse, FileChangeApprovalDecision,
    FileChangeRequestApprovalParams, FileChangeRequestApprovalResponse, GrantedPermissionProfile, JsonValue,
    McpServerElicitationAction, McpServerElicitationRequestParams, McpServerElicitationRequestResponse,
    PermissionGrantScope, PermissionsRequestApprovalParams, PermissionsRequestApprovalResponse, ReviewDecision,
    RpcError, ServerRequest, ToolRequestUserInputParams, ToolRequestUserInputResponse,
};
use serde::Serialize;

const METHOD_NOT_FOUND: i64 = -32601;

/// Answers server requests. Every method has a safe default: approvals are declined, questions get no answer, tools
/// do not exist.
///
/// Each request is handled in a task of its own, so an answer may take as long as a person does. When the server has
/// resolved the request otherwise (another client answered, or the turn ended), the future is dropped. A panic
/// becomes an error response.
///
/// ```
/// use loomd_client::Handler;
/// use loomd_client::protocol::{CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams};
///
/// struct OnlyGit;
///
/// impl Handler for OnlyGit {
///     async fn approve_command(
///         &self,
///         request: CommandExecutionRequestApprovalParams,
///     ) -> CommandExecutionApprovalDecision {
///         match request.command {
///             Some(command) if command.starts_with("git status") => CommandExecutionApprovalDecision::Accept,
///             _ => CommandExecutionApprovalDecision::Decline,
///         }
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// `item/commandExecution/requestApproval`: approves or declines a command.
    fn approve_command(
        &self,
        _request: CommandExecutionRequestApprovalParams,
    ) -> impl Future<Output = CommandExecutionApprovalDecision> + Send {
        async { CommandExecutionApprovalDecision::Decline }
    }

    /// `item/fileChange/requestApproval`: approves or declines changes to files.
    fn approve_file_change(
        &self,
        _request: FileChangeRequestApprovalParams,
    ) -> impl Future<Output = FileChangeApprovalDecision> + Send {
        async { FileChangeApprovalDecision::Decline }
    }

    /// `item/permissions/requestApproval`: grants a part of the requested permissions.
    fn approve_permissions(
        &self,
        _request: PermissionsRequestApprovalParams,
    ) -> impl Future<Output = PermissionsRequestApprovalResponse> + Send {
        async {
            let nothing = GrantedPermissionProfile { network: None, file_system: None };
            PermissionsRequestApprovalResponse { permissions: nothing, scope: PermissionGrantScope::Turn }
        }
    }

    /// `item/tool/requestUserInput`: answers questions of the model.
    fn answer_questions(
        &self,
        _request: ToolRequestUserInputParams,
    ) -> impl Future<Output = ToolRequestUserInputResponse> + Send {
        async { ToolRequestUserInputResponse { answers: BTreeMap::new() } }
    }

    /// `item/tool/call`: runs a tool that this client declared in `dynamicTools`.
    fn call_tool(&self, request: DynamicToolCallParams) -> impl Future<Output = DynamicToolCallResponse> + Send {
        let text = format!("this client has no tool {}", request.tool);
        async { tool_failure(text) }
    }

    /// `mcpServer/elicitation/request`: answers an MCP server's form or link.
    fn answer_elicitation(
        &self,
        _request: McpServerElicitationRequestParams,
    ) -> impl Future<Output = McpServerElicitationRequestResponse> + Send {
        async {
            let action = McpServerElicitationAction::Decline;
            McpServerElicitationRequestResponse { action, content: None, meta: None }
        }
    }

    /// `account/chatgptAuthTokens/refresh`: returns new tokens in place of those that this client supplied.
    fn refresh_tokens(
        &self,
        _request: ChatgptAuthTokensRefreshParams,
    ) -> impl Future<Output = Result<ChatgptAuthTokensRefreshResponse, RpcError>> + Send {
        async { Err(RpcError::internal("this client cannot refresh tokens")) }
    }

    /// `execCommandApproval`, sent only by older servers.
    fn approve_legacy_command(
        &self,
        _request: ExecCommandApprovalParams,
    ) -> impl Future<Output = ReviewDecision> + Send {
        async { ReviewDecision::Denied }
    }

    /// `applyPatchApproval`, sent only by older servers.
    fn approve_legacy_patch(&self, _request: ApplyPatchApprovalParams) -> impl Future<Output = ReviewDecision> + Send {
        async { ReviewDecision::Denied }
    }

    /// A request whose method or params this release does not know.
    fn answer_other(
        &self,
        method: String,
        _params: JsonValue,
    ) -> impl Future<Output = Result<JsonValue, RpcError>> + Send {
        async move {
            let message = format!("this client does not answer {method}");
            Err(RpcError { code: METHOD_NOT_FOUND, message, data: None })
        }
    }
}

/// Declines every request; the default.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeclineAll;

impl Handler for DeclineAll {}

/// Accepts every command and file change for the rest of the session. Only for a server that is itself sandboxed.
#[derive(Clone, Copy, Debug, Default)]
pub struct AcceptAll;

impl Handler for AcceptAll {
    async fn approve_command(&self, _: CommandExecutionRequestApprovalParams) -> CommandExecutionApprovalDecision {
        CommandExecutionApprovalDecision::AcceptForSession
    }

    async fn approve_file_change(&self, _: FileChangeRequestApprovalParams) -> FileChangeApprovalDecision {
        FileChangeApprovalDecision::AcceptForSession
    }

    async fn approve_legacy_command(&self, _: ExecCommandApprovalParams) -> ReviewDecision {
        ReviewDecision::ApprovedForSession
    }

    async fn approve_legacy_patch(&self, _: ApplyPatchApprovalParams) -> ReviewDecision {
        ReviewDecision::ApprovedForSession
    }
}

/// The response of a tool that succeeded.
pub fn tool_success(text: impl Into<String>) -> DynamicToolCallResponse {
    tool_response(text.into(), true)
}

/// The response of a tool that failed.
pub fn tool_failure(text: impl Into<String>) -> DynamicToolCallResponse {
    tool_response(text.into(), false)
}

fn tool_response(text: String, success: bool) -> DynamicToolCallResponse {
    DynamicToolCallResponse { content_items: vec![DynamicToolCallOutputContentItem::InputText { text }], success }
}

/// A server request, typed if this release knows it.
pub(crate) enum DecodedRequest {
    Known(Box<ServerRequest>),
    Other { method: String, params: JsonValue },
}

pub(crate) type HandlerFuture<'a> = Pin<Box<dyn Future<Output = Result<JsonValue, RpcError>> + Send + 'a>>;

/// [`Handler`] as a trait object.
pub(crate) trait DynHandler: Send + Sync {
    fn answer(&self, request: DecodedRequest) -> HandlerFuture<'_>;
}

impl<H: Handler> DynHandler for H {
    fn answer(&self, request: DecodedRequest) -> HandlerFuture<'_> {
        use ServerRequest as R;
        let request = match request {
            DecodedRequest::Known(request) => request,
            DecodedRequest::Other { method, params } => return Box::pin(self.answer_other(method, params)),
        };
        Box::pin(async move {
            match *request {
                R::CommandExecutionApproval(p) => {
                    let decision = self.approve_command(p).await;
                    encode(&CommandExecutionRequestApprovalResponse { decision })
                }
                R::FileChangeApproval(p) => {
                    let decision = self.approve_file_change(p).await;
                    encode(&FileChangeRequestApprovalResponse { decision })
                }
                R::ToolUserInput(p) => encode(&self.answer_questions(p).await),
                R::McpServerElicitation(p) => encode(&self.answer_elicitation(p).await),
                R::PermissionsApproval(p) => encode(&self.approve_permissions(p).await),
                R::DynamicToolCall(p) => encode(&self.call_tool(p).await),
                R::ChatgptAuthTokensRefresh(p) => encode(&self.refresh_tokens(p).await?),
                R::ApplyPatchApproval(p) => {
                    let decision = self.approve_legacy_patch(p).await;
                    encode(&ApplyPatchApprovalResponse { decision })
                }
                R::ExecCommandApproval(p) => {
                    let decision = self.approve_legacy_command(p).await;
                    encode(&ExecCommandApprovalResponse { decision })
                }
            }
        })
    }
}

fn encode(answer: &impl Serialize) -> Result<JsonValue, RpcError> {
    serde_json::to_value(answer).map_err(|error| RpcError::internal(format!("cannot encode the answer: {error}")))
}
