//! Messages as items of the conversation.

use loomd_protocol::{ContentItem, ResponseItem};

/// A message with one text.
pub(crate) fn message(role: &str, text: String) -> ResponseItem {
    message_of(role, vec![ContentItem::InputText { text }])
}

pub(crate) fn message_of(role: &str, content: Vec<ContentItem>) -> ResponseItem {
    ResponseItem::Message { role: role.into(), content, end_turn: None, phase: None, id: None }
}

/// A message of one agent to another, named by their paths.
pub(crate) fn agent_message(author: String, recipient: String, text: String) -> ResponseItem {
    ResponseItem::AgentMessage { author, recipient, content: vec![ContentItem::InputText { text }] }
}

/// The texts of a message, joined.
pub(crate) fn text_of(item: &ResponseItem) -> String {
    let ResponseItem::Message { content, .. } = item else { return String::new() };
    let texts = content.iter().filter_map(|part| match part {
        ContentItem::InputText { text } | ContentItem::OutputText { text } => Some(text.as_str()),
        ContentItem::InputImage { .. } => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}
