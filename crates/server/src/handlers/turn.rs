//! `turn/*`, `review/start` and `thread/compact/start`

use loomd_agent::parse_id;
use loomd_protocol::{
    Call, ReviewStartParams, ReviewStartResponse, RpcError, ThreadApproveGuardianDeniedActionParams,
    ThreadApproveGuardianDeniedActionResponse, ThreadBackgroundTerminalsCleanParams,
    ThreadBackgroundTerminalsCleanResponse, ThreadCompactStartParams, ThreadCompactStartResponse,
    ThreadShellCommandParams, ThreadShellCommandResponse, Turn, TurnInterruptParams, TurnInterruptResponse,
    TurnStartParams, TurnStartResponse, TurnSteerParams, TurnSteerResponse, call,
};
use loomd_store::ThreadId;

use super::request_key::{message_key, request_key};
use super::thread::caller;
use crate::answer::Handled;
use crate::context::Context;
use crate::refusals::wire_error;

/// `turn/start`
pub(crate) async fn start(cx: &Context, params: TurnStartParams) -> Handled<call::TurnStart> {
    let key = message_key(cx, call::TurnStart::METHOD, params.client_user_message_id.as_deref(), &params)?;
    let (reply, answer) = cx.answer.reply(|turn| TurnStartResponse { turn });
    cx.app.agent.start_turn(params, cx.client.level, key, reply).await;
    Ok(answer)
}

/// `turn/steer`
pub(crate) async fn steer(cx: &Context, params: TurnSteerParams) -> Handled<call::TurnSteer> {
    let key = message_key(cx, call::TurnSteer::METHOD, params.client_user_message_id.as_deref(), &params)?;
    let (reply, answer) = cx.answer.reply(|turn_id| TurnSteerResponse { turn_id });
    cx.app.threads().steer(params, key, reply).await;
    Ok(answer)
}

/// `turn/interrupt`
pub(crate) async fn interrupt(cx: &Context, params: TurnInterruptParams) -> Handled<call::TurnInterrupt> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| TurnInterruptResponse {});
    cx.app.threads().interrupt(id, params.turn_id, cx.client.level, reply).await;
    Ok(answer)
}

/// `thread/compact/start`
pub(crate) async fn compact(cx: &Context, params: ThreadCompactStartParams) -> Handled<call::ThreadCompactStart> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let key = request_key(call::ThreadCompactStart::METHOD, params.idempotency_key.as_deref(), &params)?;
    let (reply, answer) = cx.answer.reply(|_turn| ThreadCompactStartResponse {});
    cx.app.threads().compact(id, key, reply).await;
    Ok(answer)
}

/// `thread/shellCommand`
pub(crate) async fn shell_command(cx: &Context, params: ThreadShellCommandParams) -> Handled<call::ThreadShellCommand> {
    let command = params.command.trim();
    if command.is_empty() {
        return Err(RpcError::invalid_request("command must not be empty"));
    }
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let key = request_key(call::ThreadShellCommand::METHOD, params.idempotency_key.as_deref(), &params)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadShellCommandResponse {});
    cx.app.threads().shell_command(id, command.to_owned(), key, reply).await;
    Ok(answer)
}

/// `thread/backgroundTerminals/clean`
pub(crate) async fn clean_terminals(
    cx: &Context,
    params: ThreadBackgroundTerminalsCleanParams,
) -> Handled<call::ThreadBackgroundTerminalsClean> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadBackgroundTerminalsCleanResponse {});
    cx.app.threads().clean_terminals(id, reply).await;
    Ok(answer)
}

/// `thread/approveGuardianDeniedAction`
pub(crate) async fn approve_denied(
    cx: &Context,
    params: ThreadApproveGuardianDeniedActionParams,
) -> Handled<call::ThreadApproveGuardianDeniedAction> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadApproveGuardianDeniedActionResponse {});
    cx.app.threads().approve_denied(id, params.event, reply).await;
    Ok(answer)
}

/// `review/start`
pub(crate) async fn review(cx: &Context, params: ReviewStartParams) -> Handled<call::ReviewStart> {
    let key = request_key(call::ReviewStart::METHOD, params.idempotency_key.as_deref(), &params)?;
    let (reply, answer) =
        cx.answer.reply(|(turn, id): (Turn, ThreadId)| ReviewStartResponse { turn, review_thread_id: id.to_string() });
    cx.app.agent.review(params, key, caller(cx), reply).await;
    Ok(answer)
}
