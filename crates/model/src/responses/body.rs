//! The body of a Responses request, concatenated from parts that are JSON already.

use loomd_protocol::{JsonValue, ReasoningSummary, ServiceTier};
use serde::Serialize;
use serde_json::{Map, json};

use crate::{InputItem, Request};

/// The name that the API requires for an output schema.
const SCHEMA_NAME: &str = "codex_output_schema";

/// How a body is sent.
#[derive(Clone, Copy, Default)]
pub(super) struct BodyOptions {
    /// The provider stores items, so they are sent with their ids.
    pub stored: bool,
    /// For a websocket: the message type comes first.
    pub message: bool,
}

/// All members but `input`: those before it and those after it.
#[derive(Debug, PartialEq)]
pub(super) struct Fields {
    before: String,
    after: String,
}

impl Fields {
    /// The members of a model call. `instructions` is JSON.
    pub fn new(request: &Request, instructions: &str, form: BodyOptions) -> Self {
        let mut before = String::with_capacity(instructions.len() + 256);
        before.push('{');
        if form.message {
            before.push_str(r#""type":"response.create","#);
        }
        push(&mut before, "model", &request.model);
        before.push(',');
        push_raw(&mut before, "instructions", instructions);

        let mut after = String::with_capacity(request.tools.json().len() + 512);
        push_raw(&mut after, "tools", request.tools.json());
        after.push_str(r#","tool_choice":"auto","#);
        push(&mut after, "parallel_tool_calls", &request.parallel_tool_calls);
        after.push(',');
        push(&mut after, "reasoning", &reasoning(request));
        after.push(',');
        push(&mut after, "store", &form.stored);
        after.push_str(r#","stream":true,"include":"#);
        after.push_str(if request.reasoning.is_some() { r#"["reasoning.encrypted_content"],"# } else { "[]," });
        push(&mut after, "prompt_cache_key", &request.prompt_cache_key);
        if let Some(tier) = &request.service_tier {
            after.push(',');
            push(&mut after, "service_tier", service_tier(tier));
        }
        if let Some(text) = text(request) {
            after.push(',');
            push(&mut after, "text", &text);
        }
        Self { before, after }
    }

    /// The members of a compaction.
    pub fn compaction(request: &Request) -> Self {
        let mut before = String::from("{");
        push(&mut before, "model", &request.model);
        let mut after = String::with_capacity(request.tools.json().len() + request.instructions.len() + 256);
        push(&mut after, "instructions", &*request.instructions);
        after.push(',');
        push_raw(&mut after, "tools", request.tools.json());
        after.push(',');
        push(&mut after, "parallel_tool_calls", &request.parallel_tool_calls);
        for (name, value) in [("reasoning", reasoning(request)), ("text", text(request))] {
            if let Some(value) = value {
                after.push(',');
                push(&mut after, name, &value);
            }
        }
        Self { before, after }
    }

    /// Returns the whole body. `more` are additional members before and after the input.
    pub fn with(&self, input: &[InputItem], stored: bool, more: (&str, &str)) -> String {
        let size: usize = input.iter().map(|item| item.len() + 80).sum();
        let fixed = self.before.len() + self.after.len() + more.0.len() + more.1.len() + 16;
        let mut body = String::with_capacity(fixed + size);
        body.push_str(&self.before);
        body.push_str(more.0);
        body.push_str(r#","input":["#);
        for (index, item) in input.iter().enumerate() {
            if index > 0 {
                body.push(',');
            }
            push_item(&mut body, item, stored);
        }
        body.push_str("],");
        body.push_str(&self.after);
        body.push_str(more.1);
        body.push('}');
        body
    }
}

fn push_item(body: &mut String, item: &InputItem, stored: bool) {
    match item.id().filter(|id| stored && !id.is_empty()) {
        None => body.push_str(item.json()),
        Some(id) => {
            body.push('{');
            push(body, "id", id);
            body.push(',');
            body.push_str(&item.json()[1..]);
        }
    }
}

fn reasoning(request: &Request) -> Option<JsonValue> {
    let reasoning = request.reasoning.as_ref()?;
    let mut value = Map::new();
    if let Some(effort) = &reasoning.effort {
        value.insert("effort".into(), effort.as_str().into());
    }
    if let Some(summary) = reasoning.summary.filter(|summary| *summary != ReasoningSummary::None) {
        value.insert("summary".into(), json!(summary));
    }
    Some(value.into())
}

fn text(request: &Request) -> Option<JsonValue> {
    let mut value = Map::new();
    if let Some(verbosity) = request.verbosity {
        value.insert("verbosity".into(), json!(verbosity));
    }
    if let Some(schema) = &request.output_schema {
        let format = json!({ "type": "json_schema", "strict": true, "schema": schema, "name": SCHEMA_NAME });
        value.insert("format".into(), format);
    }
    (!value.is_empty()).then(|| value.into())
}

fn service_tier(tier: &ServiceTier) -> &str {
    match tier {
        ServiceTier::Fast => "priority",
        other => other.as_str(),
    }
}

/// Appends a member. Serialising strings, numbers and trees of them cannot fail.
pub(super) fn push(json: &mut String, name: &str, value: &(impl Serialize + ?Sized)) {
    push_raw(json, name, &serde_json::to_string(value).unwrap_or_else(|_| "null".into()));
}

fn push_raw(json: &mut String, name: &str, value: &str) {
    json.push('"');
    json.push_str(name);
    json.push_str("\":");
    json.push_str(value);
}
