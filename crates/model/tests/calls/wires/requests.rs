//! The bodies that each wire sends for the same request.

use loomd_config::config_toml::WireApi;
use loomd_model::{InputItem, Reasoning, Request};
use loomd_protocol::{ReasoningEffort, ReasoningSummary};
use loomd_testkit::ScriptedModel;
use serde_json::{Value, json};

use super::super::{call, request};
use super::{WIRES, request_with_tools, session_over};

const PICTURE: &str = "data:image/png;base64,aGk=";

async fn sent(wire: WireApi, request: &Request) -> Value {
    let model = ScriptedModel::start().await;
    call(&mut session_over(wire, &model), request).await;
    model.call(0).await.body
}

fn item(item: Value) -> InputItem {
    InputItem::new(&serde_json::from_value(item).unwrap()).unwrap()
}

fn conversation() -> Request {
    let text = |role: &str, text: &str| {
        let kind = if role == "assistant" { "output_text" } else { "input_text" };
        item(json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] }))
    };
    let picture = json!({ "type": "input_image", "image_url": PICTURE });
    Request {
        input: vec![
            text("developer", "Rules."),
            text("user", "<environment>"),
            item(
                json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Look" }, picture] }),
            ),
            item(json!({ "type": "reasoning", "summary": [], "encrypted_content": "gAAA" })),
            text("assistant", "I look."),
            item(json!({ "type": "function_call", "name": "run", "arguments": "{\"cmd\":\"ls\"}", "call_id": "c1" })),
            item(json!({ "type": "custom_tool_call", "name": "patch", "input": "P", "call_id": "c2" })),
            item(json!({ "type": "function_call_output", "call_id": "c1", "output": "files" })),
            item(json!({ "type": "custom_tool_call_output", "call_id": "c2", "output": [picture] })),
            text("developer", "New rules."),
            text("user", "Go on"),
        ],
        reasoning: Some(Reasoning { effort: Some(ReasoningEffort::High), summary: Some(ReasoningSummary::Auto) }),
        output_schema: Some(json!({ "type": "object" })),
        ..request_with_tools()
    }
}

#[tokio::test]
async fn a_chat_body_maps_every_item() {
    let run = json!({ "name": "run", "description": "Runs.", "parameters": { "type": "object", "properties": { "cmd": { "type": "string" } } } });
    let input = json!({ "type": "string", "description": "The whole input, as free text." });
    let patch = json!({ "name": "patch", "description": "Patches.", "parameters": {
        "type": "object", "properties": { "input": input }, "required": ["input"], "additionalProperties": false,
    }});
    let image = json!({ "type": "image_url", "image_url": { "url": PICTURE } });
    let text = |text: &str| json!({ "type": "text", "text": text });
    let expected = json!({
        "model": "some-model",
        "messages": [
            { "role": "system", "content": "Be \"brief\".\n\nRules." },
            { "role": "user", "content": [text("<environment>"), text("Look"), image] },
            { "role": "assistant", "content": "I look.", "tool_calls": [
                { "id": "c1", "type": "function", "function": { "name": "run", "arguments": "{\"cmd\":\"ls\"}" } },
                { "id": "c2", "type": "function", "function": { "name": "patch", "arguments": "{\"input\":\"P\"}" } },
            ]},
            { "role": "tool", "tool_call_id": "c1", "content": "files" },
            { "role": "tool", "tool_call_id": "c2", "content": "(The picture follows.)" },
            { "role": "user", "content": [image, text("New rules."), text("Go on")] },
        ],
        "stream": true,
        "stream_options": { "include_usage": true },
        "tools": [{ "type": "function", "function": run }, { "type": "function", "function": patch }],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "reasoning_effort": "high",
        "response_format": { "type": "json_schema", "json_schema": { "name": "codex_output_schema", "strict": true, "schema": { "type": "object" } } },
    });
    assert_eq!(sent(WireApi::Chat, &conversation()).await, expected);
}

#[tokio::test]
async fn a_messages_body_maps_every_item() {
    let text = |text: &str| json!({ "type": "text", "text": text });
    let marked = |mut block: Value| {
        block["cache_control"] = json!({ "type": "ephemeral" });
        block
    };
    let image = json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "aGk=" } });
    let schema = json!({ "type": "object", "properties": { "input": { "type": "string", "description": "The whole input, as free text." } }, "required": ["input"], "additionalProperties": false });
    let expected = json!({
        "model": "claude-opus-5",
        "max_tokens": 32000,
        "stream": true,
        "system": [text("Be \"brief\"."), marked(text("Rules."))],
        "tools": [
            { "name": "run", "description": "Runs.", "input_schema": { "type": "object", "properties": { "cmd": { "type": "string" } } } },
            { "name": "patch", "description": "Patches.", "input_schema": schema },
        ],
        "tool_choice": { "type": "auto", "disable_parallel_tool_use": false },
        "thinking": { "type": "adaptive", "display": "summarized" },
        "output_config": { "effort": "high", "format": { "type": "json_schema", "schema": { "type": "object" } } },
        "messages": [
            { "role": "user", "content": [text("<environment>"), text("Look"), marked(image.clone())] },
            { "role": "assistant", "content": [
                text("I look."),
                { "type": "tool_use", "id": "c1", "name": "run", "input": { "cmd": "ls" } },
                { "type": "tool_use", "id": "c2", "name": "patch", "input": { "input": "P" } },
            ]},
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "c1", "content": [text("files")] },
                { "type": "tool_result", "tool_use_id": "c2", "content": [image] },
                text("New rules."),
                marked(text("Go on")),
            ]},
        ],
    });
    let request = Request { model: "claude-opus-5".into(), ..conversation() };
    assert_eq!(sent(WireApi::Anthropic, &request).await, expected);
}

#[tokio::test]
async fn unset_options_are_not_sent() {
    let plain = request(&["hi"]);
    let members = |body: &Value| body.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(members(&sent(WireApi::Chat, &plain).await), ["model", "messages", "stream", "stream_options"]);
    assert_eq!(
        members(&sent(WireApi::Anthropic, &plain).await),
        ["model", "max_tokens", "stream", "system", "messages"]
    );
}

#[tokio::test]
async fn a_conversation_continues_on_every_other_wire() {
    for from in WIRES {
        for to in WIRES {
            let model = ScriptedModel::start().await;
            let mut request = conversation();
            use loomd_testkit::model::ModelOutput::{Call, Think};
            model.reply(super::reply(from, &[Think(&["hm"]), Call("run", "{}", "x1")]));
            let (events, error) = call(&mut session_over(from, &model), &request).await;
            assert_eq!(error, None);
            for event in events {
                if let loomd_model::ModelEvent::ItemDone { item, .. } = event {
                    request.input.extend(InputItem::new(&item));
                }
            }
            request.input.push(item(json!({ "type": "function_call_output", "call_id": "x1", "output": "ok" })));
            model.reply(super::reply(to, &[super::Text(&["done"])]));
            let (_, error) = call(&mut session_over(to, &model), &request).await;
            assert_eq!(error, None);
            let body = model.call(1).await.body.to_string();
            assert_eq!(body.contains("hm"), from == to, "{from:?} {to:?}");
            assert!(body.contains("x1") && !body.contains("anthropic:") && !body.contains("chat:"), "{from:?} {to:?}");
        }
    }
}
