//! The result of a tool call, within bounds.

use loomd_protocol::{JsonObject, JsonValue};
use serde_json::json;

use crate::limits::MAX_RESULT;

/// What a tool returned.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallResult {
    pub content: Vec<JsonValue>,
    pub structured_content: Option<JsonValue>,
    pub is_error: bool,
    pub meta: Option<JsonObject>,
}

impl CallResult {
    /// Decodes the result of `tools/call`, cut to what is passed on.
    pub(crate) fn decode(value: JsonValue) -> Result<Self, String> {
        let JsonValue::Object(mut result) = value else { return Err("expected an object".into()) };
        let content = match result.remove("content") {
            None | Some(JsonValue::Null) => Vec::new(),
            Some(JsonValue::Array(content)) => content,
            Some(_) => return Err("`content` is no list".into()),
        };
        let structured_content = result.remove("structuredContent").filter(|content| !content.is_null());
        let is_error = result.get("isError").and_then(JsonValue::as_bool).unwrap_or(false);
        let meta = result.get("_meta").and_then(JsonValue::as_object).cloned();
        Ok(Self { content, structured_content, is_error, meta }.within(MAX_RESULT))
    }

    /// Cuts texts and leaves other blocks out, so that the result takes no more than about `limit` bytes.
    fn within(mut self, limit: usize) -> Self {
        let (mut room, mut notes) = (limit, Vec::new());
        if let Some(size) = self.structured_content.as_ref().map(size)
            && size > room
        {
            self.structured_content = None;
            notes.push(omitted("structured content", size, limit));
        } else if let Some(content) = &self.structured_content {
            room -= size(content);
        }
        if self.meta.as_ref().is_some_and(|meta| meta.values().map(size).sum::<usize>() > room) {
            self.meta = None;
        }
        for block in &mut self.content {
            let size = size(block);
            if size <= room {
                room -= size;
                continue;
            }
            match block.get("text").and_then(JsonValue::as_str) {
                Some(text) => {
                    let kept = &text[..text.floor_char_boundary(room)];
                    let note = format!("{kept}\n[{} more bytes were left out]", text.len() - kept.len());
                    room = 0;
                    *block = json!({ "type": "text", "text": note });
                }
                None => {
                    let kind = block.get("type").and_then(JsonValue::as_str).unwrap_or("unknown");
                    let kind = format!("content of type {}", &kind[..kind.floor_char_boundary(32)]);
                    *block = omitted(&kind, size, limit);
                }
            }
        }
        // Blocks cost something even when they are empty.
        const MAX_BLOCKS: usize = 10_000;
        if self.content.len() > MAX_BLOCKS {
            let more = self.content.len() - MAX_BLOCKS;
            self.content.truncate(MAX_BLOCKS);
            notes.push(json!({ "type": "text", "text": format!("[{more} more blocks were left out]") }));
        }
        self.content.extend(notes);
        self
    }
}

fn omitted(what: &str, size: usize, limit: usize) -> JsonValue {
    json!({ "type": "text", "text": format!("[{what} of {size} bytes was left out: the limit is {limit} bytes]") })
}

/// About the length of a value as JSON.
fn size(value: &JsonValue) -> usize {
    match value {
        JsonValue::Null | JsonValue::Bool(_) | JsonValue::Number(_) => 8,
        JsonValue::String(text) => text.len() + 2,
        JsonValue::Array(items) => 2 + items.iter().map(|item| 1 + size(item)).sum::<usize>(),
        JsonValue::Object(members) => {
            2 + members.iter().map(|(name, value)| name.len() + 4 + size(value)).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> JsonValue {
        json!({ "type": "text", "text": text })
    }

    #[test]
    fn a_small_result_passes_unchanged() {
        let value = json!({ "content": [text("hi"), { "type": "audio", "data": "AA" }], "structuredContent": { "a": 1 },
            "isError": true, "_meta": { "m": 1 }, "extra": 1 });
        let result = CallResult::decode(value).unwrap();
        assert_eq!(result.content, [text("hi"), json!({ "type": "audio", "data": "AA" })]);
        assert_eq!((result.structured_content, result.is_error), (Some(json!({ "a": 1 })), true));
    }

    #[test]
    fn a_large_result_is_cut_and_says_so() {
        let result = CallResult {
            content: vec![text(&"é".repeat(100)), json!({ "type": "image", "data": "A".repeat(500) }), text("end")],
            structured_content: Some(json!("s".repeat(300))),
            ..CallResult::default()
        };
        let cut = result.within(101);
        assert_eq!(cut.structured_content, None);
        let texts: Vec<_> = cut.content.iter().map(|block| block["text"].as_str().unwrap().to_owned()).collect();
        assert_eq!(texts[0], format!("{}\n[100 more bytes were left out]", "é".repeat(50)));
        assert_eq!(texts[1], "[content of type image of 527 bytes was left out: the limit is 101 bytes]");
        assert_eq!(texts[2], "\n[3 more bytes were left out]");
        assert_eq!(texts[3].split(" of ").next(), Some("[structured content"));
    }

    #[test]
    fn what_is_no_result_is_an_error() {
        assert_eq!(CallResult::decode(json!(3)), Err("expected an object".into()));
        assert_eq!(CallResult::decode(json!({ "content": "x" })), Err("`content` is no list".into()));
        assert_eq!(CallResult::decode(json!({})), Ok(CallResult::default()));
    }
}
