//! The headers of a model call.

use loomd_config::Feature;
use loomd_model::CallHeaders;
use loomd_protocol::ExperimentalFeatureStage;
use serde::Serialize;

use super::task::TurnTask;
use super::workspaces::Workspaces;
use crate::settings::sandbox_name;

#[derive(Serialize)]
struct Metadata<'a> {
    session_id: &'a str,
    turn_id: &'a str,
    sandbox: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspaces: Option<&'a Workspaces>,
}

pub(super) fn headers(turn: &TurnTask) -> CallHeaders {
    let metadata = Metadata {
        session_id: &turn.scope.session_id,
        turn_id: &turn.cx.turn_id,
        sandbox: sandbox_name(&turn.cx.settings.sandbox),
        workspaces: turn.progress.workspaces.as_ref(),
    };
    CallHeaders {
        session_id: turn.scope.session_id.clone(),
        turn_metadata: serde_json::to_string(&metadata).ok(),
        turn_state: turn.progress.turn_state.clone(),
        subagent: turn.scope.subagent.clone(),
        beta_features: beta_features(turn),
    }
}

fn beta_features(turn: &TurnTask) -> Option<String> {
    let features = turn.cx.profile.config.features;
    let enabled = Feature::ALL
        .iter()
        .filter(|feature| feature.stage() == ExperimentalFeatureStage::Beta && features.enabled(**feature));
    let names: Vec<_> = enabled.map(|feature| feature.name()).collect();
    (!names.is_empty()).then(|| names.join(","))
}
