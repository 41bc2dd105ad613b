//! `turn/*`, `review/start` and `thread/compact/start`

use loomd_agent::Source;
use loomd_protocol::{
    ReviewDelivery, ReviewStartParams, ReviewStartResponse, ReviewTarget, RpcError,
    ThreadBackgroundTerminalsCleanParams, ThreadBackgroundTerminalsCleanResponse, ThreadCompactStartParams,
    ThreadCompactStartResponse, ThreadShellCommandParams, ThreadShellCommandResponse, TurnInterruptParams,
    TurnInterruptResponse, TurnStartParams, TurnStartResponse, TurnSteerParams, TurnSteerResponse, UserInput, call,
};
use serde_json::json;

use super::thread::{identified, parse_id, reply, subscriber, wire_error};
use crate::dispatch::Context;
use crate::responder::Responder;
use crate::thread_settings::{Restore, ThreadOverrides, resolver};
use crate::working_directory::absolute;

/// The most that one input may say, in characters.
const MAX_INPUT_CHARS: usize = 1 << 20;

/// `turn/start`
pub(crate) async fn start(cx: &Context, mut params: TurnStartParams, responder: Responder<call::TurnStart>) {
    if let Err(error) = check_size(&params.input) {
        return responder.answer(Err(error));
    }
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    if let Some(cwd) = &mut params.cwd {
        match absolute(cwd) {
            Ok(path) => *cwd = path.to_string_lossy().into_owned(),
            Err(error) => return responder.answer(Err(error.into())),
        }
    }
    let reply = reply(responder, |turn| TurnStartResponse { turn });
    cx.app.threads().start_turn(id, params, reply).await;
}

/// `turn/steer`
pub(crate) async fn steer(cx: &Context, params: TurnSteerParams, responder: Responder<call::TurnSteer>) {
    let refuse = |error: RpcError| Some(error);
    let id = match parse_id(&params.thread_id) {
        Ok(id) => id,
        Err(refusal) => return responder.answer(Err(wire_error(refusal))),
    };
    let wrong = if !cx.app.threads().is_loaded(id) {
        refuse(RpcError::invalid_request(format!("thread not found: {id}")))
    } else if params.expected_turn_id.is_empty() {
        refuse(RpcError::invalid_request("expectedTurnId must not be empty"))
    } else if let Err(error) = check_size(&params.input) {
        refuse(error)
    } else if params.input.is_empty() {
        refuse(RpcError::invalid_request("input must not be empty"))
    } else {
        None
    };
    if let Some(error) = wrong {
        return responder.answer(Err(error));
    }
    let reply = reply(responder, |turn_id| TurnSteerResponse { turn_id });
    cx.app.threads().steer(id, params.expected_turn_id, params.input, reply).await;
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
    let target = match trimmed(params.target) {
        Ok(target) => target,
        Err(error) => return responder.answer(Err(error)),
    };
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let threads = cx.app.threads();
    let id = match params.delivery.unwrap_or(ReviewDelivery::Inline) {
        ReviewDelivery::Inline => id,
        ReviewDelivery::Detached => {
            let resolve = resolver(cx, ThreadOverrides::default(), Restore::Model);
            match threads.fork_for_review(Source::Id(id), resolve, subscriber(cx)).await {
                Ok(id) => id,
                Err(refusal) => return responder.answer(Err(wire_error(refusal))),
            }
        }
    };
    let review_thread_id = id.to_string();
    let reply = reply(responder, move |turn| ReviewStartResponse { turn, review_thread_id });
    threads.review(id, target, reply).await;
}

/// What is to be reviewed, with nothing blank in it.
fn trimmed(target: ReviewTarget) -> Result<ReviewTarget, RpcError> {
    let filled = |name: &str, text: String| match text.trim() {
        "" => Err(RpcError::invalid_request(format!("{name} must not be empty"))),
        text => Ok(text.to_owned()),
    };
    Ok(match target {
        ReviewTarget::UncommittedChanges => ReviewTarget::UncommittedChanges,
        ReviewTarget::BaseBranch { branch } => ReviewTarget::BaseBranch { branch: filled("branch", branch)? },
        ReviewTarget::Commit { sha, title } => {
            let title = title.map(|title| title.trim().to_owned()).filter(|title| !title.is_empty());
            ReviewTarget::Commit { sha: filled("sha", sha)?, title }
        }
        ReviewTarget::Custom { instructions } => {
            ReviewTarget::Custom { instructions: filled("instructions", instructions)? }
        }
    })
}

fn check_size(input: &[UserInput]) -> Result<(), RpcError> {
    let chars: usize = input
        .iter()
        .map(|part| match part {
            UserInput::Text { text, .. } => text.chars().count(),
            _ => 0,
        })
        .sum();
    if chars <= MAX_INPUT_CHARS {
        return Ok(());
    }
    let message = format!("Input exceeds the maximum length of {MAX_INPUT_CHARS} characters.");
    Err(RpcError::invalid_params(message).with_data(json!({
        "input_error_code": "input_too_large", "max_chars": MAX_INPUT_CHARS, "actual_chars": chars,
    })))
}
