//! `write_stdin`: writes to a command in the background, or polls its output.

use std::time::Duration;

use loomd_config::Feature;
use loomd_model::ToolSpec;
use loomd_protocol::{ServerNotification, TerminalInteractionNotification};
use serde::Deserialize;
use tokio::time::timeout;

use super::cx::ToolCx;
use super::exec_command::{MAX_OUTPUT_TOKENS, report};
use super::scope::ToolScope;
use super::spec::{function, number, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::tool_call::Call;

pub(super) struct WriteStdin;

/// The longest wait of a poll without input.
const MAX_POLL: Duration = Duration::from_secs(300);

/// How long to wait until the end of a command has been published.
const PUBLISH_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Deserialize)]
struct Args {
    session_id: u32,
    #[serde(default)]
    chars: String,
    yield_time_ms: Option<u64>,
    max_output_tokens: Option<u64>,
}

impl Tool for WriteStdin {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("write_stdin")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let wanted = scope.has(Feature::ShellTool) && scope.has(Feature::UnifiedExec);
        wanted.then(|| {
            function(
                "write_stdin",
                "Writes to a running session of exec_command and gives back what it prints.",
                &[
                    ("session_id", number("The session.")),
                    ("chars", string("What to write; nothing when only the output is wanted.")),
                    ("yield_time_ms", number("How long to wait for output.")),
                    ("max_output_tokens", number("How much of its output to give back at most.")),
                ],
                &["session_id"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.has(Feature::ShellTool) && scope.has(Feature::UnifiedExec)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let args: Args = call.arguments()?;
            let turn = &cx.action.turn;
            let open = cx.thread.terminals.find(args.session_id);
            let configured = turn.profile.config.config.background_terminal_max_timeout;
            let longest = configured.map_or(MAX_POLL, Duration::from_millis);
            let input = args.chars.as_bytes();
            let wait = loomd_exec::write_yield(args.yield_time_ms.map(Duration::from_millis), input, longest);
            let polled = tokio::select! {
                biased;
                () = turn.cancel.cancelled() => return Err("aborted".into()),
                polled = cx.thread.terminals.sessions.write(args.session_id, input, wait) => {
                    polled.map_err(|error| format!("write_stdin failed: {error}"))?
                }
            };
            if let Some(open) = &open {
                turn.publish(ServerNotification::CommandExecutionTerminalInteraction(
                    TerminalInteractionNotification {
                        thread_id: turn.thread_id.clone(),
                        turn_id: turn.turn_id.clone(),
                        item_id: open.item_id.clone(),
                        process_id: args.session_id.to_string(),
                        stdin: args.chars.clone(),
                    },
                ))
                .await;
                if polled.exit.is_some() {
                    _ = timeout(PUBLISH_TIMEOUT, open.shown.cancelled()).await;
                }
            }
            let argv = open.as_ref().map_or(&[][..], |open| &open.argv);
            Ok(report(argv, polled, args.max_output_tokens.unwrap_or(MAX_OUTPUT_TOKENS)).text().into())
        })
    }
}
