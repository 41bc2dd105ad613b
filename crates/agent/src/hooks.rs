//! When the user's hooks run, and what becomes of what they say. Without the feature, or without hooks for
//! what happens, all of this is one look at a flag or a list.

use std::path::Path;
use std::sync::Arc;

use loomd_config::Feature;
use loomd_hooks::{Hooks, Loaded, Occasion, PermissionMode, Place, Ran, Scene, SessionSource, run_all};
use loomd_protocol::{
    AskForApproval, ConfigWarningNotification, FunctionCallOutputBody, HookCompletedNotification, HookPromptFragment,
    HookStartedNotification, ResponseItem, ServerNotification, UserInput,
};
use parking_lot::Mutex;
use tokio::sync::OnceCell;

use crate::conversation::message;
use crate::input;
use crate::tools::{Output, ToolCx};
use crate::turn::Failure;
use crate::turns::hook_prompt;

/// The hooks of a loaded thread.
pub(crate) struct ThreadHooks {
    /// Read when the first of them might run.
    hooks: Arc<OnceCell<Hooks>>,
    /// How the session began, until its hooks have been told.
    begun: Mutex<Option<SessionSource>>,
}

impl ThreadHooks {
    pub fn new(source: SessionSource) -> Self {
        Self { hooks: Arc::default(), begun: Mutex::new(Some(source)) }
    }

    /// The same hooks for a session inside this one.
    pub fn within(&self) -> Self {
        Self { hooks: Arc::clone(&self.hooks), begun: Mutex::new(Some(SessionSource::Startup)) }
    }
}

/// What hooks had to say.
#[derive(Default)]
pub(crate) struct HookOutcome {
    /// It is not to go on.
    pub refused: bool,
    /// What the model should know.
    pub context: Vec<ResponseItem>,
}

/// Tells hooks that the session has begun, unless they know.
pub(crate) async fn session_start(cx: &ToolCx) -> Result<HookOutcome, Failure> {
    if !enabled(cx) {
        return Ok(HookOutcome::default());
    }
    let begun = cx.hooks.begun.lock().take();
    match begun {
        Some(source) => Ok(hook_outcome(&run(cx, Occasion::SessionStart { source }).await?)),
        None => Ok(HookOutcome::default()),
    }
}

/// Asks hooks about what the user says.
pub(crate) async fn user_prompt_submit(cx: &ToolCx, input: &[UserInput]) -> Result<HookOutcome, Failure> {
    if !enabled(cx) {
        return Ok(HookOutcome::default());
    }
    Ok(hook_outcome(&run(cx, Occasion::UserPromptSubmit { prompt: &input::text(input) }).await?))
}

/// Asks hooks about a command; an error is what the model is told instead of its output.
pub(crate) async fn before_command(cx: &ToolCx, call_id: &str, command: &str) -> Result<(), String> {
    let Ok(ran) = run(cx, Occasion::before_command(command, call_id)).await else {
        return Err("aborted".into());
    };
    match ran.into_iter().find_map(|ran| ran.effect.feedback) {
        Some(reason) => Err(format!("Command blocked by PreToolUse hook: {reason}. Command: {command}")),
        None => Ok(()),
    }
}

/// Tells hooks of a command that has run; they may change what the model is told of it.
pub(crate) async fn after_command(cx: &ToolCx, call_id: &str, command: &str, response: &str, told: &mut Output) {
    // The answer of a turn that was interrupted is not told.
    let ran = run(cx, Occasion::after_command(command, call_id, response)).await.unwrap_or_default();
    let feedback: Vec<_> = ran.iter().filter_map(|ran| ran.effect.feedback.as_deref()).collect();
    if !feedback.is_empty() {
        told.body = FunctionCallOutputBody::Text(feedback.join("\n\n"));
    }
    told.notes.extend(context(&ran));
}

/// Asks hooks whether the turn may end; if not, with what the model is told to do next. `continued`: it was
/// told so before.
pub(crate) async fn stop(
    cx: &ToolCx,
    continued: bool,
    last_message: Option<&str>,
) -> Result<Option<ResponseItem>, Failure> {
    let occasion = Occasion::Stop { stop_hook_active: continued, last_assistant_message: last_message };
    let ran = run(cx, occasion).await?;
    if ran.iter().any(|ran| ran.effect.stop) {
        return Ok(None);
    }
    let fragments = ran.into_iter().filter_map(|Ran { summary, effect }| {
        effect.feedback.map(|text| HookPromptFragment { text, hook_run_id: summary.id })
    });
    let fragments: Vec<_> = fragments.collect();
    Ok((!fragments.is_empty()).then(|| hook_prompt::message(&fragments)))
}

fn hook_outcome(ran: &[Ran]) -> HookOutcome {
    HookOutcome {
        refused: ran.iter().any(|ran| ran.effect.stop || ran.effect.feedback.is_some()),
        context: context(ran).collect(),
    }
}

fn context(ran: &[Ran]) -> impl Iterator<Item = ResponseItem> {
    ran.iter().filter_map(|ran| ran.effect.context.clone()).map(|text| message("developer", text))
}

/// Whether there may be hooks at all. A replay runs nothing of the user's.
pub(crate) fn enabled(cx: &ToolCx) -> bool {
    cx.turn.profile.config.features.enabled(Feature::CodexHooks) && cx.services.replayed.is_none()
}

/// Runs the hooks for what happens, and shows it.
async fn run(cx: &ToolCx, occasion: Occasion<'_>) -> Result<Vec<Ran>, Failure> {
    if !enabled(cx) {
        return Ok(Vec::new());
    }
    let turn = &cx.turn;
    let hooks = cx.hooks.hooks.get_or_init(|| load(cx)).await;
    let runs = hooks.on(&occasion);
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    if turn.cancel.is_cancelled() {
        return Err(Failure::Interrupted);
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
    let scene = Scene {
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
    let place =
        Place { shell: cx.services.shell(), cwd: Path::new(&turn.settings.cwd), environment: &cx.services.environment };
    let ran = run_all(runs, &occasion, &scene, place, &turn.cancel).await;
    for Ran { summary, .. } in &ran {
        turn.publish(ServerNotification::HookCompleted(HookCompletedNotification {
            thread_id: turn.thread_id.clone(),
            turn_id: Some(turn.turn_id.clone()),
            run: summary.clone(),
        }))
        .await;
    }
    // What they would have said if they had been let is not known.
    if turn.cancel.is_cancelled() { Err(Failure::Interrupted) } else { Ok(ran) }
}

async fn load(cx: &ToolCx) -> Hooks {
    let Loaded { hooks, problems } = Hooks::load(&cx.turn.profile.config_folders);
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
