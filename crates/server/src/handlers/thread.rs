//! `thread/*`

use std::collections::HashSet;

use loomd_agent::{NewThread, Opened, PageRequest, Refusal, Reply, Source, Subscriber};
use loomd_model::complete_schema;
use loomd_protocol::{
    Call, CodexErrorInfo, DynamicTool, DynamicToolSpec, RpcError, ThreadArchiveParams, ThreadArchiveResponse,
    ThreadDecrementElicitationParams, ThreadDecrementElicitationResponse, ThreadDeleteParams, ThreadDeleteResponse,
    ThreadForkParams, ThreadForkResponse, ThreadIncrementElicitationParams, ThreadIncrementElicitationResponse,
    ThreadItemsListParams, ThreadItemsListResponse, ThreadListParams, ThreadListResponse, ThreadLoadedListParams,
    ThreadLoadedListResponse, ThreadMetadataUpdateParams, ThreadMetadataUpdateResponse, ThreadReadParams,
    ThreadReadResponse, ThreadResumeParams, ThreadResumeResponse, ThreadRollbackParams, ThreadRollbackResponse,
    ThreadSetNameParams, ThreadSetNameResponse, ThreadStartParams, ThreadStartResponse, ThreadTurnsListParams,
    ThreadTurnsListResponse, ThreadUnarchiveParams, ThreadUnarchiveResponse, ThreadUnsubscribeParams,
    ThreadUnsubscribeResponse, TurnError, call,
};
use loomd_store::{GitPatch, ListQuery, ThreadId};

use crate::dispatch::Context;
use crate::responder::Responder;
use crate::thread_settings::{Restore, ThreadOverrides, resolver};

/// `thread/start`
pub(crate) async fn start(cx: &Context, mut params: ThreadStartParams, responder: Responder<call::ThreadStart>) {
    if let Err(error) = check_tools(params.dynamic_tools.as_deref().unwrap_or_default()) {
        return responder.answer(Err(error));
    }
    let ephemeral = params.ephemeral.unwrap_or(false);
    let resolve = resolver(cx, ThreadOverrides::from(&mut params), Restore::Nothing);
    match resolve(None) {
        Ok(resolved) => {
            let reply = reply(responder, |opened| opened_as!(ThreadStartResponse, opened));
            cx.app.threads().start(NewThread { resolved, ephemeral }, subscriber(cx), reply);
        }
        Err(refusal) => responder.answer(Err(wire_error(refusal))),
    }
}

/// What is wrong with the tools that a client brings.
fn check_tools(specs: &[DynamicToolSpec]) -> Result<(), RpcError> {
    let tools = specs.iter().flat_map(|spec| match spec {
        DynamicToolSpec::Function(tool) => std::slice::from_ref(tool),
        DynamicToolSpec::Namespace(namespace) => &namespace.tools,
    });
    let mut seen = HashSet::new();
    for DynamicTool { name, input_schema, .. } in tools {
        let problem = if name.trim().is_empty() {
            "dynamic tool name must not be empty".into()
        } else if name.trim() != name {
            format!("dynamic tool name has leading/trailing whitespace: {name}")
        } else if name == "mcp" || name.starts_with("mcp__") {
            format!("dynamic tool name is reserved: {name}")
        } else if !seen.insert(name) {
            format!("duplicate dynamic tool name: {name}")
        } else if let Err(problem) = complete_schema(input_schema) {
            format!("dynamic tool input schema is not supported for {name}: {problem}")
        } else {
            continue;
        };
        return Err(RpcError::invalid_request(problem));
    }
    Ok(())
}

/// `thread/resume`
pub(crate) async fn resume(cx: &Context, mut params: ThreadResumeParams, responder: Responder<call::ThreadResume>) {
    let threads = cx.app.threads();
    let id = parse_id(&params.thread_id);
    if let Ok(id) = id
        && let Err(refusal) = threads.refuse_mismatch(id, params.history.is_some(), params.path.as_deref())
    {
        return responder.answer(Err(wire_error(refusal)));
    }
    let (history, path, turns) = (params.history.take(), params.path.take(), !params.exclude_turns);
    let resolve = resolver(cx, ThreadOverrides::from(&mut params), Restore::Model);
    let reply = reply(responder, |opened| opened_as!(ThreadResumeResponse, opened));
    match (history, path, id) {
        (Some(items), _, _) => threads.resume_history(items, resolve, subscriber(cx), reply).await,
        (None, Some(path), _) => threads.resume(Source::Path(path.into()), turns, resolve, subscriber(cx), reply).await,
        (None, None, Ok(id)) => threads.resume(Source::Id(id), turns, resolve, subscriber(cx), reply).await,
        (None, None, Err(refusal)) => reply(Err(refusal)),
    }
}

/// `thread/fork`
pub(crate) async fn fork(cx: &Context, mut params: ThreadForkParams, responder: Responder<call::ThreadFork>) {
    let source = match (params.path.take(), parse_id(&params.thread_id)) {
        (Some(path), _) => Source::Path(path.into()),
        (None, Ok(id)) => Source::Id(id),
        (None, Err(refusal)) => return responder.answer(Err(wire_error(refusal))),
    };
    let ephemeral = params.ephemeral;
    let resolve = resolver(cx, ThreadOverrides::from(&mut params), Restore::Nothing);
    let exclude_turns = params.exclude_turns;
    let reply = reply(responder, move |mut opened: Opened| {
        if exclude_turns {
            opened.thread.turns.clear();
        }
        opened_as!(ThreadForkResponse, opened)
    });
    cx.app.threads().fork(source, ephemeral, resolve, subscriber(cx), reply).await;
}

/// `thread/list`
pub(crate) async fn list(cx: &Context, params: ThreadListParams) -> Result<ThreadListResponse, RpcError> {
    let query =
        ListQuery::from_params(params, &provider(cx)).map_err(|error| RpcError::invalid_request(error.to_string()))?;
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
    let thread = cx.app.threads().read(id, params.include_turns, &provider(cx)).await.map_err(wire_error)?;
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
    cx.app.threads().unarchive(id, &provider(cx), reply).await;
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
    let thread = cx.app.threads().patch_git(id, patch, &provider(cx), check).await.map_err(wire_error)?;
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

pub(crate) fn parse_id(text: &str) -> Result<ThreadId, Refusal> {
    text.parse().map_err(|error| Refusal::invalid(format!("invalid thread id: {error}")))
}

/// The provider of threads that did not record theirs: the configured one.
pub(crate) fn provider(cx: &Context) -> String {
    cx.app.default_provider.get(&cx.app.sources)
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
    }
}

pub(super) fn subscriber(cx: &Context) -> Subscriber {
    Subscriber(cx.connection.0)
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
