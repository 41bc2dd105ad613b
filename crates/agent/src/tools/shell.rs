//! `shell`, and its other names: a program and its arguments, run as they are.

use std::time::Duration;

use loomd_config::Feature;
use loomd_exec::Limits;
use loomd_model::{ShellTool, ToolSpec};
use loomd_protocol::CommandExecutionSource;
use serde::Deserialize;
use serde_json::json;

use super::apply_patch;
use super::command::{self, CommandTask};
use super::cx::ToolCx;
use super::scope::ToolScope;
use super::shell_command::escalation;
use super::spec::{array, function, number, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::guard::{self, CommandOptions};
use crate::tool_call::{Call, ToolResult};

pub(super) struct Shell;

/// Another name of `shell`, which is not offered.
pub(super) struct Alias(pub &'static str);

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
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("shell")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let wanted = scope.has(Feature::ShellTool)
            && !scope.has(Feature::UnifiedExec)
            && !matches!(scope.turn.model.shell, ShellTool::ShellCommand | ShellTool::Disabled);
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

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.has(Feature::ShellTool)
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(run(cx, call))
    }
}

impl Tool for Alias {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain(self.0)
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, _: &ToolScope<'_>) -> Option<ToolSpec> {
        None
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.has(Feature::ShellTool)
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(run(cx, call))
    }
}

async fn run(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    let line = loomd_policy::join(&args.command);
    cx.thread.hooks.before_command(&cx.action, &call.id, &line).await?;
    let cwd = command::working_directory(turn, args.workdir.as_deref());
    if let Some(patched) = apply_patch::intercepted(cx, call, &args.command, &cwd).await {
        return patched;
    }
    guard::check_options(&cx.action, &args.options, "should not")?;
    let result = command::run_guarded(
        cx,
        CommandTask {
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
    command::told(cx, call, &line, &result, form).await
}
