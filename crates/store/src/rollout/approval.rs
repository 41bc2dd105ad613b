//! The record of an approval that has ended. It is for people who check later what was allowed: nothing is rebuilt from
//! it, and other programs that share the rollout skip its line.

use serde::{Deserialize, Serialize};

/// An approval that was decided or closed. The content of answers is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ApprovalAudit {
    pub approval_id: String,
    pub turn_id: String,
    pub item_id: String,
    /// The method of the server request.
    pub method: String,
    pub asked_at_ms: i64,
    /// `decided`, `expired` or `cancelled`.
    pub state: String,
    /// The decision in a word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<String>,
    pub decided_at_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<AuditedDecider>,
}

/// Who decided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct AuditedDecider {
    /// The number of the connection in its server process, or `deadline`.
    pub connection: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
}
