//! When the user's hooks run, and what their outcome means for the turn. Without the feature, or without hooks for an
//! event, every function here only looks at a flag or a list.

use std::path::Path;
use std::sync::Arc;

use loomd_config::Feature;
use loomd_hooks::{
    HookContext, HookEnvironment, HookEvent, HookResult, Hooks, LoadedHooks, PermissionMode, SessionSource, run_all,
};
use loomd_protocol::{
    AskForApproval, ConfigWarningNotification, FunctionCallOutputBody, HookCompletedNotification, HookPromptFragment,
    HookStartedNotification, ResponseItem, ServerNotification, UserInput,
};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::guard::ActionCx;
use crate::input;
use crate::message::message;
use crate::tool_call::Output;
use crate::turns::hook_prompt;

/// The hooks of a loaded thread.
pub(crate) struct ThreadHooks {
    /// Loaded before the first event.
    hooks: Arc<OnceCell<Hooks>>,
    /// How the session began, until the `SessionStart` hooks have run.
    begun: Mutex<Option<SessionSource>>,
}

/// What hooks decided about an event.
#[derive(Default)]
pub(crate) struct HookOutcome {
    /// A hook blocked the event.
    pub refused: bool,
    /// Context for the model.
    pub context: Vec<ResponseItem>,
}

/// The turn was interrupted while hooks ran.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl ThreadHooks {
    pub fn new(source: SessionSource) -> Self {
        Self { hooks: Arc::default(), begun: Mutex::new(Some(source)) }
    }

    /// The same hooks for a session inside this one, such as a review.
    pub fn within(&self) -> Self {
        Self { hooks: Arc::clone(&self.hooks), begun: Mutex::new(Some(SessionSource::Startup)) }
    }

    /// Runs the `SessionStart` hooks once per session.
    pub async fn session_start(&self, cx: &ActionCx) -> Result<HookOutcome, Interrupted> {
        if !enabled(cx) {
            return Ok(HookOutcome::default());
        }
        let begun = self.begun.lock().take();
        match begun {
            Some(source) => Ok(hook_outcome(&self.run(cx, HookEvent::SessionStart { source }).await?)),
            None => Ok(HookOutcome::default()),
        }
    }

    /// Runs the `UserPromptSubmit` hooks for input of the user.
    pub async fn user_prompt_submit(&self, cx: &ActionCx, input: &[UserInput]) -> Result<HookOutcome, Interrupted> {
        if !enabled(cx) {
            return Ok(HookOutcome::default());
        }
        Ok(hook_outcome(&self.run(cx, HookEvent::UserPromptSubmit { prompt: &input::text(input) }).await?))
    }

    /// Runs the `PreToolUse` hooks for a command. The error is the output of the call when one blocks it.
    pub async fn before_command(&self, cx: &ActionCx, call_id: &str, command: &str) -> Result<(), String> {
        let Ok(ran) = self.run(cx, HookEvent::before_command(command, call_id)).await else {
            return Err("aborted".into());
        };
        match ran.into_iter().find_map(|ran| ran.effect.feedback) {
            Some(reason) => Err(format!("Command blocked by PreToolUse hook: {reason}. Command: {command}")),
            None => Ok(()),
        }
    }

    /// Runs the `PostToolUse` hooks for a command. Their feedback replaces its output, their context is added to it.
    pub async fn after_command(
        &self,
        cx: &ActionCx,
        call_id: &str,
        command: &str,
        response: &str,
        output: &mut Output,
    ) {
        // The output of an interrupted turn is not sent.
        let ran = self.run(cx, HookEvent::after_command(command, call_id, response)).await.unwrap_or_default();
        let feedback: Vec<_> = ran.iter().filter_map(|ran| ran.effect.feedback.as_deref()).collect();
        if !feedback.is_empty() {
            output.body = FunctionCallOutputBody::Text(feedback.join("\n\n"));
        }
        output.notes.extend(context(&ran));
    }

    /// Runs the `Stop` hooks; the message with which they continue the turn, if they do. `continued`: they have
    /// continued this turn before.
    pub async fn stop(
        &self,
        cx: &ActionCx,
        continued: bool,
        last_message: Option<&str>,
    ) -> Result<Option<ResponseItem>, Interrupted> {
        let event = HookEvent::Stop { stop_hook_active: continued, last_assistant_message: last_message };
        let ran = self.run(cx, event).await?;
        if ran.iter().any(|ran| ran.effect.stop) {
            return Ok(None);
        }
        let fragments = ran.into_iter().filter_map(|HookResult { summary, effect }| {
            effect.feedback.map(|text| HookPromptFragment { text, hook_run_id: summary.id })
        });
        let fragments: Vec<_> = fragments.collect();
        Ok((!fragments.is_empty()).then(|| hook_prompt::message(&fragments)))
    }

    /// Runs the hooks for an event, and publishes that they start and complete.
    async fn run(&self, cx: &ActionCx, event: HookEvent<'_>) -> Result<Vec<HookResult>, Interrupted> {
        if !enabled(cx) {
            return Ok(Vec::new());
        }
        let turn = &cx.turn;
        let hooks = self.hooks.get_or_init(|| load(cx)).await;
        let runs = hooks.on(&event);
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        if turn.cancel.is_cancelled() {
            return Err(Interrupted);
        }
        for run in &runs {
            turn.publish(ServerNotification::HookStarted(HookStartedNotification {
                thread_id: turn.thread_id.clone(),
                turn_id: Some(turn.turn_id.clone()),
                run: run.summary.clone(),
            }))
            .await;
        }
        let transcript_path = turn.view.path();
        let context = HookContext {
            session_id: &turn.thread_id,
            turn_id: &turn.turn_id,
            transcript_path: transcript_path.as_deref(),
            cwd: &turn.settings.cwd,
            model: &turn.settings.model,
            permission_mode: match turn.settings.approval_policy {
                AskForApproval::Never => PermissionMode::BypassPermissions,
                _ => PermissionMode::Default,
            },
        };
        let environment = HookEnvironment {
            shell: cx.services.shell(),
            cwd: Path::new(&turn.settings.cwd),
            environment: &cx.services.environment,
        };
        let ran = run_all(runs, &event, &context, environment, &turn.cancel).await;
        for HookResult { summary, .. } in &ran {
            turn.publish(ServerNotification::HookCompleted(HookCompletedNotification {
                thread_id: turn.thread_id.clone(),
                turn_id: Some(turn.turn_id.clone()),
                run: summary.clone(),
            }))
            .await;
        }
        // The outcome of hooks that were interrupted is unknown.
        if turn.cancel.is_cancelled() { Err(Interrupted) } else { Ok(ran) }
    }
}

fn hook_outcome(ran: &[HookResult]) -> HookOutcome {
    HookOutcome {
        refused: ran.iter().any(|ran| ran.effect.stop || ran.effect.feedback.is_some()),
        context: context(ran).collect(),
    }
}

fn context(ran: &[HookResult]) -> impl Iterator<Item = ResponseItem> {
    ran.iter().filter_map(|ran| ran.effect.context.clone()).map(|text| message("developer", text))
}

/// Whether hooks can run at all. A replay runs nothing of the user's.
pub(crate) fn enabled(cx: &ActionCx) -> bool {
    cx.turn.profile.config.features.enabled(Feature::CodexHooks) && cx.services.replayed.is_none()
}

async fn load(cx: &ActionCx) -> Hooks {
    let LoadedHooks { hooks, problems } = Hooks::load(&cx.turn.profile.config_folders);
    for problem in problems {
        let warning = ConfigWarningNotification {
            summary: "Some hooks cannot be understood and do not run.".into(),
            details: Some(problem.message),
            path: Some(problem.path.to_string_lossy().into_owned()),
            range: None,
        };
        cx.turn.publish(ServerNotification::ConfigWarning(warning)).await;
    }
    hooks
}
