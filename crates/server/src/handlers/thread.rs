//! `thread/*`

use std::sync::Arc;

use loomd_agent::{
    Caller, EventId, ForkBoundary, ForkThread, InitialPage, MissedEvents, Opened, PageRequest, Presence, Refusal,
    Reply, ResumeThread, Resumed, StartThread, Subscriber, ThreadOverrides, parse_id,
};
use loomd_organiser::Error;
use loomd_protocol::{
    Call, Level, RpcError, SortDirection, ThreadArchiveParams, ThreadArchiveResponse, ThreadDecrementElicitationParams,
    ThreadDecrementElicitationResponse, ThreadDeleteParams, ThreadDeleteResponse, ThreadForkParams, ThreadForkResponse,
    ThreadIncrementElicitationParams, ThreadIncrementElicitationResponse, ThreadItemsListParams,
    ThreadLoadedListParams, ThreadLoadedListResponse, ThreadMetadataUpdateParams, ThreadMetadataUpdateResponse,
    ThreadReadParams, ThreadReadResponse, ThreadReplay, ThreadResumeParams, ThreadResumeResponse, ThreadRollbackParams,
    ThreadRollbackResponse, ThreadSetNameParams, ThreadSetNameResponse, ThreadStartParams, ThreadStartResponse,
    ThreadTurnsListParams, ThreadUnarchiveParams, ThreadUnarchiveResponse, ThreadUnsubscribeParams,
    ThreadUnsubscribeResponse, call,
};
use loomd_store::{GitPatch, RequestKey, ThreadId};

use super::organise::{add_facts_to, organiser, presence, reason, refused};
use super::projects;
use super::request_key::request_key;

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `thread/start`
pub(crate) async fn start(cx: &Context, mut params: ThreadStartParams) -> Handled<call::ThreadStart> {
    check_roots(params.runtime_workspace_roots.as_deref(), params.cwd.as_deref())?;
    if params.selected_capability_roots.as_ref().is_some_and(|roots| !roots.is_empty()) {
        return Err(RpcError::invalid_request("selectedCapabilityRoots is not supported yet"));
    }
    let ephemeral = params.ephemeral.unwrap_or(false);
    let key = request_key(call::ThreadStart::METHOD, params.idempotency_key.as_deref(), &params)?;
    let claimed = match &key {
        Some(key) => Some(cx.app.agent.claim(key).await.map_err(wire_error)?),
        None => None,
    };
    let claimed = match claimed {
        Some(claimed) if claimed.exists => {
            let (reply, answer) = cx.answer.reply(|opened| opened_as!(ThreadStartResponse, opened));
            cx.app.agent.reopen(claimed, caller(cx), reply).await;
            return Ok(answer);
        }
        claimed => claimed,
    };
    let id = claimed.as_ref().map(|claimed| claimed.id);
    // Before the thread exists: a project that does not exist starts no thread.
    let (id, project_id) = match params.project_id.take() {
        Some(project) => {
            let id = id.unwrap_or_else(ThreadId::new);
            if let Err(error) = assign_project(cx, id, Some(project.clone())).await {
                release(cx, key).await;
                return Err(error);
            }
            (Some(id), Some(project))
        }
        None => (id, None),
    };
    let request = StartThread {
        id,
        project_id,
        ephemeral,
        environments: params.environments.take(),
        overrides: ThreadOverrides::from(&mut params),
    };
    let (reply, answer) = cx.answer.reply(|opened| opened_as!(ThreadStartResponse, opened));
    let app = Arc::clone(&cx.app);
    let reply: Reply<Opened> = Box::new(move |opened| {
        let is_refused = opened.is_err();
        reply(opened);
        if let Some(key) = key.filter(|_| is_refused) {
            tokio::spawn(async move { app.agent.release(key).await });
        }
    });
    cx.app.agent.start(request, caller(cx), reply);
    drop(claimed);
    Ok(answer)
}

/// Releases the claim of a request that is refused.
async fn release(cx: &Context, key: Option<RequestKey>) {
    if let Some(key) = key {
        cx.app.agent.release(key).await;
    }
}

/// Puts a thread into a project or out of it. Returns whether that changed anything.
async fn assign_project(cx: &Context, id: ThreadId, project: Option<String>) -> Result<bool, RpcError> {
    let assigned = organiser(cx).run(move |organiser| organiser.assign_project(id, project.as_deref())).await;
    assigned.map_err(|error| match error {
        Error::ProjectNotFound(_) => RpcError::invalid_request(error.to_string()).with_data(reason("projectNotFound")),
        error => refused(error),
    })
}

/// `thread/resume`
pub(crate) async fn resume(cx: &Context, mut params: ThreadResumeParams) -> Handled<call::ThreadResume> {
    check_roots(params.runtime_workspace_roots.as_deref(), params.cwd.as_deref())?;
    let initial_page = params.initial_turns_page.take().map(|asked| InitialPage {
        request: PageRequest { cursor: None, limit: asked.limit, direction: asked.sort_direction.unwrap_or_default() },
        view: asked.items_view.unwrap_or_default(),
    });
    let request = ResumeThread {
        overrides: ThreadOverrides::from(&mut params),
        thread_id: params.thread_id,
        path: params.path,
        history: params.history,
        include_turns: !params.exclude_turns,
        initial_page,
        after_event: params.after_event.as_deref().map(parse_event_id).transpose()?,
    };
    let event_ids = cx.client.event_ids;
    let shows_open = event_ids || cx.client.is_node;
    let (reply, answer) = cx.answer.reply(move |Resumed { mut opened, pages }| {
        let open_item_ids = if shows_open { std::mem::take(&mut opened.open_items) } else { Vec::new() };
        let collaboration_mode = Some(opened.settings.collaboration_mode());
        let event_id = opened.event_id.filter(|_| event_ids).map(|id| id.to_string());
        let (replay, replay_reason) = match opened.missed {
            Some(MissedEvents::Follow) => (Some(ThreadReplay::Complete), None),
            Some(MissedEvents::Unknown(reason)) => (Some(ThreadReplay::Reset), Some(reason)),
            None => (None, None),
        };
        opened_as!(
            ThreadResumeResponse,
            opened,
            collaboration_mode: collaboration_mode,
            initial_turns_page: pages.initial,
            turns_backwards_cursor: pages.turns_backwards_cursor,
            items_backwards_cursor: pages.items_backwards_cursor,
            event_id: event_id,
            replay: replay,
            replay_reason: replay_reason,
            open_item_ids: open_item_ids
        )
    });
    cx.app.agent.resume(request, caller(cx), reply).await;
    Ok(answer)
}

/// `thread/fork`
pub(crate) async fn fork(cx: &Context, mut params: ThreadForkParams) -> Handled<call::ThreadFork> {
    check_roots(params.runtime_workspace_roots.as_deref(), params.cwd.as_deref())?;
    let key = request_key(call::ThreadFork::METHOD, params.idempotency_key.as_deref(), &params)?;
    let boundary = match (params.last_turn_id.take(), params.before_turn_id.take()) {
        (Some(_), Some(_)) => {
            return Err(RpcError::invalid_request("`beforeTurnId` cannot be combined with `lastTurnId`"));
        }
        (Some(last), None) => Some(ForkBoundary::Last(last)),
        (None, before) => before.map(ForkBoundary::Before),
    };
    let request = ForkThread {
        overrides: ThreadOverrides::from(&mut params),
        thread_id: params.thread_id,
        path: params.path,
        boundary,
        ephemeral: params.ephemeral,
        attach: params.attach_to_source,
        defer_goal: params.defer_goal_continuation,
        key,
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

/// `thread/loaded/list`
pub(crate) async fn loaded_list(cx: &Context, params: ThreadLoadedListParams) -> Handled<call::ThreadLoadedList> {
    let mut ids = cx.app.threads().loaded();
    if let Some(nodes) = &cx.app.nodes {
        ids.extend(nodes.elsewhere.ids());
        ids.sort_unstable();
        ids.dedup();
    }
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
    let read = cx.app.threads().read_at(id, params.include_turns, &cx.app.agent.default_provider()).await;
    let (mut thread, event_id) = read.map_err(wire_error)?;
    let event_id = event_id.filter(|_| cx.client.event_ids).map(|id| id.to_string());
    let read_state = add_facts_to(cx, &mut thread).await;
    let is_stored = presence(cx, id).await? == Presence::Stored;
    answer(ThreadReadResponse { thread, read_state: read_state.filter(|_| is_stored), event_id })
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
        direction: params.sort_direction.unwrap_or(SortDirection::Asc),
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
    // In the older release the last one to leave ends the turn.
    cx.app.threads().unsubscribe(id, subscriber(cx), cx.client.level < Level::V0_166, reply).await;
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
    let project = params.project_id;
    let info = params.git_info.unwrap_or_default();
    let patch = GitPatch { sha: trimmed(info.sha), branch: trimmed(info.branch), origin_url: trimmed(info.origin_url) };
    if patch == GitPatch::default() && project.is_none() {
        return Err(RpcError::invalid_request("gitInfo must include at least one field"));
    }
    let fields = [("sha", &patch.sha), ("branch", &patch.branch), ("originUrl", &patch.origin_url)];
    let blank = fields.iter().find(|(_, value)| matches!(value, Some(Some(text)) if text.is_empty()));
    let blank = blank.map(|(name, _)| Refusal::invalid(format!("gitInfo.{name} must not be empty")));
    let check = move || blank.map_or(Ok(()), Err);
    let mut thread =
        cx.app.threads().patch_git(id, patch, &cx.app.agent.default_provider(), check).await.map_err(wire_error)?;
    if let Some(project) = project
        && assign_project(cx, id, project.clone()).await?
    {
        projects::thread_updated(cx, id, project).await;
    }
    add_facts_to(cx, &mut thread).await;
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

fn parse_event_id(text: &str) -> Result<EventId, RpcError> {
    text.parse().map_err(|_| {
        RpcError::invalid_request(
            "invalid value for `afterEvent`: expected the `eventId` of an event, a decimal number",
        )
    })
}

/// Refuses workspace roots other than the working directory, which is the only one that there is.
fn check_roots(roots: Option<&[String]>, cwd: Option<&str>) -> Result<(), RpcError> {
    let other = |roots: &[String]| roots.iter().any(|root| cwd != Some(root.as_str()));
    match roots {
        Some(roots) if other(roots) => {
            Err(RpcError::invalid_request("runtimeWorkspaceRoots other than the cwd are not supported yet"))
        }
        _ => Ok(()),
    }
}

/// The three ways to open a thread have results of their own, with the same fields.
macro_rules! opened_as {
    ($result:ident, $opened:expr $(, $field:ident: $value:expr)*) => {{
        let Opened { thread, settings, instruction_sources, .. } = $opened;
        $result {
            thread,
            instruction_sources: instruction_sources.to_vec(),
            runtime_workspace_roots: vec![settings.cwd.clone()],
            active_permission_profile: settings.profile,
            multi_agent_mode: Default::default(),
            disabled_plugin_ids: Vec::new(),
            $($field: $value,)*
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
