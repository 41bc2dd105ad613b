//! The hooks of a turn: at the start of a session, for user input, and before the turn ends.

use super::task::{Failure, TurnTask};
use crate::hooks::HookOutcome;
use crate::inbox::UserMessageInput;

/// How often `Stop` hooks can continue a turn. After that they are not run.
const MAX_CONTINUATIONS: u32 = 100;

impl TurnTask {
    /// Runs the `SessionStart` hooks; false when one refuses the turn.
    pub(super) async fn begin_session(&mut self) -> Result<bool, Failure> {
        let cx = self.toolbox.cx();
        let outcome = cx.thread.hooks.session_start(&cx.action).await?;
        Ok(self.add_hook_context(outcome).await)
    }

    /// Adds user input to the conversation, unless a hook refuses it. Returns false if so.
    pub(super) async fn submit(&mut self, input: UserMessageInput) -> Result<bool, Failure> {
        let cx = self.toolbox.cx();
        let outcome = cx.thread.hooks.user_prompt_submit(&cx.action, &input.content).await?;
        if !outcome.refused {
            let mentioned = self.mentioned(&input.content).await;
            self.take_input(input).await;
            for item in &mentioned {
                self.append(item).await;
            }
        }
        Ok(self.add_hook_context(outcome).await)
    }

    /// Adds the context from hooks to the conversation; false when they refused.
    async fn add_hook_context(&mut self, outcome: HookOutcome) -> bool {
        for item in &outcome.context {
            self.append(item).await;
        }
        !outcome.refused
    }

    /// Runs the `Stop` hooks; true when they continue the turn, with their message added to the conversation.
    pub(super) async fn continued_by_hooks(&mut self) -> Result<bool, Failure> {
        let (continued, last_message) = (self.progress.continued, self.progress.last_message.as_deref());
        if continued >= MAX_CONTINUATIONS {
            return Ok(false);
        }
        let cx = self.toolbox.cx();
        let more = cx.thread.hooks.stop(&cx.action, continued > 0, last_message).await?;
        if let Some(item) = &more {
            self.progress.continued += 1;
            self.append(item).await;
        }
        Ok(more.is_some())
    }
}
