//! `model/list` and `collaborationMode/list`

use loomd_protocol::{
    CollaborationModeListParams, CollaborationModeListResponse, CollaborationModeMask, ModeKind, ModelListParams,
    ModelListResponse, ReasoningEffort, RpcError, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;

/// `model/list`
pub(crate) async fn list(cx: &Context, params: ModelListParams) -> Handled<call::ModelList> {
    let loaded = loomd_config::load(&cx.app.sources.request()).and_then(|loaded| loomd_config::resolve(&loaded));
    let path = loaded.ok().and_then(|settings| settings.config.model_catalog_json);
    let catalogue = cx.app.agent.catalogue(path.as_ref()).map_err(|error| RpcError::internal(error.to_string()))?;
    let mut data = catalogue.list(params.include_hidden.unwrap_or(false));
    let total = data.len();
    let start = match params.cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| RpcError::invalid_request(format!("invalid cursor: {cursor}")))?,
    };
    if start > total {
        return Err(RpcError::invalid_request(format!("cursor {start} exceeds total models {total}")));
    }
    let limit = params.limit.map_or(total, |limit| limit.max(1) as usize);
    let end = start.saturating_add(limit).min(total);
    let next_cursor = (end < total).then(|| end.to_string());
    data.truncate(end);
    data.drain(..start);
    answer(ModelListResponse { data, next_cursor })
}

/// `collaborationMode/list`
pub(crate) async fn collaboration_modes(
    _: &Context,
    _: CollaborationModeListParams,
) -> Handled<call::CollaborationModeList> {
    let mode = |name: &str, mode, effort: Option<ReasoningEffort>| CollaborationModeMask {
        name: name.into(),
        mode: Some(mode),
        model: None,
        reasoning_effort: Some(effort),
    };
    answer(CollaborationModeListResponse {
        data: vec![
            mode("Plan", ModeKind::Plan, Some(ReasoningEffort::Medium)),
            mode("Default", ModeKind::Default, None),
        ],
    })
}
