//! Opens the thread of a turn, and starts the turn or the review.

use anyhow::Result;
use loomd_client::protocol::{
    AskForApproval, JsonValue, ReviewStartParams, ReviewTarget, SandboxMode, ThreadResumeParams, ThreadStartParams,
    TurnStartParams,
};
use loomd_client::{Client, Input, Thread, Turn, resume};

use crate::find::find;

/// A turn as requested on the command line. `None` is the configuration's or the thread's value.
pub struct TurnRequest {
    pub task: Task,
    /// The thread to resume, as [`find`] takes it; `None` starts one.
    pub resume: Option<String>,
    pub ephemeral: bool,
    pub model: Option<String>,
    pub provider: Option<String>,
    pub cwd: String,
    pub sandbox: Option<SandboxMode>,
    pub ask: Option<AskForApproval>,
}

pub enum Task {
    Answer { input: Input, output_schema: Option<JsonValue> },
    Review(ReviewTarget),
}

impl TurnRequest {
    pub async fn open(&self, client: &Client) -> Result<Thread> {
        let Some(name) = &self.resume else {
            let params = ThreadStartParams {
                model: self.model.clone(),
                model_provider: self.provider.clone(),
                cwd: Some(self.cwd.clone()),
                approval_policy: self.ask.clone(),
                sandbox: self.sandbox.map(Into::into),
                ephemeral: self.ephemeral.then_some(true),
                ..ThreadStartParams::default()
            };
            return Ok(client.start_thread(params).await?);
        };
        let params = ThreadResumeParams {
            model: self.model.clone(),
            model_provider: self.provider.clone(),
            cwd: Some(self.cwd.clone()),
            approval_policy: self.ask.clone(),
            sandbox: self.sandbox.map(Into::into),
            // The turns are not shown.
            exclude_turns: true,
            ..resume(find(client, name, Some(&self.cwd)).await?)
        };
        Ok(client.resume_thread(params).await?)
    }

    pub async fn start(self, thread: &Thread) -> Result<Turn> {
        let client = thread.client();
        match self.task {
            Task::Answer { input, output_schema } => {
                Ok(client.start_turn(TurnStartParams { output_schema, ..thread.turn_params(input) }).await?)
            }
            Task::Review(target) => {
                let thread_id = thread.id().to_owned();
                Ok(client.start_review(ReviewStartParams { thread_id, target, delivery: None }).await?.turn)
            }
        }
    }
}
