//! A command that the user runs in the thread. Its output is added to the conversation.

use std::path::PathBuf;
use std::time::Duration;

use loomd_protocol::{CommandExecutionSource, ResponseItem};
use uuid::Uuid;

use super::task::{Failure, TurnTask};
use crate::message::message;
use crate::prompts;
use crate::settings::truncation;
use crate::tools::{CommandTask, ToolCx, run_command};
use crate::truncate::truncate;

/// Longer than for commands of the model: it may be a build.
const TIMEOUT: Duration = Duration::from_secs(3600);

/// Runs the command in the user's shell; the item for the conversation.
pub(crate) async fn run(cx: &ToolCx, command: String) -> ResponseItem {
    let id = Uuid::new_v4().to_string();
    let task = CommandTask {
        id: &id,
        argv: cx.action.services.shell().argv(&command, true),
        cwd: PathBuf::from(&cx.action.turn.settings.cwd),
        timeout: Some(TIMEOUT),
        source: CommandExecutionSource::UserShell,
    };
    let result = run_command(cx, task).await;
    let output = truncate(&result.output, truncation(&cx.action.turn.model)).text;
    message("user", prompts::user_shell_command(&command, result.exit_code, result.duration.as_secs_f64(), &output))
}

impl TurnTask {
    pub(super) async fn shell_command(&mut self, command: String) -> Result<(), Failure> {
        let told = run(self.toolbox.cx(), command).await;
        self.append(&told).await;
        match self.cx.cancel.is_cancelled() {
            true => Err(Failure::Interrupted),
            false => Ok(()),
        }
    }
}
