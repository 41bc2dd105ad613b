//! Whether a call of an MCP tool may run: by the policy, the tool's annotations and mode, or by the user.

use std::collections::BTreeMap;

use loomd_config::Feature;
use loomd_mcp::Tool;
use loomd_protocol::{
    AppToolApproval, ApprovalsReviewer, AskForApproval, JsonObject, JsonValue, McpElicitationObjectType,
    McpElicitationSchema, McpServerElicitationAction, McpServerElicitationRequest, McpServerElicitationRequestParams,
    SandboxPolicy, ToolRequestUserInputOption, ToolRequestUserInputParams, ToolRequestUserInputQuestion,
};
use serde_json::json;

use crate::guard::{Denial, judge};
use crate::mcp::{ApprovalSubject, ThreadServer, approve_always};
use crate::tools::cx::ToolCx;

pub(super) const REJECTED: &str = "user rejected MCP tool call";
pub(super) const CANCELLED: &str = "user cancelled MCP tool call";
const NEVER: &str = "MCP tool call requires approval, but approval policy is never";

const ALLOW: &str = "Allow";
const ALLOW_FOR_SESSION: &str = "Allow for this session";
const CANCEL: &str = "Cancel";

/// What an approval is about.
pub(super) struct Subject<'a> {
    pub call_id: &'a str,
    pub server: &'a ThreadServer,
    pub tool: &'a Tool,
    pub arguments: Option<&'a JsonObject>,
}

/// The answer of the user.
enum Answer {
    Allowed,
    /// For the rest of the thread.
    AllowedForSession,
    /// Also in the configuration.
    AllowedAlways,
    Rejected,
    Cancelled,
}

/// Requests an approval if one is needed. The error is the text of a call that must not run.
pub(super) async fn approve(cx: &ToolCx, subject: &Subject<'_>) -> Result<(), String> {
    let turn = &cx.action.turn;
    let mode = subject.server.rules.approval_mode(subject.tool);
    let key = format!("mcp {:?} {:?}", subject.server.name, subject.tool.name);
    let unrestricted = turn.settings.approval_policy == AskForApproval::Never
        && matches!(turn.settings.sandbox, SandboxPolicy::DangerFullAccess | SandboxPolicy::ExternalSandbox { .. });
    let free = unrestricted
        || match mode {
            AppToolApproval::Approve => true,
            AppToolApproval::Prompt => false,
            AppToolApproval::Auto => !subject.tool.annotations.needs_approval() || cx.action.guard.is_remembered(&key),
        };
    if free {
        return Ok(());
    }
    let is_newer = turn.profile.newer_tools;
    if is_newer && turn.settings.approval_policy == AskForApproval::Never {
        return Err(NEVER.into());
    }
    if turn.settings.approvals_reviewer == ApprovalsReviewer::GuardianSubagent
        && turn.settings.approval_policy == AskForApproval::OnRequest
    {
        return review(cx, subject).await;
    }
    let by_elicitation = is_newer || turn.profile.config.features.enabled(Feature::ToolCallMcpElicitation);
    let answer = match by_elicitation {
        true => elicit(cx, subject, mode).await,
        false => ask(cx, subject, mode).await,
    };
    match answer {
        Answer::Rejected => return Err(REJECTED.into()),
        Answer::Cancelled => return Err(CANCELLED.into()),
        // Not remembered for a tool that is to be asked about every time.
        _ if mode == AppToolApproval::Prompt => {}
        Answer::Allowed => {}
        Answer::AllowedForSession => cx.action.guard.remember(key),
        Answer::AllowedAlways => {
            cx.action.guard.remember(key);
            if let Some(services) = cx.thread.mcp.services() {
                let config_key = subject.server.rules.approval_key(&subject.server.name, subject.tool);
                let written = approve_always(services, &turn.settings.cwd, &subject.server.name, config_key).await;
                if let Err(error) = written {
                    tracing::warn!(server = subject.server.name, error, "an approval could not be written down");
                }
            }
        }
    }
    Ok(())
}

/// Has the reviewer decide in place of the user.
async fn review(cx: &ToolCx, subject: &Subject<'_>) -> Result<(), String> {
    let action = json!({
        "type": "mcpToolCall",
        "tool": "mcp_tool_call",
        "toolName": subject.tool.name,
        "server": subject.server.name,
        "tool_name": subject.tool.name,
        "tool_description": subject.tool.description,
        "arguments": subject.arguments,
    });
    judge(&cx.action.turn, &cx.action.services, subject.call_id, action).await.map_err(|denial| match denial {
        Denial::Declined(reason) => reason,
        Denial::Cancelled => CANCELLED.into(),
    })
}

fn wording(subject: &Subject<'_>) -> ApprovalSubject {
    let listing = subject.server.listing().unwrap_or_default();
    subject.server.rules.approval_subject(&subject.server.name, subject.tool, &listing.tools)
}

fn message(subject: &ApprovalSubject, tool: &Tool) -> String {
    format!("Allow {} to run tool \"{}\"?", subject.name, tool.name)
}

/// Requests the approval as an elicitation.
async fn elicit(cx: &ToolCx, subject: &Subject<'_>, mode: AppToolApproval) -> Answer {
    let turn = &cx.action.turn;
    let wording = self::wording(subject);
    let message = message(&wording, subject.tool);
    let request = McpServerElicitationRequestParams {
        thread_id: turn.thread_id.clone(),
        turn_id: Some(turn.turn_id.clone()),
        server_name: subject.server.name.clone(),
        request: McpServerElicitationRequest::Form {
            meta: Some(meta(subject, wording.meta, mode).into()),
            message,
            requested_schema: McpElicitationSchema {
                schema: None,
                r#type: McpElicitationObjectType::Object,
                properties: BTreeMap::new(),
                required: None,
            },
        },
    };
    let Some(response) = turn.request(request).await else { return Answer::Cancelled };
    let persist = response.meta.as_ref().and_then(|meta| meta.get("persist")).and_then(JsonValue::as_str);
    match (response.action, persist) {
        (McpServerElicitationAction::Accept, Some("session")) => Answer::AllowedForSession,
        (McpServerElicitationAction::Accept, Some("always")) => Answer::AllowedAlways,
        (McpServerElicitationAction::Accept, _) => Answer::Allowed,
        (McpServerElicitationAction::Decline, _) => Answer::Rejected,
        (McpServerElicitationAction::Cancel, _) => Answer::Cancelled,
    }
}

fn meta(subject: &Subject<'_>, more: JsonObject, mode: AppToolApproval) -> JsonObject {
    let tool = subject.tool;
    let mut meta = JsonObject::new();
    meta.insert("codex_approval_kind".into(), "mcp_tool_call".into());
    if mode != AppToolApproval::Prompt {
        meta.insert("persist".into(), json!(["session", "always"]));
    }
    meta.extend(more);
    if let Some(title) = &tool.title {
        meta.insert("tool_title".into(), title.as_str().into());
    }
    if let Some(description) = &tool.description {
        meta.insert("tool_description".into(), description.as_str().into());
    }
    if let Some(arguments) = subject.arguments {
        meta.insert("tool_params".into(), arguments.clone().into());
        let sorted: BTreeMap<_, _> = arguments.iter().collect();
        let shown =
            sorted.into_iter().map(|(name, value)| json!({ "name": name, "value": value, "display_name": name }));
        meta.insert("tool_params_display".into(), shown.collect());
    }
    meta
}

/// Requests the approval as a question with fixed answers.
async fn ask(cx: &ToolCx, subject: &Subject<'_>, mode: AppToolApproval) -> Answer {
    let turn = &cx.action.turn;
    let wording = self::wording(subject);
    let id = format!("mcp_tool_call_approval_{}", subject.call_id);
    let option = |label: &str, description: &str| ToolRequestUserInputOption {
        label: label.into(),
        description: description.into(),
    };
    let mut options = vec![option(ALLOW, "Run the tool and continue.")];
    if mode != AppToolApproval::Prompt {
        options.push(option(ALLOW_FOR_SESSION, "Run the tool, and do not ask again in this session."));
    }
    options.push(option(CANCEL, "Cancel this tool call."));
    let request = ToolRequestUserInputParams {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        item_id: subject.call_id.into(),
        questions: vec![ToolRequestUserInputQuestion {
            id: id.clone(),
            header: "Approve app tool call?".into(),
            question: message(&wording, subject.tool),
            is_other: false,
            is_secret: false,
            options: Some(options),
        }],
        is_blocking: true,
    };
    let Some(response) = turn.request(request).await else { return Answer::Cancelled };
    let chosen = response.answers.get(&id).and_then(|answer| answer.answers.first());
    match chosen.map(String::as_str) {
        Some(ALLOW) => Answer::Allowed,
        Some(ALLOW_FOR_SESSION) => Answer::AllowedForSession,
        Some(CANCEL) => Answer::Cancelled,
        _ => Answer::Rejected,
    }
}
