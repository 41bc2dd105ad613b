//! The facts that decide which tools are offered.

use loomd_config::{Feature, FeatureSet};

use crate::turn_cx::TurnCx;

/// Which agent the tools are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The agent of a thread that a client started.
    Main,
    /// A child agent.
    Child,
    Reviewer,
}

/// The facts that decide which tools are offered and can be called.
pub(crate) struct ToolScope<'a> {
    pub turn: &'a TurnCx,
    pub role: Role,
    /// The number of parents of the agent.
    pub depth: i32,
    pub features: FeatureSet,
}

impl ToolScope<'_> {
    pub fn has(&self, feature: Feature) -> bool {
        self.features.enabled(feature)
    }
}
