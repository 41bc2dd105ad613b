//! The markers of messages with the role of the user that the user did not write.

use loomd_model::CONTEXT_PREFIXES;
use loomd_protocol::ContentItem;

use crate::prompts;

/// Whether a message with the role of the user is one that the agent wrote.
pub(crate) fn is_context(content: &[ContentItem]) -> bool {
    let Some(ContentItem::InputText { text }) = content.first() else { return false };
    CONTEXT_PREFIXES.iter().any(|mark| text.starts_with(mark)) || prompts::is_summary(text)
}
