//! Decides whether and how a command may run: by rules and the approval policy, by an approval, or by the reviewer.

use std::path::{Path, PathBuf};

use jiff::Timestamp;
use loomd_config::Feature;
use loomd_exec::EnvironmentRequest;
use loomd_exec::sandbox::Sandbox;
use loomd_policy::{Decision, DecisionRequest, Trust, approval_key, decide, refuse_escalation};
use loomd_protocol::{
    AdditionalPermissionProfile, ApprovalsReviewer, AskForApproval, CommandExecutionApprovalDecision,
    CommandExecutionRequestApprovalParams, NetworkPolicyRuleAction, ResponseItem,
};
use serde::Deserialize;

use super::denial::RETRY;
use super::{ActionCx, DECLINED, Denial, reviewer, sandbox};
use crate::grants::Grants;
use crate::message::message;

/// The options of a command call about its sandbox and approval.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct CommandOptions {
    #[serde(default)]
    pub sandbox_permissions: SandboxPermissions,
    pub additional_permissions: Option<WantedPermissions>,
    pub justification: Option<String>,
    pub prefix_rule: Option<Vec<String>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SandboxPermissions {
    #[default]
    UseDefault,
    RequireEscalated,
    WithAdditionalPermissions,
}

/// The additional permissions in the arguments of a call.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct WantedPermissions {
    pub network: Option<WantedNetwork>,
    pub file_system: Option<WantedFiles>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct WantedNetwork {
    pub enabled: Option<bool>,
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct WantedFiles {
    pub read: Option<Vec<String>>,
    pub write: Option<Vec<String>>,
}

impl WantedPermissions {
    /// Makes relative paths absolute. `None` when no permission is requested.
    pub fn resolve(&self, cwd: &Path) -> Option<AdditionalPermissionProfile> {
        use loomd_protocol::{AbsolutePathBuf, AdditionalFileSystemPermissions, AdditionalNetworkPermissions};
        let paths = |paths: &Option<Vec<String>>| {
            let paths = paths.as_ref()?;
            Some(paths.iter().filter_map(|path| AbsolutePathBuf::new(cwd.join(path))).collect::<Vec<_>>())
        };
        let network = self.network.as_ref().filter(|network| network.enabled == Some(true));
        let files = self.file_system.as_ref().map(|files| AdditionalFileSystemPermissions {
            read: paths(&files.read).filter(|paths| !paths.is_empty()),
            write: paths(&files.write).filter(|paths| !paths.is_empty()),
        });
        let files = files.filter(|files| files.read.is_some() || files.write.is_some());
        (network.is_some() || files.is_some()).then(|| AdditionalPermissionProfile {
            network: network.map(|_| AdditionalNetworkPermissions { enabled: Some(true) }),
            file_system: files,
        })
    }
}

/// How a command may run.
pub(crate) struct CommandPermit {
    /// `None`: unconfined.
    pub sandbox: Option<Sandbox>,
    /// The user or the reviewer approved this command.
    pub approved: bool,
    /// It needs no approval because it is known to be read-only, and is launched so that it stays so.
    pub known_safe: bool,
    /// The rule that the approval of a retry without the sandbox proposes.
    amendment: Option<Vec<String>>,
    /// Messages for the model about the decision.
    pub notes: Vec<ResponseItem>,
}

impl CommandPermit {
    /// Whether the sandbox restricts file access, so that a retry without it may succeed.
    pub fn confines_files(&self) -> bool {
        self.sandbox.as_ref().is_some_and(Sandbox::confines_files)
    }
}

/// A command that is to be decided about.
pub(crate) struct Candidate<'a> {
    pub item_id: &'a str,
    pub argv: &'a [String],
    pub cwd: &'a Path,
    pub options: &'a CommandOptions,
    /// The name of the tool, for a reviewer.
    pub tool: &'static str,
}

/// Checks the options of a call before its item is published. The error is the output of the call; `verb` is part of
/// it.
pub(crate) fn check_options(cx: &ActionCx, options: &CommandOptions, verb: &str) -> Result<(), String> {
    let turn = &cx.turn;
    let wants_more = options.sandbox_permissions == SandboxPermissions::WithAdditionalPermissions
        || options.additional_permissions.is_some();
    if wants_more {
        if !turn.profile.config.features.enabled(Feature::ExecPermissionApprovals) {
            return Err(
                "additional permissions are disabled; enable `features.exec_permission_approvals` before using \
                        `with_additional_permissions`"
                    .into(),
            );
        }
        let Some(wanted) = &options.additional_permissions else {
            return Err(
                "missing `additional_permissions`; provide at least one of `network` or `file_system` when using \
                        `with_additional_permissions`"
                    .into(),
            );
        };
        if wanted.resolve(Path::new(&turn.settings.cwd)).is_none() {
            return Err("`additional_permissions` must include at least one requested permission in `network` or \
                        `file_system`"
                .into());
        }
    }
    let escalates = options.sandbox_permissions == SandboxPermissions::RequireEscalated || wants_more;
    if escalates && let Some(refusal) = refuse_escalation(&turn.settings.approval_policy, verb) {
        return Err(refusal);
    }
    Ok(())
}

/// Decides about a command, with an approval if one is needed. Its item has been published as started.
pub(crate) async fn clear(cx: &ActionCx, candidate: &Candidate<'_>) -> Result<CommandPermit, Denial> {
    let turn = &cx.turn;
    let options = candidate.options;
    let extra =
        options.additional_permissions.as_ref().and_then(|wanted| wanted.resolve(Path::new(&turn.settings.cwd)));
    let escalated = options.sandbox_permissions == SandboxPermissions::RequireEscalated;
    let rules = cx.guard.rules(&turn.profile.config_folders).map_err(Denial::Declined)?;
    let mut confined = sandbox(turn, &cx.guard, &cx.services);
    let (decision, key) = with_trust(cx, candidate.cwd, confined.as_ref(), |trust| {
        let decision = decide(DecisionRequest {
            command: candidate.argv,
            approval: &turn.settings.approval_policy,
            sandbox: &turn.settings.sandbox,
            escalated: escalated || extra.is_some(),
            rules: &rules,
            trust,
            prefix_rule: options.prefix_rule.as_deref(),
        });
        (decision, session_key(candidate, &extra, &trust))
    });
    if let (Some(sandbox), Some(extra)) = (&mut confined, &extra) {
        Grants::of(extra.file_system.as_ref(), extra.network.as_ref()).apply(sandbox);
    }
    let decision = match decision {
        // That the command is allowed does not grant it additional permissions.
        Decision::Allow { unsandboxed: false, amendment, .. } if extra.is_some() && confined.is_some() => {
            if let Some(refusal) = refuse_escalation(&turn.settings.approval_policy, "cannot") {
                return Err(Denial::Declined(refusal));
            }
            Decision::Ask { reason: None, amendment }
        }
        decision => decision,
    };
    match decision {
        Decision::Forbid { reason } => Err(Denial::Declined(reason)),
        Decision::Allow { unsandboxed, known_safe, amendment } => {
            let sandbox = confined.filter(|_| !unsandboxed);
            Ok(CommandPermit { sandbox, approved: false, known_safe, amendment, notes: Vec::new() })
        }
        Decision::Ask { reason, amendment } => {
            let mut notes = Vec::new();
            if !cx.guard.is_remembered(&key) {
                let reason = reason.or_else(|| options.justification.clone());
                notes = ask(cx, candidate, reason, amendment.clone(), extra, &key).await?;
            }
            let sandbox = confined.filter(|_| !escalated);
            Ok(CommandPermit { sandbox, approved: true, known_safe: false, amendment, notes })
        }
    }
}

/// Calls `then` with the [`Trust`] in programs, for a command with this working directory. Its writable paths are not
/// only those of the current sandbox, because an earlier turn of the thread may have had another one.
fn with_trust<T>(cx: &ActionCx, cwd: &Path, sandbox: Option<&Sandbox>, then: impl FnOnce(Trust<'_>) -> T) -> T {
    let turn = &cx.turn;
    let policy = &turn.profile.config.config.shell_environment_policy;
    let env = loomd_exec::environment(&cx.services.environment, policy, EnvironmentRequest::default());
    let workspace = Path::new(&turn.settings.cwd);
    let temporary = cx.services.environment.get("TMPDIR").map(Path::new);
    let folders = [Some(workspace), Some(Path::new("/tmp")), temporary];
    let folders: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.to_owned()))
        .filter(|folder| !Path::new("/usr/bin").starts_with(folder))
        .collect();
    let can_write = |path: &Path| {
        folders.iter().any(|folder| path.starts_with(folder)) || sandbox.is_some_and(|sandbox| sandbox.can_write(path))
    };
    then(Trust {
        search: env.get("PATH").unwrap_or_default(),
        cwd,
        login_shell: Some(&cx.services.shell().path),
        can_write: &can_write,
    })
}

/// Decides whether a command that the sandbox seems to have stopped is retried without it.
pub(crate) async fn retry(
    cx: &ActionCx,
    candidate: &Candidate<'_>,
    first: &CommandPermit,
) -> Result<Option<CommandPermit>, Denial> {
    let may_retry = match &cx.turn.settings.approval_policy {
        AskForApproval::Untrusted | AskForApproval::OnFailure => true,
        AskForApproval::Granular { sandbox_approval, .. } => *sandbox_approval,
        AskForApproval::OnRequest | AskForApproval::Never => false,
    };
    if !may_retry || !first.confines_files() {
        return Ok(None);
    }
    let mut notes = Vec::new();
    if !first.approved {
        let confined = first.sandbox.as_ref();
        let key = with_trust(cx, candidate.cwd, confined, |trust| session_key(candidate, &None, &trust));
        if !cx.guard.is_remembered(&key) {
            notes = ask(cx, candidate, Some(RETRY.into()), first.amendment.clone(), None, &key).await?;
        }
    }
    Ok(Some(CommandPermit { sandbox: None, approved: true, known_safe: false, amendment: None, notes }))
}

/// The key under which an approval for the session is kept: later commands with the same key need none.
fn session_key(candidate: &Candidate<'_>, extra: &Option<AdditionalPermissionProfile>, trust: &Trust) -> String {
    let key = (
        approval_key(candidate.argv, trust),
        candidate.cwd,
        candidate.options.sandbox_permissions == SandboxPermissions::RequireEscalated,
        extra,
    );
    format!("command {key:?}")
}

async fn ask(
    cx: &ActionCx,
    candidate: &Candidate<'_>,
    reason: Option<String>,
    amendment: Option<Vec<String>>,
    extra: Option<AdditionalPermissionProfile>,
    key: &str,
) -> Result<Vec<ResponseItem>, Denial> {
    use CommandExecutionApprovalDecision as D;
    let turn = &cx.turn;
    let command = loomd_policy::join(candidate.argv);
    let cwd = candidate.cwd.to_string_lossy().into_owned();
    if turn.settings.approvals_reviewer == ApprovalsReviewer::GuardianSubagent
        && turn.settings.approval_policy == AskForApproval::OnRequest
    {
        let source = if candidate.tool == "exec_command" { "unifiedExec" } else { "shell" };
        let action = serde_json::json!({
            "type": "command", "source": source, "tool": candidate.tool, "command": command, "cwd": cwd,
        });
        return reviewer::judge(turn, &cx.services, candidate.item_id, action).await.map(|()| Vec::new());
    }
    let mut decisions = vec![D::Accept];
    if extra.is_none()
        && let Some(words) = &amendment
    {
        decisions.push(D::AcceptWithExecpolicyAmendment { execpolicy_amendment: words.clone() });
    }
    decisions.push(D::Cancel);
    let request = CommandExecutionRequestApprovalParams {
        thread_id: turn.thread_id.clone(),
        turn_id: turn.turn_id.clone(),
        item_id: candidate.item_id.into(),
        approval_id: None,
        reason,
        network_approval_context: None,
        command: Some(command),
        cwd: Some(cwd),
        command_actions: Some(loomd_policy::command_actions(candidate.argv)),
        additional_permissions: extra,
        proposed_execpolicy_amendment: amendment,
        proposed_network_policy_amendments: None,
        available_decisions: Some(decisions),
        started_at_ms: Timestamp::now().as_millisecond(),
    };
    match turn.request(request).await.ok_or(Denial::Cancelled)? {
        D::Accept => Ok(Vec::new()),
        D::AcceptForSession => {
            cx.guard.remember(key.into());
            Ok(Vec::new())
        }
        D::AcceptWithExecpolicyAmendment { execpolicy_amendment } => Ok(vec![amend(cx, execpolicy_amendment).await]),
        D::ApplyNetworkPolicyAmendment { network_policy_amendment }
            if network_policy_amendment.action == NetworkPolicyRuleAction::Allow =>
        {
            Ok(Vec::new())
        }
        D::Cancel => {
            turn.cancel.cancel();
            Err(Denial::Cancelled)
        }
        D::Decline | D::ApplyNetworkPolicyAmendment { .. } => Err(Denial::Declined(DECLINED.into())),
    }
}

/// Adds a rule that allows commands with this prefix, for the thread and in the rules file. Returns the note for the
/// model.
async fn amend(cx: &ActionCx, words: Vec<String>) -> ResponseItem {
    let shown = serde_json::to_string(&words).unwrap_or_default().replace("\",\"", "\", \"");
    let file = cx.services.home.join("rules").join("default.rules");
    cx.guard.allow(&words);
    let written = tokio::task::spawn_blocking(move || loomd_policy::rules::append_prefix_rule(&file, &words)).await;
    match written {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "an approved rule could not be saved"),
        Err(error) => tracing::warn!(%error, "an approved rule could not be saved"),
    }
    message("developer", format!("Approved command prefix saved:\n- {shown}"))
}
