//! `thread/*`

use std::sync::Arc;

use loomd_agent::{
    Caller, ForkThread, Opened, PageRequest, Refusal, ResumeThread, StartThread, Subscriber, ThreadOverrides, parse_id,
};
use loomd_protocol::{
    RpcError, ThreadArchiveParams, ThreadArchiveResponse, ThreadDecrementElicitationParams,
    ThreadDecrementElicitationResponse, ThreadDeleteParams, ThreadDeleteResponse, ThreadForkParams, ThreadForkResponse,
    ThreadIncrementElicitationParams, ThreadIncrementElicitationResponse, ThreadItemsListParams, ThreadListParams,
    ThreadListResponse, ThreadLoadedListParams, ThreadLoadedListResponse, ThreadMetadataUpdateParams,
    ThreadMetadataUpdateResponse, ThreadReadParams, ThreadReadResponse, ThreadResumeParams, ThreadResumeResponse,
    ThreadRollbackParams, ThreadRollbackResponse, ThreadSetNameParams, ThreadSetNameResponse, ThreadStartParams,
    ThreadStartResponse, ThreadTurnsListParams, ThreadUnarchiveParams, ThreadUnarchiveResponse,
    ThreadUnsubscribeParams, ThreadUnsubscribeResponse, call,
};
use loomd_store::{GitPatch, ListQuery, ThreadId};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/start`
pub(crate) async fn start(cx: &Context, mut params: ThreadStartParams) -> Handled<call::ThreadStart> {
    let request =
        StartThread { ephemeral: params.ephemeral.unwrap_or(false), overrides: ThreadOverrides::from(&mut params) };
    let (reply, answer) = cx.answer.reply(|opened| opened_as!(ThreadStartResponse, opened));
    cx.app.agent.start(request, caller(cx), reply);
    Ok(answer)
}

/// `thread/resume`
pub(crate) async fn resume(cx: &Context, mut params: ThreadResumeParams) -> Handled<call::ThreadResume> {
    let request = ResumeThread {
        overrides: ThreadOverrides::from(&mut params),
        thread_id: params.thread_id,
        path: params.path,
        history: params.history,
        include_turns: !params.exclude_turns,
    };
    let (reply, answer) = cx.answer.reply(|opened| opened_as!(ThreadResumeResponse, opened));
    cx.app.agent.resume(request, caller(cx), reply).await;
    Ok(answer)
}

/// `thread/fork`
pub(crate) async fn fork(cx: &Context, mut params: ThreadForkParams) -> Handled<call::ThreadFork> {
    let request = ForkThread {
        overrides: ThreadOverrides::from(&mut params),
        thread_id: params.thread_id,
        path: params.path,
        ephemeral: params.ephemeral,
    };
    let exclude_turns = params.exclude_turns;
    let (reply, answer) = cx.answer.reply(move |mut opened: Opened| {
        if exclude_turns {
            opened.thread.turns.clear();
        }
        opened_as!(ThreadForkResponse, opened)
    });
    cx.app.agent.fork(request, caller(cx), reply).await;
    Ok(answer)
}

/// `thread/list`
pub(crate) async fn list(cx: &Context, params: ThreadListParams) -> Handled<call::ThreadList> {
    let query = ListQuery::from_params(params, &cx.app.agent.default_provider())
        .map_err(|error| RpcError::invalid_request(error.to_string()))?;
    let (data, page) = cx.app.threads().list(query).await.map_err(wire_error)?;
    answer(ThreadListResponse { data, next_cursor: page.next.map(|cursor| cursor.to_string()) })
}

/// `thread/loaded/list`
pub(crate) async fn loaded_list(cx: &Context, params: ThreadLoadedListParams) -> Handled<call::ThreadLoadedList> {
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
    answer(ThreadLoadedListResponse { next_cursor: data.last().filter(|_| more).cloned(), data })
}

/// `thread/read`
pub(crate) async fn read(cx: &Context, params: ThreadReadParams) -> Handled<call::ThreadRead> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let thread =
        cx.app.threads().read(id, params.include_turns, &cx.app.agent.default_provider()).await.map_err(wire_error)?;
    answer(ThreadReadResponse { thread })
}

/// `thread/turns/list`
pub(crate) async fn list_turns(cx: &Context, params: ThreadTurnsListParams) -> Handled<call::ThreadTurnsList> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let request = PageRequest {
        cursor: params.cursor,
        limit: params.limit,
        direction: params.sort_direction.unwrap_or_default(),
    };
    let view = params.items_view.unwrap_or_default();
    answer(cx.app.threads().turns_page(id, &request, view).await.map_err(wire_error)?)
}

/// `thread/items/list`
pub(crate) async fn list_items(cx: &Context, params: ThreadItemsListParams) -> Handled<call::ThreadItemsList> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let request = PageRequest {
        cursor: params.cursor,
        limit: params.limit,
        direction: params.sort_direction.unwrap_or_default(),
    };
    answer(cx.app.threads().items_page(id, &request, params.turn_id.as_deref()).await.map_err(wire_error)?)
}

/// `thread/delete`
pub(crate) async fn delete(cx: &Context, params: ThreadDeleteParams) -> Handled<call::ThreadDelete> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadDeleteResponse {});
    cx.app.threads().delete(id, reply).await;
    Ok(answer)
}

/// `thread/archive`
pub(crate) async fn archive(cx: &Context, params: ThreadArchiveParams) -> Handled<call::ThreadArchive> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadArchiveResponse {});
    cx.app.threads().archive(id, reply).await;
    Ok(answer)
}

/// `thread/unarchive`
pub(crate) async fn unarchive(cx: &Context, params: ThreadUnarchiveParams) -> Handled<call::ThreadUnarchive> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|thread| ThreadUnarchiveResponse { thread });
    cx.app.threads().unarchive(id, &cx.app.agent.default_provider(), reply).await;
    Ok(answer)
}

/// `thread/unsubscribe`
pub(crate) async fn unsubscribe(cx: &Context, params: ThreadUnsubscribeParams) -> Handled<call::ThreadUnsubscribe> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|status| ThreadUnsubscribeResponse { status });
    cx.app.threads().unsubscribe(id, subscriber(cx), reply).await;
    Ok(answer)
}

/// `thread/name/set`
pub(crate) async fn set_name(cx: &Context, params: ThreadSetNameParams) -> Handled<call::ThreadNameSet> {
    let name = params.name.trim();
    if name.is_empty() {
        return Err(RpcError::invalid_request("thread name must not be empty"));
    }
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|()| ThreadSetNameResponse {});
    cx.app.threads().rename(id, name.to_owned(), reply).await;
    Ok(answer)
}

/// `thread/metadata/update`
pub(crate) async fn update_metadata(
    cx: &Context,
    params: ThreadMetadataUpdateParams,
) -> Handled<call::ThreadMetadataUpdate> {
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
    answer(ThreadMetadataUpdateResponse { thread })
}

/// `thread/rollback`
pub(crate) async fn roll_back(cx: &Context, params: ThreadRollbackParams) -> Handled<call::ThreadRollback> {
    if params.num_turns == 0 {
        return Err(RpcError::invalid_request("numTurns must be >= 1"));
    }
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let (reply, answer) = cx.answer.reply(|thread| ThreadRollbackResponse { thread });
    cx.app.threads().roll_back(id, params.num_turns, reply).await;
    Ok(answer)
}

/// `thread/increment_elicitation`
pub(crate) async fn increment_elicitation(
    cx: &Context,
    params: ThreadIncrementElicitationParams,
) -> Handled<call::ThreadIncrementElicitation> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let count = cx.app.threads().begin_elicitation(id).await.map_err(wire_error)?;
    answer(ThreadIncrementElicitationResponse { count, paused: count > 0 })
}

/// `thread/decrement_elicitation`
pub(crate) async fn decrement_elicitation(
    cx: &Context,
    params: ThreadDecrementElicitationParams,
) -> Handled<call::ThreadDecrementElicitation> {
    let id = parse_id(&params.thread_id).map_err(wire_error)?;
    let count = cx.app.threads().end_elicitation(id).await.map_err(wire_error)?;
    answer(ThreadDecrementElicitationResponse { count, paused: count > 0 })
}

fn subscriber(cx: &Context) -> Subscriber {
    Subscriber(cx.connection.0)
}

pub(super) fn caller(cx: &Context) -> Caller {
    Caller { client: Arc::clone(&cx.client.identity), subscriber: subscriber(cx) }
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
