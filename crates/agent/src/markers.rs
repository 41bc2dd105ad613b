//! The marks by which messages that stand in the user's name, but are not what the user said, are known.

use loomd_protocol::ContentItem;

use crate::prompts;

/// Beginnings of texts that explain the situation to the model.
const CONTEXT: &[&str] = &[
    "# AGENTS.md instructions for ",
    "<environment_context>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<user_instructions>",
    "<user_action>",
    "<subagent_notification>",
    "<skill>",
    "<hook_prompt",
    "Warning: a request for the model ",
    "Warning: apply_patch was requested via ",
];

/// Whether a message in the user's name was not said by the user.
pub(crate) fn is_context(content: &[ContentItem]) -> bool {
    let Some(ContentItem::InputText { text }) = content.first() else { return false };
    CONTEXT.iter().any(|mark| text.starts_with(mark)) || prompts::is_summary(text)
}
