//! `shell`, and its other names: a program and its arguments, run as they are.

use std::time::Duration;

use loomd_config::Feature;
use loomd_exec::Limits;
use loomd_model::{ShellTool, ToolSpec};
use loomd_protocol::CommandExecutionSource;
use serde::Deserialize;
use serde_json::json;

use super::command::{self, Task};
use super::shell_command::escalation;
use super::spec::{array, function, number, string};
use super::{Call, Offer, Tool, ToolCx, ToolFuture, ToolResult, apply_patch};
use crate::guard::{self, CommandOptions};
use crate::hooks;

pub(super) struct Shell;

/// The names that are not offered.
pub(super) struct Alias;

#[derive(Deserialize)]
struct Args {
    command: Vec<String>,
    workdir: Option<String>,
    #[serde(alias = "timeout")]
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    options: CommandOptions,
}

impl Tool for Shell {
    fn spec(&self, offer: &Offer<'_>) -> Option<ToolSpec> {
        let wanted = offer.has(Feature::ShellTool)
            && !offer.has(Feature::UnifiedExec)
            && !matches!(offer.cx.model.shell, ShellTool::ShellCommand | ShellTool::Disabled);
        wanted.then(|| {
            let mut properties = vec![
                (
                    "command",
                    array(
                        json!({ "type": "string" }),
                        "The program and its arguments. For a script use `[\"bash\", \"-lc\", script]`.",
                    ),
                ),
                ("workdir", string("Where it runs; the working directory unless given.")),
                ("timeout_ms", number("It is stopped after so many milliseconds; 10000 unless given.")),
            ];
            properties.extend(escalation());
            function("shell", "Runs a program and gives back what it printed.", &properties, &["command"])
        })
    }

    fn parallel(&self) -> bool {
        true
    }

    fn callable(&self, offer: &Offer<'_>) -> bool {
        offer.has(Feature::ShellTool)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(run(cx, call))
    }
}

impl Tool for Alias {
    fn spec(&self, _: &Offer<'_>) -> Option<ToolSpec> {
        None
    }

    fn callable(&self, offer: &Offer<'_>) -> bool {
        offer.has(Feature::ShellTool)
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(run(cx, call))
    }
}

async fn run(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.turn;
    let line = loomd_policy::join(&args.command);
    hooks::before_command(cx, &call.id, &line).await?;
    let cwd = command::working_directory(turn, args.workdir.as_deref());
    if let Some(patched) = apply_patch::intercepted(cx, call, &args.command, &cwd).await {
        return patched;
    }
    guard::check_wishes(cx, &args.options, "should not")?;
    let ran = command::run_guarded(
        cx,
        Task {
            id: &call.id,
            argv: args.command,
            cwd,
            timeout: Some(args.timeout_ms.map_or(Limits::TIMEOUT, Duration::from_millis)),
            source: CommandExecutionSource::Agent,
        },
        &args.options,
    )
    .await;
    let form = if apply_patch::is_free_form(turn) { command::text } else { command::json };
    command::told(cx, call, &line, &ran, form).await
}
