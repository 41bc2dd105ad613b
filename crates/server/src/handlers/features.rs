//! `experimentalFeature/*`

use loomd_config::Feature;
use loomd_protocol::{
    ExperimentalFeature, ExperimentalFeatureEnablementSetParams, ExperimentalFeatureEnablementSetResponse,
    ExperimentalFeatureListParams, ExperimentalFeatureListResponse, Level, RpcError, call,
};

use crate::answer::{Handled, answer};
use crate::context::Context;
use crate::refusals::wire_error;

/// `experimentalFeature/list`
pub(crate) async fn list(
    cx: &Context,
    params: ExperimentalFeatureListParams,
) -> Handled<call::ExperimentalFeatureList> {
    let features = match &params.thread_id {
        Some(thread_id) => cx.app.threads().loaded_profile(thread_id).map_err(wire_error)?.config.features,
        None => {
            let loaded = loomd_config::load(&cx.app.sources.request());
            let features = loaded.and_then(|loaded| loaded.features());
            features.map_err(|error| RpcError::internal(format!("failed to reload config: {error}")))?
        }
    };
    let total = Feature::ALL.len();
    let start = match &params.cursor {
        None => 0,
        Some(cursor) => cursor.parse().map_err(|_| RpcError::invalid_request(format!("invalid cursor: {cursor}")))?,
    };
    if start > total {
        return Err(RpcError::invalid_request(format!("cursor {start} exceeds total feature flags {total}")));
    }
    let limit = params.limit.map_or(total, |limit| limit.max(1) as usize);
    let end = total.min(start.saturating_add(limit));
    let describe = |feature: &Feature| {
        let presentation = feature.presentation();
        ExperimentalFeature {
            name: feature.name().into(),
            stage: feature.stage(),
            display_name: presentation.map(|shown| shown.title.into()),
            description: presentation.map(|shown| shown.description.into()),
            announcement: presentation.map(|shown| shown.announcement.into()),
            enabled: features.enabled(*feature),
            default_enabled: feature.default_enabled(),
        }
    };
    answer(ExperimentalFeatureListResponse {
        data: Feature::ALL[start..end].iter().map(describe).collect(),
        next_cursor: (end < total).then(|| end.to_string()),
    })
}

/// `experimentalFeature/enablement/set`
pub(crate) async fn set_enablement(
    cx: &Context,
    params: ExperimentalFeatureEnablementSetParams,
) -> Handled<call::ExperimentalFeatureEnablementSet> {
    let mut enablement = params.enablement;
    // Newer clients are told what was switched, older ones what cannot be.
    if cx.client.level >= Level::V0_166 {
        enablement.retain(|name, _| Feature::find(name).is_some_and(|found| found.name() == name && is_free(found)));
        cx.app.sources.live.enablement.switch(&enablement);
        return answer(ExperimentalFeatureEnablementSetResponse { enablement });
    }
    cx.app.sources.live.enablement.set(&enablement).map_err(|error| RpcError::invalid_request(error.to_string()))?;
    answer(ExperimentalFeatureEnablementSetResponse { enablement })
}

/// Whether newer clients may switch a feature at run time.
fn is_free(feature: Feature) -> bool {
    loomd_config::features::SWITCHABLE.contains(&feature) || feature.name() == "memories"
}
