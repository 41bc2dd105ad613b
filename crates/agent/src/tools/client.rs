//! Tools that the client brings: a call is sent to the client as a server request, and its response to the model.

use std::sync::Arc;
use std::time::Instant;

use loomd_model::{ToolSpec, complete_schema};
use loomd_protocol::{
    DynamicTool, DynamicToolCallOutputContentItem as Content, DynamicToolCallParams, DynamicToolCallResponse,
    DynamicToolCallStatus, DynamicToolSpec, FunctionCallOutputBody, FunctionCallOutputContentItem, JsonValue,
    ThreadItem,
};
use loomd_store::rollout::{DynamicToolCallResponse as StoredResponse, Event};

use super::cx::ToolCx;
use super::scope::{Role, ToolScope};
use super::source::{ToolList, ToolSource};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::tool_call::{Call, Output, ToolResult};

/// The tools of a thread's client.
pub(crate) struct ClientTools(ToolList);

impl ClientTools {
    pub fn new(specs: &[DynamicToolSpec]) -> Self {
        let tool = |namespace: Option<&str>, tool: &DynamicTool| -> Arc<dyn Tool> {
            Arc::new(ClientTool { namespace: namespace.map(Into::into), tool: tool.clone() })
        };
        let tools = specs.iter().flat_map(|spec| match spec {
            DynamicToolSpec::Function(function) => vec![tool(None, function)],
            DynamicToolSpec::Namespace(namespace) => {
                namespace.tools.iter().map(|inner| tool(Some(&namespace.name), inner)).collect()
            }
        });
        Self(tools.collect())
    }
}

impl ToolSource for ClientTools {
    fn snapshot(&self) -> ToolList {
        Arc::clone(&self.0)
    }
}

struct ClientTool {
    namespace: Option<String>,
    tool: DynamicTool,
}

impl Tool for ClientTool {
    fn name(&self) -> ToolName<'_> {
        ToolName { namespace: self.namespace.as_deref(), name: &self.tool.name }
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let tool = &self.tool;
        (scope.role == Role::Main && !tool.defer_loading).then(|| ToolSpec::Function {
            name: tool.name.clone(),
            description: tool.description.clone(),
            strict: false,
            // A schema that cannot be completed comes from an older rollout: `thread/start` refuses it.
            parameters: complete_schema(&tool.input_schema).unwrap_or_else(|_| tool.input_schema.clone()),
        })
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(run(cx, call, self.namespace.as_deref()))
    }
}

async fn run(cx: &ToolCx, call: &Call, namespace: Option<&str>) -> ToolResult {
    let arguments: JsonValue = call.arguments()?;
    let turn = &cx.action.turn;
    let begun = Instant::now();
    let item = |status, content_items: Option<Vec<Content>>, success| ThreadItem::DynamicToolCall {
        id: call.id.clone(),
        namespace: namespace.map(str::to_owned),
        tool: call.name.clone(),
        arguments: arguments.clone(),
        status,
        duration_ms: content_items.is_some().then(|| i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX)),
        content_items,
        success,
    };
    turn.started(item(DynamicToolCallStatus::InProgress, None, None)).await;
    let request = DynamicToolCallParams {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        call_id: call.id.clone(),
        namespace: namespace.map(str::to_owned),
        tool: call.name.clone(),
        arguments: arguments.clone(),
    };
    let answer = turn.call_client(request).await;
    let stopped = answer.is_none();
    let response = answer.unwrap_or_else(|| DynamicToolCallResponse {
        content_items: vec![Content::InputText { text: "aborted".into() }],
        success: false,
    });
    let status = if response.success { DynamicToolCallStatus::Completed } else { DynamicToolCallStatus::Failed };
    let event = StoredResponse {
        call_id: call.id.clone(),
        turn_id: turn.turn_id.clone(),
        namespace: namespace.map(str::to_owned),
        tool: call.name.clone(),
        arguments: arguments.clone(),
        content_items: response.content_items.clone(),
        success: response.success,
        error: stopped.then(|| "aborted".into()),
        duration: begun.elapsed(),
    };
    let completed = item(status, Some(response.content_items.clone()), Some(response.success));
    turn.completed(completed, Some(Event::DynamicToolCallResponse(event))).await;
    Ok(Output { body: body(response.content_items), notes: Vec::new() })
}

/// A single text as a text, anything else as content items.
fn body(items: Vec<Content>) -> FunctionCallOutputBody {
    match <[Content; 1]>::try_from(items) {
        Ok([Content::InputText { text }]) => FunctionCallOutputBody::Text(text),
        Ok(items) => FunctionCallOutputBody::Items(items.into_iter().map(part).collect()),
        Err(items) => FunctionCallOutputBody::Items(items.into_iter().map(part).collect()),
    }
}

fn part(item: Content) -> FunctionCallOutputContentItem {
    match item {
        Content::InputText { text } => FunctionCallOutputContentItem::InputText { text },
        Content::InputImage { image_url } => FunctionCallOutputContentItem::InputImage { image_url, detail: None },
    }
}
