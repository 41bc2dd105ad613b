//! What the model is sent about its surroundings: all sections before the first message of a conversation, later only
//! those that changed.

mod prompt_context;
mod section;
mod sections;

use loomd_protocol::{ContentItem, ResponseItem};
use loomd_store::rollout::TurnContext;

pub(crate) use prompt_context::{PromptContext, instructions, name_of, personality, reasoning_summary};

use crate::message::message_of;
use section::Role;
use sections::SECTIONS;

/// The messages for a model that has been sent nothing yet.
pub(crate) async fn initial(cx: &PromptContext<'_>) -> Vec<ResponseItem> {
    let mut messages = Messages::default();
    for section in SECTIONS {
        messages.add(section.role(), section.initial(cx).await);
    }
    messages.finish()
}

/// The messages for a model that has been sent `before`.
pub(crate) fn changes(cx: &PromptContext<'_>, before: &TurnContext) -> Vec<ResponseItem> {
    let after = cx.record();
    let mut messages = Messages::default();
    for section in SECTIONS {
        messages.add(section.role(), section.changed(cx, before, &after));
    }
    messages.finish()
}

/// Sections of the same role that follow each other are parts of one message.
#[derive(Default)]
struct Messages(Vec<(Role, Vec<ContentItem>)>);

impl Messages {
    fn add(&mut self, role: Role, text: Option<String>) {
        let Some(text) = text else { return };
        let part = ContentItem::InputText { text };
        match self.0.last_mut() {
            Some((last, parts)) if *last == role => parts.push(part),
            _ => self.0.push((role, vec![part])),
        }
    }

    fn finish(self) -> Vec<ResponseItem> {
        self.0.into_iter().map(|(role, parts)| message_of(role.name(), parts)).collect()
    }
}

#[cfg(test)]
mod tests;
