//! `turn/*`, `review/start` and `thread/compact/start`

use loomd_protocol::{
    ReviewStartParams, ReviewStartResponse, RpcError, ThreadBackgroundTerminalsCleanParams,
    ThreadBackgroundTerminalsCleanResponse, ThreadCompactStartParams, ThreadCompactStartResponse,
    ThreadShellCommandParams, ThreadShellCommandResponse, Turn, TurnInterruptParams, TurnInterruptResponse,
    TurnStartParams, TurnStartResponse, TurnSteerParams, TurnSteerResponse, call,
};
use loomd_store::ThreadId;

use super::thread::{caller, identified, reply};
use crate::context::Context;
use crate::responder::Responder;

/// `turn/start`
pub(crate) async fn start(cx: &Context, params: TurnStartParams, responder: Responder<call::TurnStart>) {
    cx.app.threads().start_turn(params, reply(responder, |turn| TurnStartResponse { turn })).await;
}

/// `turn/steer`
pub(crate) async fn steer(cx: &Context, params: TurnSteerParams, responder: Responder<call::TurnSteer>) {
    cx.app.threads().steer(params, reply(responder, |turn_id| TurnSteerResponse { turn_id })).await;
}

/// `turn/interrupt`
pub(crate) async fn interrupt(cx: &Context, params: TurnInterruptParams, responder: Responder<call::TurnInterrupt>) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |()| TurnInterruptResponse {});
    cx.app.threads().interrupt(id, params.turn_id, reply).await;
}

/// `thread/compact/start`
pub(crate) async fn compact(
    cx: &Context,
    params: ThreadCompactStartParams,
    responder: Responder<call::ThreadCompactStart>,
) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |_turn| ThreadCompactStartResponse {});
    cx.app.threads().compact(id, reply).await;
}

/// `thread/shellCommand`
pub(crate) async fn shell_command(
    cx: &Context,
    params: ThreadShellCommandParams,
    responder: Responder<call::ThreadShellCommand>,
) {
    let command = params.command.trim();
    if command.is_empty() {
        return responder.answer(Err(RpcError::invalid_request("command must not be empty")));
    }
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |()| ThreadShellCommandResponse {});
    cx.app.threads().shell_command(id, command.to_owned(), reply).await;
}

/// `thread/backgroundTerminals/clean`
pub(crate) async fn clean_terminals(
    cx: &Context,
    params: ThreadBackgroundTerminalsCleanParams,
    responder: Responder<call::ThreadBackgroundTerminalsClean>,
) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |()| ThreadBackgroundTerminalsCleanResponse {});
    cx.app.threads().clean_terminals(id, reply).await;
}

/// `review/start`
pub(crate) async fn review(cx: &Context, params: ReviewStartParams, responder: Responder<call::ReviewStart>) {
    let reply =
        reply(responder, |(turn, id): (Turn, ThreadId)| ReviewStartResponse { turn, review_thread_id: id.to_string() });
    cx.app.agent.review(params, caller(cx), reply).await;
}
