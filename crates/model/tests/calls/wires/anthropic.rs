//! Behaviour of Anthropic Messages only.

use loomd_config::config_toml::{ModelProvider, WireApi};
use loomd_model::{InputItem, ModelEvent, Reasoning};
use loomd_protocol::{ReasoningEffort, ReasoningSummary};
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::ModelOutput::*;
use loomd_testkit::model::{Reply, event};
use serde_json::{Value, json};

use super::super::{call, session, session_of};
use super::{provider, reply, request_with_tools, seen};

#[tokio::test]
async fn requests_carry_key_and_api_version() {
    let model = ScriptedModel::start().await;
    let config = ModelProvider { env_key: Some("KEY".into()), ..provider(WireApi::Anthropic, &model) };
    let env = |name: &str| (name == "KEY").then(|| "sk-ant".to_owned());
    call(&mut session_of("anthropic", &config, env, None), &request_with_tools()).await;
    let sent = model.call(0).await;
    assert_eq!(sent.path, "/v1/messages");
    assert_eq!(
        (sent.header("authorization"), sent.header("anthropic-version")),
        (Some("Bearer sk-ant"), Some("2026-10-21"))
    );
}

#[tokio::test]
async fn thinking_is_sent_back_with_its_signature() {
    let model = ScriptedModel::start().await;
    let redacted = event(&json!({ "type": "content_block_start", "index": 0,
        "content_block": { "type": "redacted_thinking", "data": "DATA" } }))
        + &event(&json!({ "type": "content_block_stop", "index": 0 }));
    let silent = event(&json!({ "type": "content_block_start", "index": 1,
        "content_block": { "type": "thinking", "thinking": "", "signature": "" } }))
        + &event(
            &json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "signature_delta", "signature": "QUIET" } }),
        )
        + &event(&json!({ "type": "content_block_stop", "index": 1 }));
    model.reply(
        Reply::raw(redacted + &silent)
            .then(reply(WireApi::Anthropic, &[Think(&["Let me ", "see."]), Call("run", r#"{"cmd":"ls"}"#, "c1")])),
    );
    let mut session = session(&provider(WireApi::Anthropic, &model));
    let mut request = request_with_tools();
    let (events, error) = call(&mut session, &request).await;
    assert_eq!(error, None);
    for event in events {
        if let ModelEvent::ItemDone { item, .. } = event {
            // As a rollout stores it.
            let stored = serde_json::to_string(&item).unwrap();
            request.input.extend(InputItem::new(&serde_json::from_str(&stored).unwrap()));
        }
    }
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "ok" });
    request.input.extend(InputItem::new(&serde_json::from_value(output).unwrap()));
    call(&mut session, &request).await;
    let body = model.call(1).await.body;
    let expected = json!({ "role": "assistant", "content": [
        { "type": "redacted_thinking", "data": "DATA" },
        { "type": "thinking", "thinking": "", "signature": "QUIET" },
        { "type": "thinking", "thinking": "Let me see.", "signature": "SIG" },
        { "type": "tool_use", "id": "c1", "name": "run", "input": { "cmd": "ls" } },
    ]});
    assert_eq!(body["messages"][1], expected);
    // Other wires are not sent it.
    let mut other = super::session_over(WireApi::Responses, &model);
    call(&mut other, &request).await;
    let kinds: Vec<_> =
        model.call(2).await.body["input"].as_array().unwrap().iter().map(|item| item["type"].clone()).collect();
    assert_eq!(kinds, ["message", "function_call", "function_call_output"]);
}

#[tokio::test]
async fn thinking_is_requested_as_the_model_supports_it() {
    let reasoning = |effort: &str, summary: Option<ReasoningSummary>| {
        Some(Reasoning { effort: Some(ReasoningEffort::from(effort.to_owned())), summary })
    };
    let summary = Some(ReasoningSummary::Auto);
    for (name, reasoning, thinking, effort) in [
        ("claude-opus-5", None, Value::Null, Value::Null),
        (
            "claude-opus-5",
            reasoning("high", summary),
            json!({ "type": "adaptive", "display": "summarized" }),
            "high".into(),
        ),
        (
            "claude-opus-5",
            reasoning("minimal", None),
            json!({ "type": "adaptive", "display": "omitted" }),
            "low".into(),
        ),
        ("claude-opus-5", reasoning("none", summary), json!({ "type": "disabled" }), Value::Null),
        (
            "claude-haiku-4-5",
            reasoning("low", summary),
            json!({ "type": "enabled", "budget_tokens": 4096 }),
            Value::Null,
        ),
        ("claude-3-5-haiku-latest", reasoning("low", summary), Value::Null, Value::Null),
    ] {
        let model = ScriptedModel::start().await;
        let request = loomd_model::Request { model: name.into(), reasoning, ..request_with_tools() };
        call(&mut session(&provider(WireApi::Anthropic, &model)), &request).await;
        let body = model.call(0).await.body;
        assert_eq!((&body["thinking"], &body["output_config"]["effort"]), (&thinking, &effort), "{name}");
    }
}

#[tokio::test]
async fn budget_thinking_is_not_requested_after_calls_without_thinking() {
    let model = ScriptedModel::start().await;
    let effort = Some(ReasoningEffort::Low);
    let mut request = loomd_model::Request {
        model: "claude-haiku-4-5".into(),
        reasoning: Some(Reasoning { effort, summary: None }),
        ..request_with_tools()
    };
    for item in [
        json!({ "type": "function_call", "name": "run", "arguments": "{}", "call_id": "c" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": "ok" }),
    ] {
        request.input.extend(InputItem::new(&serde_json::from_value(item).unwrap()));
    }
    let mut session = session(&provider(WireApi::Anthropic, &model));
    call(&mut session, &request).await;
    request.input.push(super::super::user("next"));
    call(&mut session, &request).await;
    let thinking = async |number| model.call(number).await.body.get("thinking").is_some();
    assert_eq!((thinking(0).await, thinking(1).await), (false, true));
}

#[tokio::test]
async fn a_user_message_is_always_first_and_last() {
    let model = ScriptedModel::start().await;
    let mut request = request_with_tools();
    request.input = vec![InputItem::new(&super::super::assistant("m", "Where was I?")).unwrap()];
    call(&mut session(&provider(WireApi::Anthropic, &model)), &request).await;
    let body = model.call(0).await.body;
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[tokio::test]
async fn past_calls_bring_their_tools_and_thinking_alone_is_dropped() {
    let model = ScriptedModel::start().await;
    let mut request = super::super::request(&["hi"]);
    for item in [
        json!({ "type": "reasoning", "summary": [], "encrypted_content": "anthropic:thinking:S" }),
        json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "well?" }] }),
        json!({ "type": "function_call", "name": "run", "arguments": "{}", "call_id": "c" }),
        json!({ "type": "function_call_output", "call_id": "c", "output": "ok" }),
    ] {
        request.input.extend(InputItem::new(&serde_json::from_value(item).unwrap()));
    }
    call(&mut session(&provider(WireApi::Anthropic, &model)), &request).await;
    let body = model.call(0).await.body;
    assert_eq!(body["tools"], json!([{ "name": "run", "input_schema": { "type": "object" } }]));
    assert_eq!(body["tool_choice"], json!({ "type": "none" }));
    let roles: Vec<_> = body["messages"].as_array().unwrap().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
}

#[tokio::test]
async fn content_blocks_in_message_start_are_read() {
    let model = ScriptedModel::start().await;
    let content = json!([{ "type": "text", "text": "I look." }, { "type": "tool_use", "id": "c1", "name": "run", "input": { "cmd": "ls" } }]);
    let stream = event(&json!({ "type": "message_start", "message": { "id": "m", "content": content } }))
        + &event(&json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" } }))
        + &event(&json!({ "type": "message_stop" }));
    model.reply(Reply::raw(stream));
    let (events, error) = call(&mut session(&provider(WireApi::Anthropic, &model)), &request_with_tools()).await;
    let events: Vec<_> = events.iter().filter_map(seen).collect();
    let expected = ["+message", "text I look.", "=message I look.", r#"=call run {"cmd":"ls"} c1"#, "done"];
    assert_eq!((events, error), (expected.map(String::from).to_vec(), None));
}
