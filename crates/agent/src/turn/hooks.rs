//! Where hooks have a say in a turn: before it begins, about what the user says, and before it ends.

use loomd_protocol::UserInput;

use super::task::{Failure, TurnTask};
use crate::hooks::HookOutcome;

/// Hooks that never let a turn end are not heard any more after so many times.
const MAX_CONTINUATIONS: u32 = 100;

impl TurnTask {
    /// Tells hooks that the session begins; false when they are against it.
    pub(super) async fn begin_session(&mut self) -> Result<bool, Failure> {
        let cx = self.toolbox.cx();
        let heard = cx.thread.hooks.session_start(&cx.action).await?;
        Ok(self.listen_to(heard).await)
    }

    /// Takes what the user says, unless hooks are against it; false if so.
    pub(super) async fn submit(&mut self, input: Vec<UserInput>) -> Result<bool, Failure> {
        let cx = self.toolbox.cx();
        let heard = cx.thread.hooks.user_prompt_submit(&cx.action, &input).await?;
        if !heard.refused {
            self.take_input(input).await;
        }
        Ok(self.listen_to(heard).await)
    }

    /// Takes in what hooks say to the model; false when they are against going on.
    async fn listen_to(&mut self, heard: HookOutcome) -> bool {
        for item in &heard.context {
            self.remember(item).await;
        }
        !heard.refused
    }

    /// Whether hooks want the model to do more before the turn ends; it has been told what.
    pub(super) async fn must_go_on(&mut self) -> Result<bool, Failure> {
        let (continued, last_message) = (self.progress.continued, self.progress.last_message.as_deref());
        if continued >= MAX_CONTINUATIONS {
            return Ok(false);
        }
        let cx = self.toolbox.cx();
        let more = cx.thread.hooks.stop(&cx.action, continued > 0, last_message).await?;
        if let Some(item) = &more {
            self.progress.continued += 1;
            self.remember(item).await;
        }
        Ok(more.is_some())
    }
}
