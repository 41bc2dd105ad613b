//! Runs hooks: all that match an event at once, each in the user's shell with the event as JSON on its stdin.

use std::path::Path;

use futures_util::future::join_all;
use jiff::Timestamp;
use loomd_exec::{Command, Environment, Limits, Shell, run_with_input, to_text};
use loomd_protocol::{HookEventName, HookExecutionMode, HookHandlerType, HookRunStatus, HookRunSummary, HookScope};
use tokio_util::sync::CancellationToken;

use crate::event::{HookContext, HookEvent};
use crate::load::{Handler, Hooks};
use crate::output::{Effect, HookOutput, ParsedOutput, parse_output};

/// The shell, folder and variables of hooks. They are the user's own programs, so they run without a sandbox.
#[derive(Clone, Copy, Debug)]
pub struct HookEnvironment<'a> {
    pub shell: &'a Shell,
    pub cwd: &'a Path,
    pub environment: &'a Environment,
}

/// A hook that is about to run.
#[derive(Clone, Debug)]
pub struct PendingHook<'a> {
    handler: &'a Handler,
    /// The run as clients see it.
    pub summary: HookRunSummary,
}

/// A hook that has run.
#[derive(Clone, Debug, PartialEq)]
pub struct HookResult {
    pub summary: HookRunSummary,
    pub effect: Effect,
}

impl Hooks {
    /// The hooks that run on an event, not started yet.
    pub fn on<'a>(&'a self, event: &'a HookEvent<'_>) -> Vec<PendingHook<'a>> {
        let started_at = Timestamp::now().as_second();
        self.matching(event).map(|handler| PendingHook { handler, summary: summary(handler, started_at) }).collect()
    }
}

/// Runs hooks to their ends or until cancelled. Results are in the order of the hooks.
pub async fn run_all(
    runs: Vec<PendingHook<'_>>,
    event: &HookEvent<'_>,
    context: &HookContext<'_>,
    environment: HookEnvironment<'_>,
    cancel: &CancellationToken,
) -> Vec<HookResult> {
    let input = event.stdin(context);
    join_all(runs.into_iter().map(|run| run.finish(input.as_bytes(), environment, cancel))).await
}

impl PendingHook<'_> {
    async fn finish(self, input: &[u8], environment: HookEnvironment<'_>, cancel: &CancellationToken) -> HookResult {
        let Self { handler, mut summary } = self;
        let argv = environment.shell.argv(&handler.command, true);
        let command = Command::new(argv, environment.cwd, environment.environment.clone());
        let limits = Limits { timeout: Some(handler.timeout), ..Limits::default() };
        let begun = Timestamp::now();
        let parsed = match run_with_input(&command, input, limits, cancel).await {
            Ok(finished) => {
                let (stdout, stderr) = (to_text(finished.stdout), to_text(finished.stderr));
                let timeout_seconds = handler.timeout.as_secs();
                let output =
                    HookOutput { outcome: finished.outcome, stdout: &stdout, stderr: &stderr, timeout_seconds };
                parse_output(handler.event, output)
            }
            Err(error) => ParsedOutput::failed(error.to_string()),
        };
        let ended = Timestamp::now();
        summary.completed_at = Some(ended.as_second());
        summary.duration_ms = Some(ended.as_millisecond().saturating_sub(begun.as_millisecond()).max(0));
        (summary.status, summary.entries) = (parsed.status, parsed.entries);
        HookResult { summary, effect: parsed.effect }
    }
}

fn summary(handler: &Handler, started_at: i64) -> HookRunSummary {
    let event = match handler.event {
        HookEventName::SessionStart => "session-start",
        HookEventName::UserPromptSubmit => "user-prompt-submit",
        HookEventName::PreToolUse => "pre-tool-use",
        HookEventName::PostToolUse => "post-tool-use",
        HookEventName::Stop => "stop",
    };
    let source_path = handler.source.to_string_lossy().into_owned();
    HookRunSummary {
        id: format!("{event}:{}:{source_path}", handler.order),
        event_name: handler.event,
        handler_type: HookHandlerType::Command,
        execution_mode: HookExecutionMode::Sync,
        scope: if handler.event == HookEventName::SessionStart { HookScope::Thread } else { HookScope::Turn },
        source_path,
        display_order: i64::try_from(handler.order).unwrap_or(i64::MAX),
        status: HookRunStatus::Running,
        status_message: handler.status_message.clone(),
        started_at,
        completed_at: None,
        duration_ms: None,
        entries: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use loomd_protocol::{HookOutputEntry, HookOutputEntryKind};
    use serde_json::json;

    use super::*;
    use crate::event::PermissionMode;

    const SCENE: HookContext<'static> = HookContext {
        session_id: "S",
        turn_id: "T",
        transcript_path: None,
        cwd: "/",
        model: "m",
        permission_mode: PermissionMode::Default,
    };

    /// Runs scripts as `Stop` hooks.
    async fn run(scripts: &[&str], timeout: u64, cancel: &CancellationToken) -> Vec<HookResult> {
        let folder = tempfile::tempdir().unwrap();
        let hook = |script: &&str| json!({ "type": "command", "command": script, "timeout": timeout });
        let hooks: Vec<_> = scripts.iter().map(hook).collect();
        fs::write(folder.path().join("hooks.json"), json!({ "hooks": { "Stop": [{ "hooks": hooks }] } }).to_string())
            .unwrap();
        let loaded = Hooks::load(&[folder.path()]);
        let event = HookEvent::Stop { stop_hook_active: false, last_assistant_message: Some("bye") };
        let mut environment = Environment::of_this_process();
        // Without start-up files.
        environment.set("HOME", folder.path().to_string_lossy());
        let shell = Shell::of_user("/usr/bin:/bin");
        let environment = HookEnvironment { shell: &shell, cwd: Path::new("/"), environment: &environment };
        run_all(loaded.hooks.on(&event), &event, &SCENE, environment, cancel).await
    }

    fn entry(ran: &HookResult) -> (HookRunStatus, Option<&str>) {
        (ran.summary.status, ran.summary.entries.first().map(|entry| entry.text.as_str()))
    }

    #[tokio::test]
    async fn results_are_in_the_order_of_the_hooks() {
        let ran =
            run(&["sleep 0.2; grep -o bye >&2; exit 2", "exit 3", "cd /nowhere"], 60, &CancellationToken::new()).await;
        let ids: Vec<_> = ran.iter().map(|ran| ran.summary.display_order).collect();
        assert_eq!(ids, [0, 1, 2]);
        let bye = HookOutputEntry { kind: HookOutputEntryKind::Feedback, text: "bye".into() };
        assert_eq!((ran[0].summary.status, &ran[0].summary.entries), (HookRunStatus::Blocked, &vec![bye]));
        assert_eq!(ran[0].effect.feedback.as_deref(), Some("bye"));
        assert_eq!(entry(&ran[1]), (HookRunStatus::Failed, Some("hook exited with code 3")));
        assert!(ran.iter().all(|ran| ran.summary.completed_at.is_some() && ran.summary.duration_ms.is_some()));
    }

    #[tokio::test]
    async fn a_hook_that_takes_too_long_is_killed() {
        let ran = run(&["sleep 60"], 1, &CancellationToken::new()).await;
        assert_eq!(entry(&ran[0]), (HookRunStatus::Failed, Some("hook timed out after 1s")));
    }

    #[tokio::test]
    async fn cancelling_kills_running_hooks() {
        let cancel = CancellationToken::new();
        cancel.cancel();
        let ran = run(&["sleep 60"], 60, &cancel).await;
        assert_eq!(entry(&ran[0]), (HookRunStatus::Failed, Some("hook was interrupted")));
    }
}
