//! `request_permissions`: the model asks for network access or folders, for all later commands at once.

use std::path::Path;

use jiff::Timestamp;
use loomd_config::Feature;
use loomd_model::ToolSpec;
use loomd_protocol::{
    AbsolutePathBuf, AdditionalFileSystemPermissions, AdditionalNetworkPermissions, AskForApproval,
    GrantedPermissionProfile, PermissionGrantScope, PermissionsRequestApprovalParams, RequestPermissionProfile,
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::cx::ToolCx;
use super::scope::ToolScope;
use super::spec::{array, boolean, function, object, string};
use super::tool::{Tool, ToolFuture, ToolName};
use crate::grants::Grants;
use crate::guard::WantedPermissions;
use crate::tool_call::{Call, ToolResult};

pub(super) struct RequestPermissions;

#[derive(Deserialize)]
struct Args {
    reason: Option<String>,
    permissions: WantedPermissions,
}

/// The output for the model.
#[derive(Serialize)]
struct GrantedPermissions {
    permissions: Permissions,
    scope: PermissionGrantScope,
}

#[derive(Serialize)]
struct Permissions {
    network: Option<AdditionalNetworkPermissions>,
    file_system: Option<AdditionalFileSystemPermissions>,
}

impl Tool for RequestPermissions {
    fn name(&self) -> ToolName<'_> {
        ToolName::plain("request_permissions")
    }

    fn needs_environment(&self) -> bool {
        true
    }

    fn spec(&self, scope: &ToolScope<'_>) -> Option<ToolSpec> {
        let paths = || array(json!({ "type": "string" }), "Paths, absolute or relative to the working directory.");
        scope.has(Feature::RequestPermissionsTool).then(|| {
            function(
                "request_permissions",
                "Asks the user for permissions beyond the sandbox, for all later commands and patches.",
                &[
                    (
                        "permissions",
                        object(
                            &[
                                ("network", object(&[("enabled", boolean("Whether the network is needed."))], &[])),
                                ("file_system", object(&[("read", paths()), ("write", paths())], &[])),
                            ],
                            &[],
                        ),
                    ),
                    ("reason", string("Why they are needed, one sentence.")),
                ],
                &["permissions"],
            )
        })
    }

    fn callable(&self, scope: &ToolScope<'_>) -> bool {
        scope.has(Feature::RequestPermissionsTool)
    }

    fn notes_effects(&self) -> bool {
        true
    }

    fn run<'a>(&'a self, cx: &'a ToolCx, call: &'a Call) -> ToolFuture<'a> {
        Box::pin(request(cx, call))
    }
}

async fn request(cx: &ToolCx, call: &Call) -> ToolResult {
    let args: Args = call.arguments()?;
    let turn = &cx.action.turn;
    let wanted = args
        .permissions
        .resolve(Path::new(&turn.settings.cwd))
        .ok_or("request_permissions requires at least one permission")?;
    // Resolved before the request: a grant is for what the paths name now.
    let asked = Grants::of(wanted.file_system.as_ref(), wanted.network.as_ref());
    let no_approval = matches!(
        turn.settings.approval_policy,
        AskForApproval::Never | AskForApproval::Granular { request_permissions: false, .. }
    );
    let answer = match no_approval {
        true => None,
        false => {
            let params = PermissionsRequestApprovalParams {
                thread_id: turn.thread_id.clone(),
                turn_id: turn.turn_id.clone(),
                item_id: call.id.clone(),
                reason: args.reason,
                permissions: RequestPermissionProfile {
                    network: wanted.network.clone(),
                    file_system: wanted.file_system.clone(),
                },
                cwd: turn.settings.cwd.clone(),
                started_at_ms: Timestamp::now().as_millisecond(),
            };
            Some(turn.request(params).await.ok_or("aborted")?)
        }
    };
    let (given, scope) = match answer {
        Some(answer) => (answer.permissions, answer.scope),
        None => (GrantedPermissionProfile { network: None, file_system: None }, PermissionGrantScope::Turn),
    };
    // No decision grants more than was requested.
    let network = wanted.network.filter(|_| given.network.is_some_and(|given| given.enabled == Some(true)));
    let file_system = wanted.file_system.zip(given.file_system).map(|(wanted, given)| {
        AdditionalFileSystemPermissions { read: both(wanted.read, given.read), write: both(wanted.write, given.write) }
    });
    let file_system = file_system.filter(|files| files.read.is_some() || files.write.is_some());
    let grants = asked.among(file_system.as_ref(), network.as_ref());
    if !grants.is_empty() {
        match scope {
            PermissionGrantScope::Turn => turn.grant(&grants),
            PermissionGrantScope::Session => cx.action.guard.grant(&grants),
        }
    }
    let granted = GrantedPermissions { permissions: Permissions { network, file_system }, scope };
    serde_json::to_string(&granted).map(Into::into).map_err(|error| error.to_string())
}

fn both(wanted: Option<Vec<AbsolutePathBuf>>, given: Option<Vec<AbsolutePathBuf>>) -> Option<Vec<AbsolutePathBuf>> {
    let (wanted, given) = (wanted?, given?);
    let both: Vec<_> = wanted.into_iter().filter(|path| given.contains(path)).collect();
    (!both.is_empty()).then_some(both)
}
