//! Decodes messages of newer servers. Items that this release does not know are left out if the rest decodes, so that
//! the end of a turn is always recognised.

use loomd_protocol::{JsonValue, ServerNotification, ThreadItem};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

/// Decodes a result, without its unknown parts if needed. The error is the one of the first attempt.
pub(crate) fn decode_result<R: DeserializeOwned>(result: &RawValue) -> Result<R, serde_json::Error> {
    serde_json::from_str(result.get()).or_else(|error| {
        let mut value: JsonValue = serde_json::from_str(result.get())?;
        forget_unknown(&mut value);
        decode(&value).map_err(|_| error)
    })
}

/// Decodes through text: decoding from the value itself would instantiate the decoder of every type a second time.
fn decode<T: DeserializeOwned>(value: &JsonValue) -> Result<T, serde_json::Error> {
    serde_json::from_str(&value.to_string())
}

/// Decodes a notification without its unknown parts. `params` is changed only on success.
pub(crate) fn decode_notification(method: &str, params: &mut JsonValue) -> Option<ServerNotification> {
    let mut known = params.clone();
    forget_unknown(&mut known);
    let raw = serde_json::value::to_raw_value(&known).ok()?;
    let notification = ServerNotification::decode(method, Some(&raw)).ok()?;
    *params = known;
    Some(notification)
}

/// Removes items of unknown types from lists of items.
fn forget_unknown(value: &mut JsonValue) {
    match value {
        JsonValue::Array(values) => values.iter_mut().for_each(forget_unknown),
        JsonValue::Object(members) => {
            for (name, member) in members {
                match (name.as_str(), &mut *member) {
                    ("items", JsonValue::Array(items)) => items.retain(|item| !is_unknown(item)),
                    ("data", JsonValue::Array(entries)) => entries.retain(|entry| !is_unknown(&entry["item"])),
                    _ => {}
                }
                forget_unknown(member);
            }
        }
        _ => {}
    }
}

/// Whether this is an item of an unknown type.
fn is_unknown(item: &JsonValue) -> bool {
    item["type"].is_string() && item["id"].is_string() && decode::<ThreadItem>(item).is_err()
}

#[cfg(test)]
mod tests {
    use loomd_protocol::{CodexErrorInfo, Turn, TurnError, TurnStartResponse, TurnStatus};
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;

    #[test]
    fn a_turn_with_unknown_items_decodes_without_them_and_keeps_an_unknown_error_kind() {
        let turn = json!({ "turn": {
            "id": "u", "status": "failed", "items": [{ "type": "sleep", "id": "s" }, { "type": "plan", "id": "p", "text": "x" }],
            "error": { "message": "no", "codexErrorInfo": "tooManyDenials", "additionalDetails": null },
        } });
        let kind = CodexErrorInfo::Unknown("tooManyDenials".into());
        let known = Turn {
            id: "u".into(),
            items: vec![ThreadItem::Plan { id: "p".into(), text: "x".into() }],
            status: TurnStatus::Failed,
            error: Some(TurnError { message: "no".into(), codex_error_info: Some(kind), additional_details: None }),
            ..Turn::default()
        };
        let result: TurnStartResponse = decode_result(&to_raw_value(&turn).unwrap()).unwrap();
        assert_eq!(result.turn, known);
    }

    #[test]
    fn undecodable_params_stay_unchanged() {
        let mut params = json!({ "threadId": "t", "turnId": "u", "item": { "type": "sleep", "id": "s" } });
        let before = params.clone();
        assert_eq!(decode_notification("item/completed", &mut params), None);
        assert_eq!(params, before);
    }
}
