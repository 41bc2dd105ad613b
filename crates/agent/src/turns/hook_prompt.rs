//! Prompts of hooks for the model: a user message whose texts are all wrapped in `<hook_prompt>` tags.

use loomd_protocol::{ContentItem, HookPromptFragment, ResponseItem};

use crate::message::message_of;

/// The message with the prompts.
pub(crate) fn message(fragments: &[HookPromptFragment]) -> ResponseItem {
    let content = fragments.iter().map(|HookPromptFragment { text, hook_run_id }| {
        let (id, text) = (escape(hook_run_id).replace('"', "&quot;"), escape(text));
        ContentItem::InputText { text: format!("<hook_prompt hook_run_id=\"{id}\">{text}</hook_prompt>") }
    });
    message_of("user", content.collect())
}

/// The prompts of a message; `None` for any other item.
pub(super) fn fragments(item: &ResponseItem) -> Option<Vec<HookPromptFragment>> {
    let ResponseItem::Message { role, content, .. } = item else { return None };
    if role != "user" || content.is_empty() {
        return None;
    }
    content
        .iter()
        .map(|part| match part {
            ContentItem::InputText { text } => fragment(text),
            _ => None,
        })
        .collect()
}

/// Whether undecoded JSON may be a prompt of a hook: it contains the tag.
pub(super) fn may_be_one(payload: &[u8]) -> bool {
    memchr::memmem::find(payload, b"<hook_prompt").is_some()
}

fn fragment(text: &str) -> Option<HookPromptFragment> {
    let rest = text.trim().strip_prefix("<hook_prompt hook_run_id=\"")?.strip_suffix("</hook_prompt>")?;
    let (hook_run_id, text) = rest.split_once("\">")?;
    Some(HookPromptFragment { text: unescape(text), hook_run_id: unescape(hook_run_id) })
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn unescape(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fragments_returns_the_fragments_of_the_message(said in prop::collection::vec(("[^\0]*", "[a-z:0-9/\"<>&]*"), 1..3)) {
            let said: Vec<_> =
                said.into_iter().map(|(text, hook_run_id)| HookPromptFragment { text, hook_run_id }).collect();
            prop_assert_eq!(fragments(&message(&said)), Some(said));
        }
    }
}
