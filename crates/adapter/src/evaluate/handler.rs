//! The server's requests in an evaluation: calls of the prompt's tools, approvals, new tokens.
//!
//! A call of a tool is a transaction on the session: the tool works on a copy, which becomes the session's state only
//! if the tool succeeds. Calls run one after the other.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::SystemTime;

use futures_util::FutureExt;
use loomd_client::Handler;
use loomd_client::handler::{tool_failure, tool_success};
use loomd_client::protocol::{
    ApplyPatchApprovalParams, ChatgptAuthTokensRefreshParams, ChatgptAuthTokensRefreshResponse,
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams, DynamicToolCallParams,
    DynamicToolCallResponse, ExecCommandApprovalParams, FileChangeApprovalDecision, FileChangeRequestApprovalParams,
    McpServerElicitationRequestParams, McpServerElicitationRequestResponse, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, ReviewDecision, RpcError,
};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

use super::native::bounded;
use crate::adapter::Adapter;
use crate::approvals::ApprovalPolicy;
use crate::auth::Auth;
use crate::context::ToolContext;
use crate::event::{Event, ToolInvoked, ToolSource};
use crate::expansion::{Expansion, SectionRequest};
use crate::limits::{Exceeded, Limits, Share};
use crate::prompt::Rendered;
use crate::session::{Epoch, Transaction};
use crate::tool::{Tool, ToolError, ToolErrorKind, ToolOutput};

/// Why a turn is interrupted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    Deadline,
    Budget(Exceeded),
    Tool { tool: String, message: String },
}

/// The tools of an evaluation, and what calls of them caused.
pub(super) struct ToolCalls {
    pub(super) prompt: String,
    pub(super) epoch: Epoch,
    pub(super) budget: Option<Share>,
    tools: HashMap<String, Tool>,
    approvals: ApprovalPolicy,
    auth: Option<Auth>,
    deadline: Option<Instant>,
    /// Held by the call in progress.
    in_order: tokio::sync::Mutex<()>,
    stop: watch::Sender<Option<Stop>>,
    expansion: Mutex<Expansion>,
}

impl ToolCalls {
    pub(super) fn new(adapter: &Adapter, prompt: String, rendered: &Rendered, epoch: Epoch, limits: &Limits) -> Self {
        let tools = rendered.tools.iter().map(|tool| (tool.name().to_owned(), tool.clone())).collect();
        Self {
            prompt,
            epoch,
            budget: limits.budget.as_ref().map(|budget| budget.share()),
            tools,
            approvals: adapter.approvals,
            auth: adapter.auth.clone(),
            deadline: limits.earliest(),
            in_order: tokio::sync::Mutex::new(()),
            stop: watch::Sender::new(None),
            expansion: Mutex::default(),
        }
    }

    /// Waits until a tool call requires the end of the turn.
    pub(super) async fn stopped(&self) -> Stop {
        let mut stop = self.stop.subscribe();
        match stop.wait_for(Option::is_some).await.as_deref() {
            Ok(Some(stop)) => stop.clone(),
            // The sender lives as long as `self`.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// The sections that were requested so far.
    pub(super) fn take_expansion(&self) -> Expansion {
        std::mem::take(&mut self.expansion.lock())
    }

    async fn call(&self, request: DynamicToolCallParams) -> DynamicToolCallResponse {
        let _turn = self.in_order.lock().await;
        let begun = Instant::now();
        let (outcome, stop) = self.run(&request).await;
        let (success, output, response) = match outcome {
            Ok(output) => {
                (true, output.as_text(), DynamicToolCallResponse { content_items: output.content, success: true })
            }
            Err(ToolError(ToolErrorKind::Expand { sections, reason })) => {
                let text = self.request_sections(&request.tool, sections, &reason);
                (true, text.clone(), tool_success(text))
            }
            Err(ToolError(ToolErrorKind::Failed(text) | ToolErrorKind::Fatal(text))) => {
                (false, text.clone(), tool_failure(text))
            }
        };
        self.epoch.publish(Event::ToolInvoked(ToolInvoked {
            prompt: self.prompt.clone(),
            thread_id: request.thread_id,
            turn_id: request.turn_id,
            call_id: request.call_id,
            source: ToolSource::Prompt,
            name: request.tool,
            arguments: request.arguments,
            success,
            output: bounded(output),
            duration: Some(begun.elapsed()),
            at: SystemTime::now(),
        }));
        if let Some(stop) = stop {
            self.stop.send_if_modified(|current| {
                let first = current.is_none();
                current.get_or_insert(stop);
                first
            });
        }
        response
    }

    /// Runs a tool in a transaction. The second value ends the turn.
    async fn run(&self, request: &DynamicToolCallParams) -> (Result<ToolOutput, ToolError>, Option<Stop>) {
        let Some(tool) = self.tools.get(&request.tool) else {
            return (Err(ToolError::new(format!("unknown tool `{}`", request.tool))), None);
        };
        if self.deadline.is_some_and(|at| at <= Instant::now()) {
            return (Err(ToolError::new("the deadline has passed")), Some(Stop::Deadline));
        }
        if let Some(exceeded) = self.budget.as_ref().and_then(Share::exceeded) {
            return (Err(ToolError::new(exceeded)), Some(Stop::Budget(exceeded)));
        }
        let transaction = Transaction::begin(&self.epoch);
        let context = ToolContext {
            working: transaction.working(),
            call_id: request.call_id.clone(),
            thread_id: request.thread_id.clone(),
            turn_id: request.turn_id.clone(),
            deadline: self.deadline,
        };
        match self.complete(tool, request.arguments.clone(), context).await {
            Some(Ok(output)) => {
                transaction.commit();
                (Ok(output), None)
            }
            Some(Err(error)) => {
                let stop = match &error.0 {
                    ToolErrorKind::Fatal(message) => {
                        Some(Stop::Tool { tool: request.tool.clone(), message: message.clone() })
                    }
                    ToolErrorKind::Failed(_) | ToolErrorKind::Expand { .. } => None,
                };
                (Err(error), stop)
            }
            None => (Err(ToolError::new("the deadline has passed")), Some(Stop::Deadline)),
        }
    }

    /// Awaits a tool up to the deadline, and turns a panic into an error.
    async fn complete(
        &self,
        tool: &Tool,
        arguments: Value,
        context: ToolContext,
    ) -> Option<Result<ToolOutput, ToolError>> {
        let running = AssertUnwindSafe(async { tool.run(arguments, context).await }).catch_unwind();
        let ended = match self.deadline {
            Some(deadline) => timeout_at(deadline, running).await.ok()?,
            None => running.await,
        };
        Some(ended.unwrap_or_else(|_| Err(ToolError::new("the tool panicked"))))
    }

    /// Records a request for hidden sections, and returns the text for the model.
    fn request_sections(&self, tool: &str, sections: Vec<String>, reason: &str) -> String {
        let text = format!("These sections will be shown: {}. End your turn now.", sections.join(", "));
        let mut expansion = self.expansion.lock();
        for section in sections {
            if !expansion.requests.iter().any(|request| request.section == section) {
                let (reason, tool) = (reason.to_owned(), tool.to_owned());
                expansion.requests.push(SectionRequest { section, reason, tool });
            }
        }
        text
    }
}

/// The handler of an evaluation's client.
pub(super) struct EvaluationHandler(pub(super) Arc<ToolCalls>);

impl Handler for EvaluationHandler {
    async fn approve_command(&self, _: CommandExecutionRequestApprovalParams) -> CommandExecutionApprovalDecision {
        self.0.approvals.command()
    }

    async fn approve_file_change(&self, _: FileChangeRequestApprovalParams) -> FileChangeApprovalDecision {
        self.0.approvals.file_change()
    }

    async fn approve_permissions(
        &self,
        request: PermissionsRequestApprovalParams,
    ) -> PermissionsRequestApprovalResponse {
        self.0.approvals.permissions(request)
    }

    async fn answer_elicitation(
        &self,
        request: McpServerElicitationRequestParams,
    ) -> McpServerElicitationRequestResponse {
        self.0.approvals.elicitation(&request.request)
    }

    async fn approve_legacy_command(&self, _: ExecCommandApprovalParams) -> ReviewDecision {
        self.0.approvals.legacy()
    }

    async fn approve_legacy_patch(&self, _: ApplyPatchApprovalParams) -> ReviewDecision {
        self.0.approvals.legacy()
    }

    async fn call_tool(&self, request: DynamicToolCallParams) -> DynamicToolCallResponse {
        self.0.call(request).await
    }

    async fn refresh_tokens(
        &self,
        request: ChatgptAuthTokensRefreshParams,
    ) -> Result<ChatgptAuthTokensRefreshResponse, RpcError> {
        let Some(auth) = &self.0.auth else { return Err(RpcError::internal("this client supplied no tokens")) };
        auth.refresh(request.previous_account_id).await.map_err(|error| RpcError::internal(error.to_string()))
    }
}
