//! Non-streaming responses, from servers that ignore `stream`.

use loomd_protocol::JsonValue;
use serde_json::json;

/// Returns the equivalent events; none if the body is neither a response nor an error.
pub(super) fn to_events(mut body: JsonValue) -> Vec<JsonValue> {
    let Some(output) = body.get_mut("output").and_then(JsonValue::as_array_mut).map(std::mem::take) else {
        return if body["error"].is_null() { Vec::new() } else { vec![body] };
    };
    let item = |(index, item)| json!({ "type": "response.output_item.done", "output_index": index, "item": item });
    let mut events: Vec<_> = output.into_iter().enumerate().map(item).collect();
    let end = match body["status"].as_str() {
        Some("failed") => "response.failed",
        Some("incomplete") => "response.incomplete",
        _ => "response.completed",
    };
    events.push(json!({ "type": end, "response": body }));
    events
}
