//! The headers of a model call.

use std::collections::BTreeMap;

use loomd_config::Feature;
use loomd_model::CallHeaders;
use loomd_protocol::ExperimentalFeatureStage;
use serde::{Serialize, Serializer};

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
    #[serde(skip_serializing_if = "Option::is_none")]
    turn_trigger: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_turn_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    root_turn_id: Option<&'a str>,
    #[serde(flatten)]
    given: Given<'a>,
}

/// The pairs of the client, without those that the server gives itself.
struct Given<'a>(&'a BTreeMap<String, String>);

/// The names that the server gives itself.
const OWN: &[&str] =
    &["session_id", "turn_id", "sandbox", "workspaces", "turn_trigger", "parent_turn_id", "root_turn_id"];

impl Serialize for Given<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter(|(name, _)| !OWN.contains(&name.as_str())))
    }
}

pub(super) fn headers(turn: &TurnTask) -> CallHeaders {
    let labels = &turn.progress.labels;
    let metadata = Metadata {
        session_id: &turn.scope.session_id,
        turn_id: &turn.cx.turn_id,
        sandbox: sandbox_name(&turn.cx.settings.sandbox),
        workspaces: turn.progress.workspaces.as_ref(),
        turn_trigger: labels.trigger.as_deref(),
        parent_turn_id: labels.parent_turn_id.as_deref(),
        root_turn_id: labels.root_turn_id.as_deref(),
        given: Given(&labels.metadata),
    };
    CallHeaders {
        session_id: turn.scope.session_id.clone(),
        turn_metadata: serde_json::to_string(&metadata).ok(),
        turn_state: turn.progress.turn_state.clone(),
        subagent: turn.scope.subagent.clone(),
        beta_features: beta_features(turn),
        trace: None,
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
