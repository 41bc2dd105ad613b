//! What the rollout and the ledger say about an approval that has ended.

use loomd_protocol::JsonValue;
use loomd_store::StoredApproval;
use loomd_store::rollout::{ApprovalAudit, AuditedDecider};

/// A decision in a word, for records that must not have its content.
pub(crate) fn decision_word(decision: &JsonValue) -> String {
    let members = match decision {
        JsonValue::String(word) => return word.clone(),
        JsonValue::Object(members) => members,
        _ => return String::new(),
    };
    if let Some(JsonValue::String(action)) = members.get("action") {
        return action.clone();
    }
    if let Some(permissions) = members.get("permissions") {
        let is_empty = permissions.as_object().is_none_or(|granted| granted.values().all(JsonValue::is_null));
        return if is_empty { "decline" } else { "accept" }.into();
    }
    if let Some(answers) = members.get("answers") {
        return if answers.as_object().is_none_or(|answers| answers.is_empty()) { "decline" } else { "answer" }.into();
    }
    members.keys().next().cloned().unwrap_or_default()
}

/// The record of an approval that has ended; `None` while it is open.
pub(crate) fn approval_audit(approval: &StoredApproval) -> Option<ApprovalAudit> {
    let outcome = approval.outcome.as_ref()?;
    Some(ApprovalAudit {
        approval_id: approval.id.to_string(),
        turn_id: approval.turn_id.clone(),
        item_id: approval.item_id.clone(),
        method: approval.method.clone(),
        asked_at_ms: approval.asked_at_ms,
        state: outcome.end.name().into(),
        decision: outcome.decision.as_ref().map(decision_word),
        decided_at_ms: outcome.at_ms,
        decided_by: outcome.by.as_ref().map(|by| AuditedDecider {
            connection: by.connection.clone(),
            client: by.client.clone(),
            role: by.role.clone(),
        }),
    })
}
