//! `project/*`

use std::collections::HashSet;

use loomd_agent::Presence;
use loomd_organiser::{Created, NewProject, Project, ProjectChange};
use loomd_protocol::{
    Project as WireProject, ProjectChangeType, ProjectChangedNotification, ProjectCreateParams, ProjectCreateResponse,
    ProjectDeleteParams, ProjectDeleteResponse, ProjectImportParams, ProjectImportResponse, ProjectListParams,
    ProjectListResponse, ProjectMoveParams, ProjectMoveResponse, ProjectReadParams, ProjectReadResponse,
    ProjectSortKey, ProjectUpdateParams, ProjectUpdateResponse, RpcError, ServerNotification, SortDirection,
    ThreadProjectUpdatedNotification, call,
};
use loomd_store::{ThreadId, page_limit};
use serde::{Deserialize, Serialize};

use super::organise::{presence, run, thread_not_found};
use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `project/create`: a key that was used before creates nothing.
pub(crate) async fn create(cx: &Context, params: ProjectCreateParams) -> Handled<call::ProjectCreate> {
    let ProjectCreateParams { idempotency_key, name, roots, metadata } = params;
    let new = NewProject { key: idempotency_key, name, roots, metadata: metadata.unwrap_or_default() };
    let (project, replayed) = make(cx, new, Vec::new()).await?;
    answer(ProjectCreateResponse { project, replayed })
}

/// `project/import`: creates a project with threads, or nothing.
pub(crate) async fn import(cx: &Context, params: ProjectImportParams) -> Handled<call::ProjectImport> {
    let ProjectImportParams { idempotency_key, name, roots, metadata, threads } = params;
    let mut ids: Vec<ThreadId> = Vec::new();
    let mut seen = HashSet::new();
    for text in threads.unwrap_or_default() {
        let id: ThreadId = text.parse().map_err(|_| thread_not_found(&text, RpcError::INVALID_PARAMS))?;
        if !seen.insert(id) {
            return Err(RpcError::invalid_params(format!("duplicate thread id: {text}")));
        }
        if presence(cx, id).await? != Presence::Stored {
            return Err(thread_not_found(&text, RpcError::INVALID_PARAMS));
        }
        ids.push(id);
    }
    let new = NewProject { key: idempotency_key, name, roots, metadata: metadata.unwrap_or_default() };
    let (project, replayed) = make(cx, new, ids).await?;
    answer(ProjectImportResponse { project, replayed })
}

async fn make(cx: &Context, new: NewProject, threads: Vec<ThreadId>) -> Result<(WireProject, bool), RpcError> {
    let Created { project, replayed, assigned } =
        run(cx, move |organiser| organiser.create_project(new, &threads)).await?;
    if !replayed {
        changed(cx, &project.id, ProjectChangeType::Created).await;
        for thread in assigned {
            thread_updated(cx, thread, Some(project.id.clone())).await;
        }
    }
    Ok((wire(cx, project).await?, replayed))
}

/// `project/read`
pub(crate) async fn read(cx: &Context, params: ProjectReadParams) -> Handled<call::ProjectRead> {
    let project = run(cx, move |organiser| organiser.project(&params.project_id)).await?;
    answer(ProjectReadResponse { project: wire(cx, project).await? })
}

/// `project/update`: replaces what is named.
pub(crate) async fn update(cx: &Context, params: ProjectUpdateParams) -> Handled<call::ProjectUpdate> {
    let ProjectUpdateParams { project_id, name, roots, metadata } = params;
    let change = ProjectChange { name, roots, metadata };
    let (project, is_changed) = run(cx, move |organiser| organiser.update_project(&project_id, change)).await?;
    if is_changed {
        changed(cx, &project.id, ProjectChangeType::Updated).await;
    }
    answer(ProjectUpdateResponse { project: wire(cx, project).await? })
}

/// `project/move`
pub(crate) async fn move_project(cx: &Context, params: ProjectMoveParams) -> Handled<call::ProjectMove> {
    let ProjectMoveParams { project_id, before_project_id } = params;
    let id = project_id.clone();
    run(cx, move |organiser| organiser.move_project(&project_id, before_project_id.as_deref())).await?;
    changed(cx, &id, ProjectChangeType::Updated).await;
    answer(ProjectMoveResponse {})
}

/// `project/delete`: its threads stay.
pub(crate) async fn delete(cx: &Context, params: ProjectDeleteParams) -> Handled<call::ProjectDelete> {
    let id = params.project_id.clone();
    let threads = run(cx, move |organiser| organiser.delete_project(&params.project_id)).await?;
    changed(cx, &id, ProjectChangeType::Deleted).await;
    for thread in threads {
        thread_updated(cx, thread, None).await;
    }
    answer(ProjectDeleteResponse {})
}

/// The place of a project in a list: its key, then its position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Anchor {
    sort: ProjectSortKey,
    direction: SortDirection,
    recency: Option<i64>,
    position: i64,
}

/// `project/list`
pub(crate) async fn list(cx: &Context, params: ProjectListParams) -> Handled<call::ProjectList> {
    let ProjectListParams { sort_key, sort_direction, cursor, limit } = params;
    if sort_direction.is_some() && sort_key.is_none() {
        return Err(RpcError::invalid_params("sortDirection requires sortKey"));
    }
    let sort = sort_key.unwrap_or(ProjectSortKey::Position);
    let direction = sort_direction.unwrap_or(match sort {
        ProjectSortKey::Position => SortDirection::Asc,
        ProjectSortKey::RecencyAt => SortDirection::Desc,
    });
    let bad = || RpcError::invalid_params("invalid project cursor: malformed or mismatched sort anchor");
    let after: Option<Anchor> = cursor.map(|text| serde_json::from_str(&text).map_err(|_| bad())).transpose()?;
    if after.as_ref().is_some_and(|after| (after.sort, after.direction) != (sort, direction)) {
        return Err(bad());
    }
    let mut projects = Vec::new();
    for project in run(cx, |organiser| organiser.projects()).await? {
        projects.push(wire(cx, project).await?);
    }
    let anchor = |project: &WireProject| Anchor {
        sort,
        direction,
        recency: project.recency_at.filter(|_| sort == ProjectSortKey::RecencyAt),
        position: project.position,
    };
    projects.sort_by(|a, b| order(&anchor(a), &anchor(b)));
    if let Some(after) = after {
        projects.retain(|project| order(&after, &anchor(project)).is_lt());
    }
    let limit = page_limit(limit);
    let more = projects.len() > limit;
    projects.truncate(limit);
    let next = projects.last().filter(|_| more).and_then(|last| serde_json::to_string(&anchor(last)).ok());
    answer(ProjectListResponse { data: projects, next_cursor: next })
}

/// The order of two places of the same list. Projects without a time are last either way.
fn order(a: &Anchor, b: &Anchor) -> std::cmp::Ordering {
    let turned = |order: std::cmp::Ordering| if a.direction == SortDirection::Desc { order.reverse() } else { order };
    let missing = a.recency.is_none().cmp(&b.recency.is_none());
    missing.then(turned(a.recency.cmp(&b.recency))).then(turned(a.position.cmp(&b.position)))
}

/// A project as clients see it.
async fn wire(cx: &Context, project: Project) -> Result<WireProject, RpcError> {
    let id = project.id.clone();
    let threads = run(cx, move |organiser| organiser.project_threads(&id)).await?;
    let recency_at = cx.app.threads().latest_change(threads).await.map_err(wire_error)?;
    let Project { id, name, roots, metadata, position, created_at, updated_at } = project;
    Ok(WireProject { id, name, roots, metadata, position, created_at, updated_at, recency_at })
}

async fn changed(cx: &Context, id: &str, change_type: ProjectChangeType) {
    let notification = ProjectChangedNotification { project_id: id.into(), change_type };
    cx.app.broadcast(ServerNotification::ProjectChanged(notification)).await;
}

/// Notifies that a thread's project changed.
pub(super) async fn thread_updated(cx: &Context, thread: ThreadId, project_id: Option<String>) {
    let notification = ThreadProjectUpdatedNotification { thread_id: thread.to_string(), project_id };
    cx.app.broadcast(ServerNotification::ThreadProjectUpdated(notification)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projects_without_a_time_are_last_and_the_later_ones_first() {
        let anchor = |recency, position| Anchor {
            sort: ProjectSortKey::RecencyAt,
            direction: SortDirection::Desc,
            recency,
            position,
        };
        let mut places = [anchor(None, 0), anchor(Some(5), 1), anchor(None, 2), anchor(Some(9), 3)];
        places.sort_by(order);
        let positions: Vec<i64> = places.iter().map(|place| place.position).collect();
        assert_eq!(positions, [3, 1, 2, 0]);
    }
}
