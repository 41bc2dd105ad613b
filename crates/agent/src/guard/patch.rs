//! Decides whether a patch may be applied.

use std::path::PathBuf;

use jiff::Timestamp;
use loomd_patch::{Plan, TouchedPath};
use loomd_protocol::{ApprovalsReviewer, AskForApproval, FileChangeApprovalDecision, FileChangeRequestApprovalParams};

use super::denial::RETRY;
use super::{ActionCx, Denial, reviewer, sandbox};

/// The decision about a patch.
pub(crate) enum PatchPermit {
    /// It may be applied.
    Free,
    /// It needs an approval, which is requested after its item was published.
    Ask,
    /// It must not be applied, for this reason.
    Refused(String),
}

/// The reason when the approval policy allows no request.
const OUTSIDE: &str = "patch rejected: writing outside of the project; rejected by user approval settings";

/// The reason when a user declines a patch.
const DECLINED: &str = "patch rejected by user";

/// Decides about a patch by sandbox and approval policy.
pub(crate) fn clear_patch(cx: &ActionCx, plan: &Plan) -> PatchPermit {
    let turn = &cx.turn;
    let policy = &turn.settings.approval_policy;
    let remembered = || plan.touched().all(|touched| cx.guard.is_remembered(&key(touched)));
    if *policy == AskForApproval::Untrusted {
        return if remembered() { PatchPermit::Free } else { PatchPermit::Ask };
    }
    let inside = match sandbox(turn, &cx.guard, &cx.services) {
        None => true,
        Some(sandbox) => {
            // `Plan::apply` changes the resolved target, and follows no links on the way to it.
            plan.touched().all(|touched| sandbox.can_write(touched.path) && sandbox.can_write_resolved(touched.target))
        }
    };
    match policy {
        _ if inside || remembered() => PatchPermit::Free,
        AskForApproval::Never | AskForApproval::Granular { sandbox_approval: false, .. } => {
            PatchPermit::Refused(OUTSIDE.into())
        }
        _ => PatchPermit::Ask,
    }
}

/// Requests the approval of a patch whose item has been published.
pub(crate) async fn request_patch_approval(cx: &ActionCx, item_id: &str, plan: &Plan) -> Result<(), Denial> {
    let turn = &cx.turn;
    let files: Vec<PathBuf> = plan.touched().map(|touched| touched.path.to_path_buf()).collect();
    if turn.settings.approvals_reviewer == ApprovalsReviewer::GuardianSubagent
        && turn.settings.approval_policy == AskForApproval::OnRequest
    {
        let action = serde_json::json!({
            "type": "applyPatch", "tool": "apply_patch", "cwd": turn.settings.cwd, "files": files, "change_count": plan.changes().len(),
        });
        return reviewer::judge(turn, &cx.services, item_id, action).await;
    }
    let request = FileChangeRequestApprovalParams {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        item_id: item_id.into(),
        reason: reason(&turn.settings.approval_policy, plan),
        grant_root: None,
        started_at_ms: Timestamp::now().as_millisecond(),
    };
    match turn.request(request).await.ok_or(Denial::Cancelled)? {
        FileChangeApprovalDecision::Accept => Ok(()),
        FileChangeApprovalDecision::AcceptForSession => {
            plan.touched().for_each(|touched| cx.guard.remember(key(touched)));
            Ok(())
        }
        FileChangeApprovalDecision::Cancel => {
            turn.cancel.cancel();
            Err(Denial::Cancelled)
        }
        FileChangeApprovalDecision::Decline => Err(Denial::Declined(DECLINED.into())),
    }
}

/// Why the approval is requested, where the changes alone do not show it.
fn reason(policy: &AskForApproval, plan: &Plan) -> Option<String> {
    // Under `on-failure`, a patch that the sandbox would stop is handled like a command that it stopped.
    if *policy == AskForApproval::OnFailure {
        return Some(RETRY.into());
    }
    let elsewhere = plan.touched().filter(|touched| touched.path != touched.target);
    let links: Vec<_> =
        elsewhere.map(|touched| format!("{} is {}", touched.path.display(), touched.target.display())).collect();
    (!links.is_empty()).then(|| format!("links are followed: {}", links.join(", ")))
}

/// What an approval for the session covers: the path, as long as it resolves to the same file. [`Plan::apply`]
/// changes nothing once the path resolves to another one.
fn key(touched: TouchedPath<'_>) -> String {
    // Quoted, so that the key is unambiguous.
    format!("file {:?} at {:?}", touched.path, touched.target)
}
