//! `shell_command`: a script for the user's shell, run to its end.

use std::time::Duration;

use loomd_config::Feature;
use loomd_exec::Limits;
use loomd_model::{ShellTool, ToolSpec};
use loomd_protocol::CommandExecutionSource;
use serde::Deserialize;

use super::apply_patch;
use super::command::{self, CommandTask};
use super::cx::ToolCx;
use super::scope::ToolScope;
use super::spec::{array, boolean, function, number, one_of, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::guard::{self, CommandOptions};
use crate::tool_call::Call;

pub(super) struct ShellCommand;

#[derive(Deserialize)]
struct Args {
    command: String,
    workdir: Option<String>,
    #[serde(alias = "timeout")]
    timeout_ms: Option<u64>,
    #[serde(flatten)]
    options: CommandOptions,
    login: Option<bool>,
}

impl Tool for ShellCommand {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("shell_command")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let wanted = scope.has(Feature::ShellTool)
            && !scope.has(Feature::UnifiedExec)
            && scope.turn.model.shell == ShellTool::ShellCommand;
        wanted.then(|| {
            let mut properties = vec![
                ("command", string("The script, as you would type it.")),
                ("workdir", string("Where it runs; the working directory unless given.")),
                ("timeout_ms", number("It is stopped after so many milliseconds; 10000 unless given.")),
                ("login", boolean("Whether the shell is a login shell; true unless given.")),
            ];
            properties.extend(escalation());
            function(
                "shell_command",
                "Runs a script in the user's shell and gives back what it printed.",
                &properties,
                &["command"],
            )
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
        Box::pin(async {
            let args: Args = call.arguments()?;
            let turn = &cx.action.turn;
            cx.thread.hooks.before_command(&cx.action, &call.id, &args.command).await?;
            let login = loomd_exec::login(args.login, turn.profile.config.config.allow_login_shell());
            let argv = cx.action.services.shell().argv(&args.command, login.map_err(|refused| refused.to_string())?);
            let cwd = command::working_directory(turn, args.workdir.as_deref());
            if let Some(patched) = apply_patch::intercepted(cx, call, &argv, &cwd).await {
                return patched;
            }
            guard::check_options(&cx.action, &args.options, "should not")?;
            let result = command::run_guarded(
                cx,
                CommandTask {
                    id: &call.id,
                    argv,
                    cwd,
                    timeout: Some(args.timeout_ms.map_or(Limits::TIMEOUT, Duration::from_millis)),
                    source: CommandExecutionSource::Agent,
                },
                &args.options,
            )
            .await;
            command::told(cx, call, &args.command, &result, command::text).await
        })
    }
}

/// The properties with which a call requests more than the sandbox allows.
pub(super) fn escalation() -> [(&'static str, serde_json::Value); 3] {
    [
        (
            "sandbox_permissions",
            one_of(
                &["use_default", "require_escalated"],
                "`require_escalated` asks the user to let the command run without the sandbox.",
            ),
        ),
        ("justification", string("With `require_escalated`: the question to the user, one sentence.")),
        (
            "prefix_rule",
            array(
                serde_json::json!({ "type": "string" }),
                "With `require_escalated`: the first words of commands that the user may allow from now on.",
            ),
        ),
    ]
}
