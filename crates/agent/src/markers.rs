//! The marks by which messages that stand in the user's name, but are not what the user said, are known.

use loomd_model::CONTEXT_PREFIXES;
use loomd_protocol::ContentItem;

use crate::prompts;

/// Whether a message in the user's name was not said by the user.
pub(crate) fn is_context(content: &[ContentItem]) -> bool {
    let Some(ContentItem::InputText { text }) = content.first() else { return false };
    CONTEXT_PREFIXES.iter().any(|mark| text.starts_with(mark)) || prompts::is_summary(text)
}
