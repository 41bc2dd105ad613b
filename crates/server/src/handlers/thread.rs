//! `thread/*`

use std::sync::Arc;

use loomd_agent::{
    Caller, ForkThread, MAX_INPUT_CHARS, Opened, PageRequest, Refusal, Reply, ResumeThread, StartThread, Subscriber,
    ThreadOverrides, parse_id,
};
use loomd_protocol::{
    Call, CodexErrorInfo, RpcError, ThreadArchiveParams, ThreadArchiveResponse, ThreadDecrementElicitationParams,
    ThreadDecrementElicitationResponse, ThreadDeleteParams, ThreadDeleteResponse, ThreadForkParams, ThreadForkResponse,
    ThreadIncrementElicitationParams, ThreadIncrementElicitationResponse, ThreadItemsListParams,
    ThreadItemsListResponse, ThreadListParams, ThreadListResponse, ThreadLoadedListParams, ThreadLoadedListResponse,
    ThreadMetadataUpdateParams, ThreadMetadataUpdateResponse, ThreadReadParams, ThreadReadResponse, ThreadResumeParams,
    ThreadResumeResponse, ThreadRollbackParams, ThreadRollbackResponse, ThreadSetNameParams, ThreadSetNameResponse,
    ThreadStartParams, ThreadStartResponse, ThreadTurnsListParams, ThreadTurnsListResponse, ThreadUnarchiveParams,
    ThreadUnarchiveResponse, ThreadUnsubscribeParams, ThreadUnsubscribeResponse, TurnError, call,
};
use loomd_store::{GitPatch, ListQuery, ThreadId};
use serde_json::json;

use crate::context::Context;
use crate::responder::Responder;

/// `thread/start`
pub(crate) async fn start(cx: &Context, mut params: ThreadStartParams, responder: Responder<call::ThreadStart>) {
    let request =
        StartThread { ephemeral: params.ephemeral.unwrap_or(false), overrides: ThreadOverrides::from(&mut params) };
    let reply = reply(responder, |opened| opened_as!(ThreadStartResponse, opened));
    cx.app.agent.start(request, caller(cx), reply);
}

/// `thread/resume`
pub(crate) async fn resume(cx: &Context, mut params: ThreadResumeParams, responder: Responder<call::ThreadResume>) {
    let request = ResumeThread {
        overrides: ThreadOverrides::from(&mut params),
        thread_id: params.thread_id,
        path: params.path,
        history: params.history,
        include_turns: !params.exclude_turns,
    };
    let reply = reply(responder, |opened| opened_as!(ThreadResumeResponse, opened));
    cx.app.agent.resume(request, caller(cx), reply).await;
}

/// `thread/fork`
pub(crate) async fn fork(cx: &Context, mut params: ThreadForkParams, responder: Responder<call::ThreadFork>) {
    let request = ForkThread {
        overrides: ThreadOverrides::from(&mut params),
        thread_id: params.thread_id,
        path: params.path,
        ephemeral: params.ephemeral,
    };
    let exclude_turns = params.exclude_turns;
    let reply = reply(responder, move |mut opened: Opened| {
        if exclude_turns {
            opened.thread.turns.clear();
        }
        opened_as!(ThreadForkResponse, opened)
    });
    cx.app.agent.fork(request, caller(cx), reply).await;
}

/// `thread/list`
pub(crate) async fn list(cx: &Context, params: ThreadListParams) -> Result<ThreadListResponse, RpcError> {
    let query = ListQuery::from_params(params, &cx.app.agent.default_provider())
        .map_err(|error| RpcError::invalid_request(error.to_string()))?;
    let (data, page) = cx.app.threads().list(query).await.map_err(wire_error)?;
    Ok(ThreadListResponse { data, next_cursor: page.next.map(|cursor| cursor.to_string()) })
}

/// `thread/loaded/list`
pub(crate) fn loaded_list(cx: &Context, params: ThreadLoadedListParams) -> Result<ThreadLoadedListResponse, RpcError> {
    let mut ids = cx.app.threads().loaded();
    if let Some(cursor) = params.cursor.filter(|_| !ids.is_empty()) {
        let after: ThreadId =
            cursor.parse().map_err(|_| RpcError::invalid_request(format!("invalid cursor: {cursor}")))?;
        ids.retain(|id| *id > after);
    }
    let limit = params.limit.map_or(usize::MAX, |limit| limit.max(1) as usize);
    let more = ids.len() > limit;
    ids.truncate(limit);
    let data: Vec<String> = ids.iter().map(ThreadId::to_string).collect();
    Ok(ThreadLoadedListResponse { next_cursor: data.last().filter(|_| more).cloned(), data })
}

/// `thread/read`
pub(crate) async fn read(cx: &Context, params: ThreadReadParams) -> Result<ThreadReadResponse, RpcError> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let thread =
        cx.app.threads().read(id, params.include_turns, &cx.app.agent.default_provider()).await.map_err(wire_error)?;
    Ok(ThreadReadResponse { thread })
}

/// `thread/turns/list`
pub(crate) async fn list_turns(
    cx: &Context,
    params: ThreadTurnsListParams,
) -> Result<ThreadTurnsListResponse, RpcError> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let request = PageRequest {
        cursor: params.cursor,
        limit: params.limit,
        direction: params.sort_direction.unwrap_or_default(),
    };
    let view = params.items_view.unwrap_or_default();
    cx.app.threads().turns_page(id, &request, view).await.map_err(wire_error)
}

/// `thread/items/list`
pub(crate) async fn list_items(
    cx: &Context,
    params: ThreadItemsListParams,
) -> Result<ThreadItemsListResponse, RpcError> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let request = PageRequest {
        cursor: params.cursor,
        limit: params.limit,
        direction: params.sort_direction.unwrap_or_default(),
    };
    cx.app.threads().items_page(id, &request, params.turn_id.as_deref()).await.map_err(wire_error)
}

/// `thread/delete`
pub(crate) async fn delete(cx: &Context, params: ThreadDeleteParams, responder: Responder<call::ThreadDelete>) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    cx.app.threads().delete(id, reply(responder, |()| ThreadDeleteResponse {})).await;
}

/// `thread/archive`
pub(crate) async fn archive(cx: &Context, params: ThreadArchiveParams, responder: Responder<call::ThreadArchive>) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    cx.app.threads().archive(id, reply(responder, |()| ThreadArchiveResponse {})).await;
}

/// `thread/unarchive`
pub(crate) async fn unarchive(
    cx: &Context,
    params: ThreadUnarchiveParams,
    responder: Responder<call::ThreadUnarchive>,
) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |thread| ThreadUnarchiveResponse { thread });
    cx.app.threads().unarchive(id, &cx.app.agent.default_provider(), reply).await;
}

/// `thread/unsubscribe`
pub(crate) async fn unsubscribe(
    cx: &Context,
    params: ThreadUnsubscribeParams,
    responder: Responder<call::ThreadUnsubscribe>,
) {
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |status| ThreadUnsubscribeResponse { status });
    cx.app.threads().unsubscribe(id, subscriber(cx), reply).await;
}

/// `thread/name/set`
pub(crate) async fn set_name(cx: &Context, params: ThreadSetNameParams, responder: Responder<call::ThreadNameSet>) {
    let name = params.name.trim();
    if name.is_empty() {
        return responder.answer(Err(RpcError::invalid_request("thread name must not be empty")));
    }
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |()| ThreadSetNameResponse {});
    cx.app.threads().rename(id, name.to_owned(), reply).await;
}

/// `thread/metadata/update`
pub(crate) async fn update_metadata(
    cx: &Context,
    params: ThreadMetadataUpdateParams,
) -> Result<ThreadMetadataUpdateResponse, RpcError> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let trimmed = |value: Option<Option<String>>| value.map(|value| value.map(|text| text.trim().to_owned()));
    let info = params.git_info.unwrap_or_default();
    let patch = GitPatch { sha: trimmed(info.sha), branch: trimmed(info.branch), origin_url: trimmed(info.origin_url) };
    if patch == GitPatch::default() {
        return Err(RpcError::invalid_request("gitInfo must include at least one field"));
    }
    let fields = [("sha", &patch.sha), ("branch", &patch.branch), ("originUrl", &patch.origin_url)];
    let blank = fields.iter().find(|(_, value)| matches!(value, Some(Some(text)) if text.is_empty()));
    let blank = blank.map(|(name, _)| Refusal::invalid(format!("gitInfo.{name} must not be empty")));
    let check = move || blank.map_or(Ok(()), Err);
    let thread =
        cx.app.threads().patch_git(id, patch, &cx.app.agent.default_provider(), check).await.map_err(wire_error)?;
    Ok(ThreadMetadataUpdateResponse { thread })
}

/// `thread/rollback`
pub(crate) async fn roll_back(cx: &Context, params: ThreadRollbackParams, responder: Responder<call::ThreadRollback>) {
    if params.num_turns == 0 {
        return responder.answer(Err(RpcError::invalid_request("numTurns must be >= 1")));
    }
    let Some((id, responder)) = identified(&params.thread_id, responder) else { return };
    let reply = reply(responder, |thread| ThreadRollbackResponse { thread });
    cx.app.threads().roll_back(id, params.num_turns, reply).await;
}

/// `thread/increment_elicitation`
pub(crate) async fn increment_elicitation(
    cx: &Context,
    params: ThreadIncrementElicitationParams,
) -> Result<ThreadIncrementElicitationResponse, RpcError> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let count = cx.app.threads().begin_elicitation(id).await.map_err(wire_error)?;
    Ok(ThreadIncrementElicitationResponse { count, paused: count > 0 })
}

/// `thread/decrement_elicitation`
pub(crate) async fn decrement_elicitation(
    cx: &Context,
    params: ThreadDecrementElicitationParams,
) -> Result<ThreadDecrementElicitationResponse, RpcError> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let count = cx.app.threads().end_elicitation(id).await.map_err(wire_error)?;
    Ok(ThreadDecrementElicitationResponse { count, paused: count > 0 })
}

/// The error that the wire has for a refusal.
pub(crate) fn wire_error(refusal: Refusal) -> RpcError {
    match refusal {
        Refusal::Invalid(message) => RpcError::invalid_request(message),
        Refusal::Failed(message) => RpcError::internal(message),
        Refusal::NotSteerable { message, turn_kind } => {
            let data = TurnError {
                message: message.clone(),
                codex_error_info: Some(CodexErrorInfo::ActiveTurnNotSteerable { turn_kind }),
                additional_details: None,
            };
            RpcError::invalid_request(message).with_data(serde_json::to_value(data).unwrap_or_default())
        }
        Refusal::RequirementsUnavailable { message, cause } => {
            RpcError::invalid_request(message).with_data(cause.data())
        }
        Refusal::InputTooLarge { chars } => RpcError::invalid_params(refusal.to_string()).with_data(json!({
            "input_error_code": "input_too_large", "max_chars": MAX_INPUT_CHARS, "actual_chars": chars,
        })),
    }
}

fn subscriber(cx: &Context) -> Subscriber {
    Subscriber(cx.connection.0)
}

pub(super) fn caller(cx: &Context) -> Caller {
    Caller { client: Arc::clone(&cx.client.identity), subscriber: subscriber(cx) }
}

/// An answer that is sent the moment it is given.
pub(super) fn reply<C: Call + 'static, T: 'static>(
    responder: Responder<C>,
    result: impl FnOnce(T) -> C::Result + Send + Sync + 'static,
) -> Reply<T> {
    Box::new(move |outcome| responder.answer(outcome.map(result).map_err(wire_error)))
}

/// The id of the thread that a request is about; a request with a wrong one is answered.
pub(super) fn identified<C: Call>(text: &str, responder: Responder<C>) -> Option<(ThreadId, Responder<C>)> {
    match parse_id(text) {
        Ok(id) => Some((id, responder)),
        Err(refusal) => {
            responder.answer(Err(wire_error(refusal)));
            None
        }
    }
}

/// The three ways to open a thread have results of their own, with the same fields.
macro_rules! opened_as {
    ($result:ident, $opened:expr) => {{
        let Opened { thread, settings } = $opened;
        $result {
            thread,
            model: settings.model,
            model_provider: settings.model_provider,
            service_tier: settings.service_tier,
            cwd: settings.cwd,
            approval_policy: settings.approval_policy,
            approvals_reviewer: settings.approvals_reviewer,
            sandbox: settings.sandbox,
            reasoning_effort: settings.reasoning_effort,
        }
    }};
}
use opened_as;
