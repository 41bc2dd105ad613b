//! What a section of the context is.

use std::pin::Pin;

use loomd_store::rollout::TurnContext;

use super::prompt_context::PromptContext;

/// The text of a section; `None` when it is empty.
pub(crate) type SectionFuture<'a> = Pin<Box<dyn Future<Output = Option<String>> + Send + 'a>>;

/// A section of the context: its text at the start of a conversation, and its text after a change.
pub(crate) trait Section: Sync {
    /// The role of the message that it is part of.
    fn role(&self) -> Role;

    /// The text before the first message of a conversation.
    fn initial<'a>(&'a self, cx: &'a PromptContext<'a>) -> SectionFuture<'a>;

    /// The text for a model that has been sent `before`; `None` when nothing that concerns this section has changed.
    fn changed(&self, cx: &PromptContext<'_>, before: &TurnContext, after: &TurnContext) -> Option<String>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Developer,
    User,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Developer => "developer",
            Self::User => "user",
        }
    }
}
