//! `thread/settings/update`, `turn/settings/update` and `permissionProfile/list`

use loomd_protocol::{
    PermissionProfileListParams, PermissionProfileListResponse, RpcError, ThreadSettingsUpdateParams,
    ThreadSettingsUpdateResponse, TurnSettingsUpdateParams, TurnSettingsUpdateResponse, TurnSettingsUpdateStatus, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/settings/update`
pub(crate) async fn update(cx: &Context, params: ThreadSettingsUpdateParams) -> Handled<call::ThreadSettingsUpdate> {
    let (reply, answer) = cx.answer.reply(|()| ThreadSettingsUpdateResponse {});
    cx.app.agent.update_settings(params, reply).await;
    Ok(answer)
}

/// `turn/settings/update`
pub(crate) async fn update_turn(cx: &Context, params: TurnSettingsUpdateParams) -> Handled<call::TurnSettingsUpdate> {
    let (reply, answer) = cx.answer.reply(|applied| TurnSettingsUpdateResponse {
        status: match applied {
            true => TurnSettingsUpdateStatus::Applied,
            false => TurnSettingsUpdateStatus::TargetUnavailable,
        },
    });
    cx.app.threads().update_turn(params, reply).await;
    Ok(answer)
}

/// `permissionProfile/list`
pub(crate) async fn list_profiles(
    cx: &Context,
    params: PermissionProfileListParams,
) -> Handled<call::PermissionProfileList> {
    let mut data = cx.app.agent.permission_profiles(params.cwd.as_deref()).map_err(wire_error)?;
    let total = data.len();
    let start = match params.cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| RpcError::invalid_request(format!("invalid cursor: {cursor}")))?,
    };
    if start > total {
        return Err(RpcError::invalid_request(format!("cursor {start} exceeds total permission profiles {total}")));
    }
    let limit = params.limit.map_or(total, |limit| limit.max(1) as usize);
    let end = start.saturating_add(limit).min(total);
    data.truncate(end);
    data.drain(..start);
    answer(PermissionProfileListResponse { data, next_cursor: (end < total).then(|| end.to_string()) })
}
