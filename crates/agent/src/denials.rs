//! What the reviewer has denied in a thread, and which of it the user has allowed after all.

use loomd_protocol::JsonValue;
use parking_lot::Mutex;

use crate::refusal::Refusal;

/// The number of denials, and of approved ones, that are remembered.
const REMEMBERED: usize = 64;

/// The denials of a thread while it is loaded.
#[derive(Default)]
pub(crate) struct Denials(Mutex<DenialTable>);

#[derive(Default)]
struct DenialTable {
    /// Actions by the ids of their reviews.
    denied: Vec<(String, JsonValue)>,
    approved: Vec<JsonValue>,
}

impl Denials {
    pub fn add(&self, review_id: String, action: JsonValue) {
        let mut table = self.0.lock();
        table.denied.push((review_id, action));
        let surplus = table.denied.len().saturating_sub(REMEMBERED);
        table.denied.drain(..surplus);
    }

    /// Notes that the user allows an action that was denied. Returns the action; `None` when the event is of a review
    /// that did not deny.
    pub fn approve(&self, event: &JsonValue) -> Result<Option<JsonValue>, Refusal> {
        let invalid = |problem: &str| Refusal::invalid(format!("invalid Guardian denial event: {problem}"));
        let text = |value: &JsonValue| value.as_str().map(str::to_owned);
        // The notification, or the event as it is stored.
        let id =
            text(&event["id"]).or_else(|| text(&event["reviewId"])).ok_or_else(|| invalid("missing field `id`"))?;
        let status = text(&event["status"]).or_else(|| text(&event["review"]["status"]));
        let status = status.ok_or_else(|| invalid("missing field `status`"))?;
        if event.get("action").is_none() {
            return Err(invalid("missing field `action`"));
        }
        if status != "denied" {
            return Ok(None);
        }
        let mut table = self.0.lock();
        let action = table.denied.iter().find(|(denied, _)| *denied == id).map(|(_, action)| action.clone());
        let action =
            action.ok_or_else(|| Refusal::invalid(format!("no action was denied by review {id} in this thread")))?;
        table.approved.push(action.clone());
        let surplus = table.approved.len().saturating_sub(REMEMBERED);
        table.approved.drain(..surplus);
        Ok(Some(action))
    }

    /// Whether the user has allowed an action after it was denied.
    pub fn is_approved(&self, action: &JsonValue) -> bool {
        self.0.lock().approved.contains(action)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_denied_here_can_be_approved() {
        let (denials, action) = (Denials::default(), json!({ "type": "command", "command": "touch x" }));
        denials.add("r1".into(), action.clone());
        let stored = |id: &str, status: &str| json!({ "id": id, "status": status, "action": {} });
        assert_eq!(denials.approve(&stored("r1", "approved")), Ok(None));
        assert!(!denials.is_approved(&action));
        assert_eq!(denials.approve(&stored("r1", "denied")), Ok(Some(action.clone())));
        assert!(denials.is_approved(&action));
        let notification = json!({ "reviewId": "r1", "review": { "status": "denied" }, "action": action });
        assert_eq!(denials.approve(&notification), Ok(Some(action)));
        for (event, problem) in [
            (json!({}), "invalid Guardian denial event: missing field `id`"),
            (json!({ "id": "r1" }), "invalid Guardian denial event: missing field `status`"),
            (json!({ "id": "r1", "status": "denied" }), "invalid Guardian denial event: missing field `action`"),
            (stored("r2", "denied"), "no action was denied by review r2 in this thread"),
        ] {
            assert_eq!(denials.approve(&event).unwrap_err().to_string(), problem);
        }
    }
}
