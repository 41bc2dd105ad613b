//! What an agent needs from a model, over each of the remote wires: one table of behaviours. A scripted server sends
//! each in the form of every wire, and all must decode to the same events.

mod anthropic;
mod chat;
mod failures;
mod requests;

use loomd_config::config_toml::{ModelProvider, WireApi};
use loomd_model::{CallMeter, ModelEvent, Request, Session, ToolSpec, Tools};
use loomd_protocol::{ContentItem, ReasoningItemContent, ReasoningItemReasoningSummary, ResponseItem};
use loomd_testkit::model::ModelOutput::{self, *};
use loomd_testkit::model::{Reply, Wire, status};
use loomd_testkit::{Gate, ScriptedModel};
use serde_json::json;
use std::sync::Arc;

use super::{call, config, request, session};

pub const WIRES: [WireApi; 3] = [WireApi::Responses, WireApi::Chat, WireApi::Anthropic];

pub fn reply(wire: WireApi, says: &[ModelOutput]) -> Reply {
    scripted(wire).reply(says)
}

/// The wire of the scripted server.
pub fn scripted(wire: WireApi) -> Wire {
    match wire {
        WireApi::Responses => Wire::Responses,
        WireApi::Chat => Wire::Chat,
        WireApi::Anthropic => Wire::Anthropic,
    }
}

pub fn provider(wire: WireApi, model: &ScriptedModel) -> ModelProvider {
    ModelProvider { wire_api: wire, ..config(model) }
}

fn session_over(wire: WireApi, model: &ScriptedModel) -> Session {
    session(&provider(wire, model))
}

/// Offers a function and a tool that takes free text.
pub fn request_with_tools() -> Request {
    let parameters = json!({ "type": "object", "properties": { "cmd": { "type": "string" } } });
    let tools = vec![
        ToolSpec::Function { name: "run".into(), description: "Runs.".into(), strict: false, parameters },
        ToolSpec::Custom { name: "patch".into(), description: "Patches.".into(), format: json!({ "type": "text" }) },
        ToolSpec::ImageGeneration { output_format: "png".into() },
    ];
    Request { tools: Arc::new(Tools::new(tools)), parallel_tool_calls: true, ..request(&["hi"]) }
}

/// Describes an event in a word or two, without what differs between wires: ids, and the kind of reasoning.
fn seen(event: &ModelEvent) -> Option<String> {
    Some(match event {
        ModelEvent::ItemAdded { item, .. } => format!("+{}", kind(item)?),
        ModelEvent::ItemDone { item, .. } => format!("={}", whole(item)),
        ModelEvent::TextDelta { delta, .. } => format!("text {delta}"),
        ModelEvent::SummaryDelta { delta, .. } | ModelEvent::ReasoningDelta { delta, .. } => format!("think {delta}"),
        ModelEvent::Completed { usage, .. } => match usage {
            Some(usage) => format!(
                "done {}/{} {}/{} {}",
                usage.input_tokens,
                usage.cached_input_tokens,
                usage.output_tokens,
                usage.reasoning_output_tokens,
                usage.total_tokens
            ),
            None => "done".into(),
        },
        _ => return None,
    })
}

fn kind(item: &ResponseItem) -> Option<&'static str> {
    match item {
        ResponseItem::Message { .. } => Some("message"),
        ResponseItem::Reasoning { .. } => Some("reasoning"),
        _ => None,
    }
}

fn whole(item: &ResponseItem) -> String {
    match item {
        ResponseItem::Message { content, .. } => {
            let texts = content.iter().map(|part| match part {
                ContentItem::OutputText { text } => text.as_str(),
                other => panic!("{other:?} in an answer"),
            });
            format!("message {}", texts.collect::<String>())
        }
        ResponseItem::Reasoning { summary, content, .. } => {
            let summary = summary.iter().map(|ReasoningItemReasoningSummary::SummaryText { text }| text.as_str());
            let content = content.iter().flatten().map(|part| match part {
                ReasoningItemContent::ReasoningText { text } | ReasoningItemContent::Text { text } => text.as_str(),
            });
            format!("reasoning {}", summary.chain(content).collect::<String>())
        }
        ResponseItem::FunctionCall { name, arguments, call_id, .. } => format!("call {name} {arguments} {call_id}"),
        ResponseItem::CustomToolCall { name, input, call_id, .. } => format!("custom {name} {input} {call_id}"),
        other => panic!("unexpected {other:?}"),
    }
}

/// Checks that every wire decodes to these events.
async fn check(says: &[ModelOutput], expected: &[&str]) {
    for wire in WIRES {
        for drip in [false, true] {
            let model = ScriptedModel::start().await;
            let reply = reply(wire, says);
            model.reply(if drip { reply.drip() } else { reply });
            let (events, error) = call(&mut session_over(wire, &model), &request_with_tools()).await;
            let events: Vec<_> = events.iter().filter_map(seen).collect();
            assert_eq!((events, error), (expected.iter().map(|event| (*event).to_owned()).collect(), None), "{wire:?}");
        }
    }
}

const DONE: &str = "done 10/0 5/0 15";

#[tokio::test]
async fn a_message_is_decoded() {
    check(&[Text(&["Hello"])], &["+message", "text Hello", "=message Hello", DONE]).await;
}

#[tokio::test]
async fn a_message_in_fragments_is_joined() {
    let events = ["+message", "text Hel", "text lo, ", "text wörld \"😀\"\n", "=message Hello, wörld \"😀\"\n", DONE];
    check(&[Text(&["Hel", "lo, ", "wörld \"😀\"\n"])], &events).await;
}

#[tokio::test]
async fn a_tool_call_is_decoded() {
    let says = [Call("run", r#"{"cmd":"ls"}"#, "c1")];
    check(&says, &[r#"=call run {"cmd":"ls"} c1"#, DONE]).await;
}

#[tokio::test]
async fn a_message_before_a_tool_call_is_closed_first() {
    let says = [Text(&["I look."]), Call("run", r#"{"cmd":"ls"}"#, "c1")];
    check(&says, &["+message", "text I look.", "=message I look.", r#"=call run {"cmd":"ls"} c1"#, DONE]).await;
}

#[tokio::test]
async fn parallel_tool_calls_keep_their_order() {
    let says = [Call("run", r#"{"cmd":"a"}"#, "c1"), Call("run", r#"{"cmd":"b"}"#, "c2"), Call("run", "{}", "c3")];
    check(&says, &[r#"=call run {"cmd":"a"} c1"#, r#"=call run {"cmd":"b"} c2"#, "=call run {} c3", DONE]).await;
}

#[tokio::test]
async fn free_text_tools_become_custom_calls() {
    let says = [Custom("patch", "*** Begin\n\"x\"\n*** End", "c1")];
    check(&says, &["=custom patch *** Begin\n\"x\"\n*** End c1", DONE]).await;
}

#[tokio::test]
async fn an_unknown_tool_name_is_passed_on() {
    check(&[Call("strange", "{}", "c1")], &["=call strange {} c1", DONE]).await;
}

#[tokio::test]
async fn reasoning_precedes_the_message() {
    let says = [Think(&["Let me ", "see."]), Text(&["Yes."]), Call("run", "{}", "c1")];
    let events = [
        "+reasoning",
        "think Let me ",
        "think see.",
        "=reasoning Let me see.",
        "+message",
        "text Yes.",
        "=message Yes.",
        "=call run {} c1",
        DONE,
    ];
    check(&says, &events).await;
}

#[tokio::test]
async fn token_usage_is_reported() {
    let says = [Text(&["x"]), Took { input: 100, cached: 40, output: 20, reasoning: 7 }];
    check(&says, &["+message", "text x", "=message x", "done 100/40 20/7 120"]).await;
}

#[tokio::test]
async fn a_non_streaming_response_is_read() {
    let call = json!({ "name": "run", "arguments": "{\"cmd\":\"ls\"}" });
    for (wire, body) in [
        (
            WireApi::Responses,
            json!({ "object": "response", "id": "r", "status": "completed", "error": null, "output": [
                { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Hi" }] },
                { "type": "function_call", "name": "run", "arguments": "{\"cmd\":\"ls\"}", "call_id": "c1" },
            ], "usage": { "input_tokens": 10, "output_tokens": 5, "total_tokens": 15 } }),
        ),
        (
            WireApi::Chat,
            json!({ "object": "chat.completion", "id": "r", "choices": [{ "index": 0, "finish_reason": "tool_calls",
                "message": { "role": "assistant", "content": "Hi", "tool_calls": [{ "id": "c1", "type": "function", "function": call }] },
            }], "usage": { "prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15 } }),
        ),
        (
            WireApi::Anthropic,
            json!({ "type": "message", "id": "r", "role": "assistant", "stop_reason": "tool_use", "content": [
                { "type": "text", "text": "Hi" },
                { "type": "tool_use", "id": "c1", "name": "run", "input": { "cmd": "ls" } },
            ], "usage": { "input_tokens": 10, "output_tokens": 5 } }),
        ),
    ] {
        let model = ScriptedModel::start().await;
        model.reply(status(200, body));
        let (events, error) = super::call(&mut session_over(wire, &model), &request_with_tools()).await;
        assert_eq!(error, None, "{wire:?}");
        let events: Vec<_> = events.iter().filter_map(seen).filter(|event| !event.starts_with(['+', 't'])).collect();
        assert_eq!(events, ["=message Hi", r#"=call run {"cmd":"ls"} c1"#, DONE], "{wire:?}");
    }
}

#[tokio::test]
async fn keep_alive_comments_are_ignored() {
    check(&[Ping, Text(&["x"]), Ping], &["+message", "text x", "=message x", DONE]).await;
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_call() {
    for wire in WIRES {
        let model = ScriptedModel::start().await;
        let gate = Gate::new();
        model.reply(reply(wire, &[Text(&["a"]), Cut]).wait(&gate));
        let mut session = session_over(wire, &model);
        let mut events = session.stream(&request(&["hi"]), CallMeter::none()).await.unwrap();
        while !matches!(events.next().await.unwrap().unwrap(), ModelEvent::TextDelta { .. }) {}
        drop(events);
        model.abandoned(0).await;
    }
}

#[tokio::test]
async fn a_request_is_retried_before_its_response_begins() {
    for wire in WIRES {
        let model = ScriptedModel::start().await;
        let broken = || status(503, json!({ "error": { "message": "later" } })).header("retry-after", "0");
        model.reply(broken()).reply(broken()).reply(reply(wire, &[Text(&["x"])]));
        let mut session = session(&ModelProvider { request_max_retries: Some(2), ..provider(wire, &model) });
        let (events, error) = call(&mut session, &request(&["hi"])).await;
        assert_eq!((events.iter().filter_map(seen).count(), error, model.calls().len()), (4, None, 3), "{wire:?}");
    }
}

#[tokio::test]
async fn calls_reuse_one_connection() {
    for wire in WIRES {
        let model = ScriptedModel::start().await;
        let proxy = super::faults::Relay::start().await;
        proxy.to(model.address());
        let config = ModelProvider { base_url: Some(proxy.base_url()), ..provider(wire, &model) };
        let mut session = session(&config);
        for _ in 0..3 {
            model.reply(reply(wire, &[Text(&["x"])]));
            let mut events = session.stream(&request(&["hi"]), CallMeter::none()).await.unwrap();
            while !matches!(events.next().await, Some(Ok(ModelEvent::Completed { .. }))) {}
        }
        assert_eq!((proxy.connections(), model.calls().len()), (1, 3), "{wire:?}");
    }
}
