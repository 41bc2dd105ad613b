//! Tools that the client brings: the call goes to it, and its answer to the model.

use std::time::Instant;

use loomd_model::{ToolSpec, complete_schema};
use loomd_protocol::{
    DynamicTool, DynamicToolCallOutputContentItem as Content, DynamicToolCallParams, DynamicToolCallResponse,
    DynamicToolCallStatus, DynamicToolSpec, FunctionCallOutputBody, FunctionCallOutputContentItem, JsonValue,
    ThreadItem,
};
use loomd_store::rollout::{DynamicToolCallResponse as StoredResponse, Event};

use super::{Call, Offer, Output, Tool, ToolCx, ToolFuture, ToolResult};
use crate::settings::Profile;

/// Stands for all tools of the client.
pub(super) struct Dynamic;

/// The client's tools that the model is offered.
pub(super) fn specs(profile: &Profile) -> impl Iterator<Item = ToolSpec> {
    all(profile).filter(|tool| !tool.defer_loading).map(|tool| ToolSpec::Function {
        name: tool.name.clone(),
        description: tool.description.clone(),
        strict: false,
        // One that cannot be completed was refused when it was brought, or comes from an older rollout.
        parameters: complete_schema(&tool.input_schema).unwrap_or_else(|_| tool.input_schema.clone()),
    })
}

/// Whether the client has a tool of this name.
pub(super) fn knows(profile: &Profile, name: &str) -> bool {
    all(profile).any(|tool| tool.name == name)
}

fn all(profile: &Profile) -> impl Iterator<Item = &DynamicTool> {
    profile.dynamic_tools.iter().flat_map(|spec| match spec {
        DynamicToolSpec::Function(tool) => std::slice::from_ref(tool),
        DynamicToolSpec::Namespace(namespace) => &namespace.tools,
    })
}

impl Tool for Dynamic {
    fn spec(&self, _: &Offer<'_>) -> Option<ToolSpec> {
        None
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(run(cx, call))
    }
}

async fn run(cx: &ToolCx, call: &Call) -> ToolResult {
    let arguments: JsonValue = call.arguments()?;
    let turn = &cx.turn;
    let begun = Instant::now();
    let item = |status, content_items: Option<Vec<Content>>, success| ThreadItem::DynamicToolCall {
        id: call.id.clone(),
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

/// One text is sent as it is, anything else as its parts.
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
