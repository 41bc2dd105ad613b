//! `apply_patch`: the model edits files. A patch is planned before any file is changed, published as an item, and
//! applied whole or not at all.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use loomd_config::Feature;
use loomd_model::{ApplyPatch as Form, ToolSpec};
use loomd_patch::{Disk, Interception, Plan, Refusal};
use loomd_protocol::{
    FileChangeOutputDeltaNotification, FileUpdateChange, PatchApplyStatus, ServerNotification, ThreadItem,
    TurnDiffUpdatedNotification,
};
use loomd_store::rollout::{EndStatus, Event, FileChange, PatchApplyEnd};
use serde::Deserialize;
use serde_json::json;

use super::cx::ToolCx;
use super::scope::ToolScope;
use super::spec::{function, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::guard::{self, Denial, PatchPermit};
use crate::message::message;
use crate::tool_call::{Call, CallInput, Output, ToolResult};
use crate::turn_cx::TurnCx;
use crate::turns::file_change;

pub(super) struct ApplyPatch;

#[derive(Deserialize)]
struct Args {
    input: String,
}

impl Tool for ApplyPatch {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("apply_patch")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        Some(match form(scope.turn)? {
            Form::Freeform => ToolSpec::Custom {
                name: "apply_patch".into(),
                description: "Edits files. The input is the patch itself, as free text and not as JSON.".into(),
                format: json!({ "type": "grammar", "syntax": "lark", "definition": loomd_patch::GRAMMAR }),
            },
            Form::Function => function(
                "apply_patch",
                "Edits files. The patch stands between `*** Begin Patch` and `*** End Patch`.",
                &[("input", string("The whole patch."))],
                &["input"],
            ),
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        form(scope.turn).is_some()
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(async {
            let text = match &call.input {
                CallInput::Text(text) => text.clone(),
                CallInput::Arguments(_) | CallInput::Search(_) => call.arguments::<Args>()?.input,
            };
            let done = patch(cx, call, &text, Path::new(&cx.action.turn.settings.cwd)).await?;
            Ok(as_text(&done).into())
        })
    }
}

/// The form in which the model writes patches: that of the catalogue, else of the configuration, else a guess.
fn form(turn: &TurnCx) -> Option<Form> {
    let known = turn.model.apply_patch.filter(|_| turn.model.known);
    let said = turn.profile.config.features.enabled(Feature::ApplyPatchFreeform).then_some(Form::Freeform);
    known.or(said).or(turn.model.apply_patch)
}

/// Whether the model writes patches as free text. It then gets the output of commands as text, too.
pub(super) fn is_free_form(turn: &TurnCx) -> bool {
    form(turn) == Some(Form::Freeform)
}

/// Applies a patch that was sent as a shell command; `None` for any other command.
pub(super) async fn intercepted(cx: &ToolCx, call: &Call, argv: &[String], cwd: &Path) -> Option<ToolResult> {
    let (text, folder) = match loomd_patch::intercept(argv)? {
        Interception::NotCalled => return Some(Err(Refusal::NotCalled.to_string())),
        Interception::Patch { text, folder } => (text, folder),
    };
    let folder: PathBuf = folder.map_or_else(|| cwd.into(), |folder| cwd.join(folder));
    let note = format!(
        "Warning: apply_patch was requested via {}. Use the apply_patch tool instead of exec_command.",
        call.name
    );
    Some(patch(cx, call, &text, &folder).await.map(|done| {
        let body = match call.name.as_str() {
            "exec_command" => as_text(&done),
            "shell_command" => as_json(&done),
            _ if is_free_form(&cx.action.turn) => as_text(&done),
            _ => as_json(&done),
        };
        // The newer release no longer comments on it.
        let notes = if cx.action.turn.profile.has_newer_tools() { Vec::new() } else { vec![message("user", note)] };
        Output { notes, ..body.into() }
    }))
}

/// The result of a patch.
struct PatchResult {
    exit_code: i32,
    output: String,
    duration: Duration,
}

async fn patch(cx: &ToolCx, call: &Call, text: &str, cwd: &Path) -> Result<PatchResult, String> {
    let turn = &cx.action.turn;
    let (wanted, folder) = (text.to_owned(), cwd.to_owned());
    let plan = blocking(move || loomd_patch::prepare(&wanted, &folder, &Disk)).await?;
    let plan = plan.map_err(|refusal| refusal.to_string())?;
    let asks = match guard::clear_patch(&cx.action, &plan) {
        PatchPermit::Free => false,
        PatchPermit::Ask => true,
        PatchPermit::Refused(reason) => return Err(reason),
    };

    let changes = plan.changes();
    let item = |status| ThreadItem::FileChange { id: call.id.clone(), changes: changes.clone(), status };
    turn.started(item(PatchApplyStatus::InProgress)).await;
    if asks && let Err(denial) = guard::request_patch_approval(&cx.action, &call.id, &plan).await {
        let end = ended(turn, call, &changes, EndStatus::Declined, "");
        turn.completed(item(PatchApplyStatus::Declined), Some(end)).await;
        return Err(match denial {
            Denial::Declined(reason) => reason,
            Denial::Cancelled => "aborted".into(),
        });
    }
    turn.begin_effects(&call.id).await?;
    let begun = Instant::now();
    let (applied, plan) = blocking(move || (plan.apply(&Disk), plan)).await?;
    let (exit_code, output) = match &applied {
        Ok(()) => (0, plan.summary()),
        Err(error) => (1, format!("{error}\n")),
    };
    turn.publish(ServerNotification::FileChangeOutputDelta(FileChangeOutputDeltaNotification {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        item_id: call.id.clone(),
        delta: output.clone(),
    }))
    .await;
    let success = applied.is_ok();
    let (status, end) = match success {
        true => (PatchApplyStatus::Completed, EndStatus::Completed),
        false => (PatchApplyStatus::Failed, EndStatus::Failed),
    };
    turn.completed(item(status), Some(ended(turn, call, &changes, end, &output))).await;
    if success {
        show_diff(cx, plan).await;
    }
    Ok(PatchResult { exit_code, output, duration: begun.elapsed() })
}

fn ended(turn: &TurnCx, call: &Call, changes: &[FileUpdateChange], status: EndStatus, output: &str) -> Event {
    let success = status == EndStatus::Completed;
    let (stdout, stderr) = if success { (output, "") } else { ("", output) };
    Event::PatchApplyEnd(PatchApplyEnd {
        call_id: call.id.clone(),
        turn_id: turn.turn_id.clone(),
        stdout: stdout.into(),
        stderr: stderr.into(),
        success,
        changes: stored(changes),
        status,
    })
}

/// Publishes the net diff of the turn if it has changed.
async fn show_diff(cx: &ToolCx, plan: Plan) {
    let turn = &cx.action.turn;
    let diff = {
        let shared = Arc::clone(&cx.diff);
        let cwd = PathBuf::from(&turn.settings.cwd);
        blocking(move || shared.lock().after(&plan, &cwd)).await
    };
    let Ok(Some(diff)) = diff else { return };
    turn.publish(ServerNotification::TurnDiffUpdated(TurnDiffUpdatedNotification {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        diff,
    }))
    .await;
}

fn stored(changes: &[FileUpdateChange]) -> BTreeMap<String, FileChange> {
    changes.iter().map(|change| (change.path.clone(), file_change(&change.kind, &change.diff))).collect()
}

fn as_text(done: &PatchResult) -> String {
    let seconds = (done.duration.as_secs_f64() * 10.0).round() / 10.0;
    format!("Exit code: {}\nWall time: {seconds} seconds\nOutput:\n{}", done.exit_code, done.output)
}

fn as_json(done: &PatchResult) -> String {
    let seconds = (done.duration.as_secs_f64() * 10.0).round() / 10.0;
    json!({ "output": done.output, "metadata": { "exit_code": done.exit_code, "duration_seconds": seconds } })
        .to_string()
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, String> {
    tokio::task::spawn_blocking(work).await.map_err(|_| "the patch could not be worked on".into())
}
