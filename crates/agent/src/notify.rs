//! The user's `notify` program, which runs when a turn completes.

use std::process::Stdio;

use serde::Serialize;
use tokio::process::Command;

/// The JSON in the last argument of the program.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case", tag = "type", rename = "agent-turn-complete")]
pub(crate) struct TurnComplete<'a> {
    pub thread_id: &'a str,
    pub turn_id: &'a str,
    pub cwd: &'a str,
    /// The name of the client.
    pub client: &'a str,
    /// The texts of the user's messages in the thread.
    pub input_messages: Vec<String>,
    pub last_assistant_message: Option<&'a str>,
}

/// Starts the program and does not wait for it. A failure to start it does not affect the turn.
pub(crate) fn run(program: &[String], completed: &TurnComplete<'_>) {
    let Some((name, arguments)) = program.split_first() else { return };
    let Ok(json) = serde_json::to_string(completed) else { return };
    let mut command = Command::new(name);
    command.args(arguments).arg(json).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            tokio::spawn(async move { child.wait().await });
        }
        Err(error) => tracing::warn!(name, %error, "the notify program could not be started"),
    }
}
