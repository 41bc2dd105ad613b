//! What the model is told of a result.

use std::time::Duration;

use loomd_mcp::CallResult;
use loomd_protocol::{FunctionCallOutputBody, FunctionCallOutputContentItem as Part, JsonValue};
use serde_json::json;

/// Stands in for an image that the model cannot see.
const NO_IMAGES: &str = "<image content omitted because you do not support image input>";

/// Replaces images when the model takes none.
pub(super) fn visible(mut result: CallResult, sees_images: bool) -> CallResult {
    if !sees_images {
        for block in &mut result.content {
            if is_image(block) {
                *block = text_block(NO_IMAGES);
            }
        }
    }
    result
}

/// Structured content if there is any, else the blocks: as parts when there are images among them, else as JSON.
pub(super) fn body(result: &CallResult) -> FunctionCallOutputBody {
    if let Some(structured) = &result.structured_content {
        return FunctionCallOutputBody::Text(structured.to_string());
    }
    if result.content.iter().any(is_image) {
        return FunctionCallOutputBody::Items(result.content.iter().map(part).collect());
    }
    FunctionCallOutputBody::Text(JsonValue::from(result.content.clone()).to_string())
}

/// The same for newer clients' threads: with the time that the call took, and the blocks as parts.
pub(super) fn timed_body(result: &CallResult, took: Duration) -> FunctionCallOutputBody {
    let head = format!("Wall time: {:.4} seconds\nOutput:\n", took.as_secs_f64());
    if let Some(structured) = &result.structured_content {
        return FunctionCallOutputBody::Text(format!("{head}{structured}"));
    }
    let parts = std::iter::once(Part::InputText { text: head }).chain(result.content.iter().map(part));
    FunctionCallOutputBody::Items(parts.collect())
}

/// An error, in the form of a result.
pub(super) fn error(message: &str) -> String {
    json!([text_block(message)]).to_string()
}

fn text_block(text: &str) -> JsonValue {
    json!({ "type": "text", "text": text })
}

fn is_image(block: &JsonValue) -> bool {
    block["type"] == "image" && block["data"].is_string()
}

fn part(block: &JsonValue) -> Part {
    let text = |name: &str| block[name].as_str();
    match (text("type"), text("text"), text("data")) {
        (Some("text"), Some(text), _) => Part::InputText { text: text.into() },
        (Some("image"), _, Some(data)) => {
            let mime = text("mimeType").unwrap_or("application/octet-stream");
            let image_url = if data.starts_with("data:") { data.into() } else { format!("data:{mime};base64,{data}") };
            Part::InputImage { image_url, detail: None }
        }
        _ => Part::InputText { text: block.to_string() },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(content: JsonValue) -> CallResult {
        CallResult { content: content.as_array().cloned().unwrap(), ..CallResult::default() }
    }

    #[test]
    fn blocks_are_json_unless_there_is_an_image_among_them() {
        let texts = result(json!([{ "type": "text", "text": "hey" }, { "type": "audio", "data": "AA" }]));
        let expected = r#"[{"type":"text","text":"hey"},{"type":"audio","data":"AA"}]"#;
        assert_eq!(body(&texts), FunctionCallOutputBody::Text(expected.into()));
        let image =
            json!([{ "type": "text", "text": "t" }, { "type": "image", "data": "AAAA", "mimeType": "image/png" }]);
        let parts = vec![
            Part::InputText { text: "t".into() },
            Part::InputImage { image_url: "data:image/png;base64,AAAA".into(), detail: None },
        ];
        assert_eq!(body(&result(image.clone())), FunctionCallOutputBody::Items(parts));
        let blind = visible(result(image), false);
        assert_eq!(blind.content[1], text_block(NO_IMAGES));
    }

    #[test]
    fn structured_content_is_told_instead_of_blocks() {
        let structured = CallResult { structured_content: Some(json!({ "a": 1 })), ..result(json!([1])) };
        assert_eq!(body(&structured), FunctionCallOutputBody::Text(r#"{"a":1}"#.into()));
    }
}
