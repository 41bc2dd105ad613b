//! Items of stored events, as clients see them.

use std::time::Duration;

use loomd_protocol::{
    ByteRange, CommandExecutionStatus, DynamicToolCallStatus, FileUpdateChange, McpToolCallError, McpToolCallResult,
    McpToolCallStatus, PatchApplyStatus, PatchChangeKind, ResponsesApiWebSearchAction, TextElement, ThreadItem,
    UserInput, WebSearchAction,
};
use loomd_store::rollout::{
    AgentMessage, CompletedItem, DynamicToolCallRequest, DynamicToolCallResponse, EndStatus, EnteredReviewMode,
    ExecCommandEnd, ExitedReviewMode, FileChange, ImageGenerationEnd, McpToolCallEnd, PatchApplyEnd, UserMessage,
    ViewImageToolCall, WebSearchEnd,
};

pub(crate) fn user_message(id: String, message: UserMessage) -> ThreadItem {
    // Exact, because there may be thousands of messages, most with one text.
    let parts = 1 + message.images.as_ref().map_or(0, Vec::len) + message.local_images.len();
    let mut content = Vec::with_capacity(parts);
    if !message.message.trim().is_empty() {
        let element = |element: loomd_store::rollout::TextElement| TextElement {
            byte_range: ByteRange {
                start: usize::try_from(element.byte_range.start).unwrap_or(usize::MAX),
                end: usize::try_from(element.byte_range.end).unwrap_or(usize::MAX),
            },
            placeholder: element.placeholder,
        };
        let text_elements = message.text_elements.into_iter().map(element).collect();
        content.push(UserInput::Text { text: message.message, text_elements });
    }
    content.extend(message.images.into_iter().flatten().map(|url| UserInput::Image { url }));
    content.extend(message.local_images.into_iter().map(|path| UserInput::LocalImage { path }));
    ThreadItem::UserMessage { id, content, client_id: message.client_id }
}

/// An item that has no event of its own.
pub(crate) fn completed(item: CompletedItem) -> ThreadItem {
    match item {
        CompletedItem::Plan { id, text } => ThreadItem::Plan { id, text },
        CompletedItem::FunctionCallOutput { id, name, namespace, output } => {
            ThreadItem::FunctionCallOutput { id, name, namespace, output }
        }
        CompletedItem::SubAgentActivity { id, kind, agent_thread_id, agent_path, model, reasoning_effort } => {
            ThreadItem::SubAgentActivity { id, kind, agent_thread_id, agent_path, model, reasoning_effort }
        }
    }
}

pub(super) fn agent_message(id: String, message: AgentMessage) -> ThreadItem {
    ThreadItem::AgentMessage {
        id,
        text: message.message,
        phase: message.phase,
        memory_citation: message.memory_citation.map(Into::into),
    }
}

pub(super) fn entered_review(id: String, entered: EnteredReviewMode) -> ThreadItem {
    let review = entered.user_facing_hint.unwrap_or_else(|| "Review requested.".into());
    ThreadItem::EnteredReviewMode { id, review }
}

pub(super) fn exited_review(id: String, exited: ExitedReviewMode) -> ThreadItem {
    let explanation = exited.review_output.map(|output| output.overall_explanation.trim().to_owned());
    let review = explanation.filter(|text| !text.is_empty());
    let review = review.unwrap_or_else(|| "Reviewer failed to output a response.".into());
    ThreadItem::ExitedReviewMode { id, review }
}

pub(super) fn command_execution(end: ExecCommandEnd) -> ThreadItem {
    ThreadItem::CommandExecution {
        id: end.call_id,
        command: shell_words(&end.command),
        cwd: end.cwd,
        process_id: end.process_id,
        source: end.source.into(),
        status: match end.status {
            EndStatus::Completed => CommandExecutionStatus::Completed,
            EndStatus::Failed => CommandExecutionStatus::Failed,
            EndStatus::Declined => CommandExecutionStatus::Declined,
        },
        command_actions: end.parsed_cmd.into_iter().map(Into::into).collect(),
        aggregated_output: Some(end.aggregated_output).filter(|output| !output.is_empty()),
        exit_code: Some(end.exit_code),
        duration_ms: milliseconds(end.duration),
    }
}

pub(super) fn file_change(end: PatchApplyEnd) -> ThreadItem {
    let changes = end.changes.into_iter().map(|(path, change)| match change {
        FileChange::Add { content } => FileUpdateChange { path, kind: PatchChangeKind::Add, diff: content },
        FileChange::Delete { content } => FileUpdateChange { path, kind: PatchChangeKind::Delete, diff: content },
        FileChange::Update { mut unified_diff, move_path } => {
            if let Some(target) = &move_path {
                unified_diff.push_str(&format!("\n\nMoved to: {target}"));
            }
            FileUpdateChange { path, kind: PatchChangeKind::Update { move_path }, diff: unified_diff }
        }
    });
    ThreadItem::FileChange {
        id: end.call_id,
        changes: changes.collect(),
        status: match end.status {
            EndStatus::Completed => PatchApplyStatus::Completed,
            EndStatus::Failed => PatchApplyStatus::Failed,
            EndStatus::Declined => PatchApplyStatus::Declined,
        },
    }
}

pub(super) fn dynamic_tool_call(request: DynamicToolCallRequest) -> ThreadItem {
    ThreadItem::DynamicToolCall {
        id: request.call_id,
        namespace: request.namespace,
        tool: request.tool,
        arguments: request.arguments,
        status: DynamicToolCallStatus::InProgress,
        content_items: None,
        success: None,
        duration_ms: None,
    }
}

pub(super) fn dynamic_tool_result(response: DynamicToolCallResponse) -> ThreadItem {
    let status = if response.success { DynamicToolCallStatus::Completed } else { DynamicToolCallStatus::Failed };
    ThreadItem::DynamicToolCall {
        id: response.call_id,
        namespace: response.namespace,
        tool: response.tool,
        arguments: response.arguments,
        status,
        content_items: Some(response.content_items),
        success: Some(response.success),
        duration_ms: milliseconds(response.duration),
    }
}

pub(super) fn mcp_tool_call(end: McpToolCallEnd) -> ThreadItem {
    let (status, result, error) = match end.result {
        Ok(result) => {
            let failed = result.is_error.unwrap_or_default();
            let status = if failed { McpToolCallStatus::Failed } else { McpToolCallStatus::Completed };
            let result = McpToolCallResult {
                content: result.content,
                structured_content: result.structured_content,
                meta: result.meta,
            };
            (status, Some(result), None)
        }
        Err(message) => (McpToolCallStatus::Failed, None, Some(McpToolCallError { message })),
    };
    ThreadItem::McpToolCall {
        id: end.call_id,
        server: end.invocation.server,
        tool: end.invocation.tool,
        status,
        arguments: end.invocation.arguments.unwrap_or_default(),
        result,
        error,
        duration_ms: milliseconds(end.duration),
        read_only_hint: end.read_only_hint,
        plugin_id: end.plugin_id,
        app_context: None,
        mcp_app_ui: None,
        mcp_app_resource_uri: None,
    }
}

pub(super) fn web_search(end: WebSearchEnd) -> ThreadItem {
    use ResponsesApiWebSearchAction as Stored;
    let action = match end.action {
        Stored::Search { query, queries } => WebSearchAction::Search { query, queries },
        Stored::OpenPage { url } => WebSearchAction::OpenPage { url },
        Stored::FindInPage { url, pattern } => WebSearchAction::FindInPage { url, pattern },
        Stored::Other => WebSearchAction::Other,
    };
    ThreadItem::WebSearch { id: end.call_id, query: end.query, action: Some(action) }
}

pub(super) fn image_view(view: ViewImageToolCall) -> ThreadItem {
    ThreadItem::ImageView { id: view.call_id, path: view.path }
}

pub(super) fn image_generation(end: ImageGenerationEnd) -> ThreadItem {
    ThreadItem::ImageGeneration {
        id: end.call_id,
        status: end.status,
        revised_prompt: end.revised_prompt,
        result: end.result,
        saved_path: end.saved_path,
    }
}

fn milliseconds(duration: Duration) -> Option<i64> {
    Some(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX))
}

/// A command line that a shell splits into these words.
fn shell_words(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}
