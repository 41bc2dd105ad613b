//! Conversations in the form of wires other than Responses. A thread may have run on any provider before; items that
//! another one does not accept are mapped or dropped:
//!
//! | item | becomes |
//! |---|---|
//! | user message | a user message; adjacent ones are joined |
//! | developer or system message | part of the instructions at the start of the conversation; later a user message, or a developer message where the wire has those |
//! | assistant message | part of an assistant message, together with adjacent reasoning and calls |
//! | reasoning | sent only to the wire that it came from, with its [`ReasoningOrigin`] |
//! | `function_call` | a call; a namespace becomes a prefix of the name; arguments that are not a JSON object become the member `arguments` of one |
//! | `custom_tool_call` | a call of a function with one argument, `input` |
//! | `local_shell_call` | a call of the function `shell` |
//! | `tool_search_call` of the client | a call of the function `tool_search`, with its output as JSON |
//! | outputs | placed right after the assistant message with their calls, in the order of the calls; one without a call is dropped, a missing one reads `aborted` |
//! | images in an output | stay there, or follow in a user message, depending on the wire |
//! | `compaction` | a note that a part is missing: only its provider can read it |
//! | `web_search_call`, `image_generation_call`, tool searches of the provider | dropped; their results are in the text around them |
//!
//! The Responses wire takes every item as it is, except reasoning from another wire.

mod names;
mod origin;

use std::collections::HashSet;

use loomd_protocol::{
    ContentItem, FunctionCallOutputBody, FunctionCallOutputContentItem, JsonObject, JsonValue, LocalShellAction,
    ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem,
};
use serde_json::json;

pub(crate) use names::{ToolNames, WireTool, common_id, digest};
pub(crate) use origin::{REHEARSAL_ORIGIN, ReasoningOrigin};

use crate::InputItem;

/// The text in place of a compaction.
const UNREADABLE: &str =
    "(Earlier parts of this conversation were summarised in a form that cannot be read here. They are missing.)";

/// The output of a call that has none.
const ABORTED: &str = "aborted";

/// A conversation as a list of messages.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Transcript {
    /// Developer and system messages at the start of the conversation.
    pub preamble: Vec<String>,
    pub messages: Vec<RoleMessage>,
    /// All call ids.
    pub call_ids: HashSet<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum RoleMessage {
    User(Vec<ContentPart>),
    Developer(String),
    Assistant(Vec<AssistantBlock>),
    /// The outputs of all calls in the assistant message before.
    Outputs(Vec<ToolOutput>),
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ContentPart {
    Text(String),
    Image { url: String },
}

#[derive(Debug, PartialEq)]
pub(crate) enum AssistantBlock {
    Reasoning { text: String, origin: Option<ReasoningOrigin> },
    Text(String),
    Call(ToolCall),
}

#[derive(Debug, PartialEq)]
pub(crate) struct ToolCall {
    pub id: String,
    /// In the form that the wire allows.
    pub name: String,
    pub arguments: JsonObject,
}

#[derive(Debug, PartialEq)]
pub(crate) struct ToolOutput {
    pub id: String,
    pub parts: Vec<ContentPart>,
}

impl Transcript {
    pub fn new(input: &[InputItem]) -> Self {
        let mut items: Vec<Option<ResponseItem>> = input.iter().map(InputItem::decode).collect();
        let mut transcript = Self::default();
        let mut blocks = Vec::new();
        for index in 0..items.len() {
            let Some(item) = items[index].take() else { continue };
            match item {
                ResponseItem::Message { role, content, .. } if role == "assistant" => {
                    let text = text_of(&content);
                    if !text.trim().is_empty() {
                        blocks.push((index, AssistantBlock::Text(text)));
                    }
                }
                ResponseItem::Reasoning { summary, content, encrypted_content } => {
                    let origin = encrypted_content.as_deref().and_then(ReasoningOrigin::parse);
                    blocks.push((
                        index,
                        AssistantBlock::Reasoning { text: reasoning_text(&summary, content.as_deref()), origin },
                    ));
                }
                ResponseItem::Message { role, content, .. } => {
                    transcript.end_assistant(&mut blocks, &mut items);
                    transcript.push_message(&role, content);
                }
                ResponseItem::Compaction { .. } => {
                    transcript.end_assistant(&mut blocks, &mut items);
                    transcript.push_user(vec![ContentPart::Text(UNREADABLE.into())]);
                }
                ResponseItem::AgentMessage { author, content, .. } => {
                    transcript.end_assistant(&mut blocks, &mut items);
                    let mut parts = vec![ContentPart::Text(format!("Message of the agent {author}:"))];
                    parts.extend(content.into_iter().filter_map(part));
                    transcript.push_user(parts);
                }
                // These wires have no output without a call.
                ResponseItem::FunctionCallOutput { ref call_id, ref name, .. } if call_id.is_empty() => {
                    let label = format!("Output of the tool {}:", name.as_deref().unwrap_or("of the client"));
                    transcript.end_assistant(&mut blocks, &mut items);
                    let mut parts = vec![ContentPart::Text(label)];
                    parts.extend(output_parts(item));
                    transcript.push_user(parts);
                }
                // Ends the assistant message with its call, from where it is looked up. One that is still here has no
                // call.
                item if output_id(&item).is_some() => {
                    items[index] = Some(item);
                    transcript.end_assistant(&mut blocks, &mut items);
                }
                item => blocks.extend(call(item).map(|call| (index, AssistantBlock::Call(call)))),
            }
        }
        transcript.end_assistant(&mut blocks, &mut items);
        transcript
    }

    /// Ends an assistant message and appends the outputs of its calls.
    fn end_assistant(&mut self, blocks: &mut Vec<(usize, AssistantBlock)>, items: &mut [Option<ResponseItem>]) {
        if blocks.is_empty() {
            return;
        }
        let mut outputs = Vec::new();
        for (index, block) in blocks.iter() {
            if let AssistantBlock::Call(call) = block {
                self.call_ids.insert(call.id.clone());
                let found = items[*index..]
                    .iter_mut()
                    .find(|item| item.as_ref().and_then(output_id).is_some_and(|id| id == call.id));
                let parts =
                    found.and_then(Option::take).map_or_else(|| vec![ContentPart::Text(ABORTED.into())], output_parts);
                outputs.push(ToolOutput { id: call.id.clone(), parts });
            }
        }
        self.messages.push(RoleMessage::Assistant(blocks.drain(..).map(|(_, block)| block).collect()));
        if !outputs.is_empty() {
            self.messages.push(RoleMessage::Outputs(outputs));
        }
    }

    fn push_message(&mut self, role: &str, content: Vec<ContentItem>) {
        if !matches!(role, "developer" | "system") {
            self.push_user(content.into_iter().filter_map(part).collect());
            return;
        }
        let text = text_of(&content);
        match self.messages.is_empty() {
            _ if text.trim().is_empty() => {}
            true => self.preamble.push(text),
            false => self.messages.push(RoleMessage::Developer(text)),
        }
    }

    fn push_user(&mut self, parts: Vec<ContentPart>) {
        match self.messages.last_mut() {
            _ if parts.is_empty() => {}
            Some(RoleMessage::User(known)) => known.extend(parts),
            _ => self.messages.push(RoleMessage::User(parts)),
        }
    }
}

/// Returns the call that an item makes, if other wires can express it.
fn call(item: ResponseItem) -> Option<ToolCall> {
    Some(match item {
        ResponseItem::FunctionCall { name, namespace, arguments, call_id, .. } => {
            ToolCall { id: call_id, name: names::join(namespace.as_deref(), &name), arguments: object(&arguments) }
        }
        ResponseItem::CustomToolCall { name, input, call_id, .. } => {
            ToolCall { id: call_id, name: names::plain(&name), arguments: member("input", input.into()) }
        }
        ResponseItem::LocalShellCall { call_id: Some(id), action, .. } => {
            let LocalShellAction::Exec { command, timeout_ms, working_directory, .. } = action;
            let mut arguments = member("command", json!(command));
            arguments.extend(timeout_ms.map(|ms| ("timeout_ms".to_owned(), ms.into())));
            arguments.extend(working_directory.map(|folder| ("workdir".to_owned(), folder.into())));
            ToolCall { id, name: "shell".into(), arguments }
        }
        ResponseItem::ToolSearchCall { call_id: Some(id), execution, arguments, .. } if execution == "client" => {
            let arguments = match arguments {
                JsonValue::Object(object) => object,
                other => member("arguments", other),
            };
            ToolCall { id, name: "tool_search".into(), arguments }
        }
        _ => return None,
    })
}

fn output_id(item: &ResponseItem) -> Option<&str> {
    match item {
        ResponseItem::FunctionCallOutput { call_id, .. } | ResponseItem::CustomToolCallOutput { call_id, .. } => {
            Some(call_id)
        }
        ResponseItem::ToolSearchOutput { call_id, .. } => call_id.as_deref(),
        _ => None,
    }
}

fn output_parts(item: ResponseItem) -> Vec<ContentPart> {
    match item {
        ResponseItem::FunctionCallOutput { output, .. } | ResponseItem::CustomToolCallOutput { output, .. } => {
            match output {
                FunctionCallOutputBody::Text(text) => vec![ContentPart::Text(text)],
                FunctionCallOutputBody::Items(items) => items
                    .into_iter()
                    .map(|item| match item {
                        FunctionCallOutputContentItem::InputText { text } => ContentPart::Text(text),
                        FunctionCallOutputContentItem::InputImage { image_url, .. } => {
                            ContentPart::Image { url: image_url }
                        }
                    })
                    .collect(),
            }
        }
        ResponseItem::ToolSearchOutput { tools, .. } => vec![ContentPart::Text(JsonValue::Array(tools).to_string())],
        _ => Vec::new(),
    }
}

fn part(item: ContentItem) -> Option<ContentPart> {
    match item {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => {
            (!text.trim().is_empty()).then_some(ContentPart::Text(text))
        }
        ContentItem::InputImage { image_url } => Some(ContentPart::Image { url: image_url }),
    }
}

fn text_of(content: &[ContentItem]) -> String {
    let texts = content.iter().filter_map(|part| match part {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => Some(text.as_str()),
        ContentItem::InputImage { .. } => None,
    });
    texts.collect()
}

/// Joins the text of both places: other wires use only one of them.
fn reasoning_text(summary: &[ReasoningItemReasoningSummary], content: Option<&[ReasoningItemContent]>) -> String {
    let summary = summary.iter().map(|ReasoningItemReasoningSummary::SummaryText { text }| text.as_str());
    let content = content.into_iter().flatten().map(|part| match part {
        ReasoningItemContent::ReasoningText { text } | ReasoningItemContent::Text { text } => text.as_str(),
    });
    summary.chain(content).collect()
}

/// Returns arguments as an object, whatever the model wrote.
pub(crate) fn object(arguments: &str) -> JsonObject {
    match serde_json::from_str(arguments) {
        Ok(JsonValue::Object(object)) => object,
        _ if arguments.trim().is_empty() => JsonObject::new(),
        _ => member("arguments", arguments.into()),
    }
}

fn member(name: &str, value: JsonValue) -> JsonObject {
    JsonObject::from_iter([(name.to_owned(), value)])
}

#[cfg(test)]
mod tests;
