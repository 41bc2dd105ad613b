//! The conversation in a request of any wire, as text.

use loomd_protocol::JsonValue;
use serde_json::json;

use super::Wire;
use crate::model::RecordedRequest;

impl RecordedRequest {
    /// The conversation in this request, one line per part, independent of the wire: `user: …`, `assistant: …`,
    /// `thought: …`, `call ID: NAME ARGUMENTS`, `output ID: …`; images as `user image: …` and `output image ID: …`.
    /// Neighbours of the same kind are joined. Context messages are left out.
    pub fn conversation(&self) -> Vec<String> {
        let mut lines = ConversationText::default();
        match self.wire() {
            Wire::Responses => responses(&self.body["input"], &mut lines),
            Wire::Chat => chat(&self.body["messages"], &mut lines),
            Wire::Anthropic => anthropic(&self.body["messages"], &mut lines),
        }
        lines.lines
    }

    /// The schema of the final message.
    pub fn schema(&self) -> &JsonValue {
        match self.wire() {
            Wire::Responses => &self.body["text"]["format"]["schema"],
            Wire::Chat => &self.body["response_format"]["json_schema"]["schema"],
            Wire::Anthropic => &self.body["output_config"]["format"]["schema"],
        }
    }

    pub(in crate::model) fn wire(&self) -> Wire {
        Wire::of(self.route())
    }
}

#[derive(Default)]
struct ConversationText {
    lines: Vec<String>,
    /// The kind of the last line.
    last: String,
}

impl ConversationText {
    fn text(&mut self, sort: String, text: &str) {
        let text = without_context(text);
        match self.lines.last_mut() {
            _ if text.is_empty() => return,
            Some(line) if self.last == sort => *line += &format!("\n\n{text}"),
            _ => self.lines.push(format!("{sort}: {text}")),
        }
        self.last = sort;
    }

    fn image(&mut self, whose: &str, url: &str) {
        self.lines.push(format!("{whose}: {url}"));
        self.last.clear();
    }

    fn call(&mut self, id: &JsonValue, name: &JsonValue, arguments: &str) {
        // Free text is an argument where there are only functions.
        let input = serde_json::from_str::<JsonValue>(arguments).ok().and_then(|arguments| {
            let only = arguments.as_object().filter(|object| object.len() == 1)?.get("input")?;
            only.as_str().map(str::to_owned)
        });
        let arguments = input.as_deref().unwrap_or(arguments);
        self.lines.push(format!("call {}: {} {arguments}", word(id), word(name)));
        self.last.clear();
    }
}

/// The text without context messages, which may be beside the user's text.
fn without_context(text: &str) -> String {
    let mut text = text.to_owned();
    for tag in ["permissions instructions", "environment_context"] {
        let (start, end) = (format!("<{tag}>"), format!("</{tag}>"));
        if let Some((before, rest)) = text.split_once(&start)
            && let Some((_, after)) = rest.split_once(&end)
        {
            text = format!("{}\n\n{}", before.trim_end(), after.trim_start());
        }
    }
    text.trim().to_owned()
}

fn responses(input: &JsonValue, lines: &mut ConversationText) {
    for item in list(input) {
        match word(&item["type"]) {
            "message" if item["role"] != "developer" => {
                for part in list(&item["content"]) {
                    match part["image_url"].as_str() {
                        Some(url) => lines.image("user image", url),
                        None => lines.text(word(&item["role"]).into(), word(&part["text"])),
                    }
                }
            }
            "reasoning" => {
                let parts = list(&item["summary"]).chain(list(&item["content"]));
                let text: String = parts.map(|part| word(&part["text"])).collect();
                lines.text("thought".into(), &text);
            }
            "function_call" => lines.call(&item["call_id"], &item["name"], word(&item["arguments"])),
            "custom_tool_call" => lines.call(&item["call_id"], &item["name"], word(&item["input"])),
            "function_call_output" | "custom_tool_call_output" => {
                output(&item["call_id"], &item["output"], lines);
            }
            _ => {}
        }
    }
}

fn chat(messages: &JsonValue, lines: &mut ConversationText) {
    for message in list(messages) {
        match word(&message["role"]) {
            "user" => content("user", &message["content"], lines),
            "assistant" => {
                lines.text("thought".into(), word(&message["reasoning_content"]));
                content("assistant", &message["content"], lines);
                for call in list(&message["tool_calls"]) {
                    let function = &call["function"];
                    lines.call(&call["id"], &function["name"], word(&function["arguments"]));
                }
            }
            "tool" => output(&message["tool_call_id"], &message["content"], lines),
            _ => {}
        }
    }
}

fn anthropic(messages: &JsonValue, lines: &mut ConversationText) {
    for message in list(messages) {
        let role = word(&message["role"]);
        for block in list(&message["content"]) {
            match word(&block["type"]) {
                "thinking" => lines.text("thought".into(), word(&block["thinking"])),
                "tool_use" => lines.call(&block["id"], &block["name"], &block["input"].to_string()),
                "tool_result" => output(&block["tool_use_id"], &block["content"], lines),
                _ => content(role, &json!([block]), lines),
            }
        }
    }
}

fn output(id: &JsonValue, output: &JsonValue, lines: &mut ConversationText) {
    let id = word(id);
    let image = |lines: &mut ConversationText, part: &JsonValue| {
        picture(part).map(|url| lines.image(&format!("output image {id}"), &url))
    };
    match output {
        JsonValue::String(text) => lines.text(format!("output {id}"), text),
        parts => {
            for part in list(parts) {
                if image(lines, part).is_none() {
                    lines.text(format!("output {id}"), word(&part["text"]));
                }
            }
        }
    }
}

fn content(role: &str, content: &JsonValue, lines: &mut ConversationText) {
    match content {
        JsonValue::String(text) => lines.text(role.into(), text),
        parts => {
            for part in list(parts) {
                match picture(part) {
                    Some(url) => lines.image(&format!("{role} image"), &url),
                    None => lines.text(role.into(), word(&part["text"])),
                }
            }
        }
    }
}

/// The URL of an image in any format.
fn picture(part: &JsonValue) -> Option<String> {
    let (source, url) = (&part["source"], &part["image_url"]);
    if let (Some(kind), Some(data)) = (source["media_type"].as_str(), source["data"].as_str()) {
        return Some(format!("data:{kind};base64,{data}"));
    }
    url["url"].as_str().or(url.as_str()).map(str::to_owned)
}

fn list(value: &JsonValue) -> impl Iterator<Item = &JsonValue> {
    value.as_array().into_iter().flatten()
}

fn word(value: &JsonValue) -> &str {
    value.as_str().unwrap_or_default()
}
