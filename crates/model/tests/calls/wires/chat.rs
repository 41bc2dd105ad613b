//! Behaviour of Chat Completions only.

use loomd_config::config_toml::{ModelProvider, WireApi};
use loomd_model::{InputItem, Request};
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::ModelOutput::*;
use loomd_testkit::model::Reply;
use loomd_testkit::model::chat::{DONE, chunk, finish};
use loomd_testkit::model::event;
use serde_json::{Value, json};

use super::super::{call, request, session, session_of};
use super::{provider, reply, request_with_tools, seen};

/// Checks the events of a stream of chunks.
async fn check(stream: &str, expected: &[&str]) {
    let model = ScriptedModel::start().await;
    model.reply(Reply::raw(stream));
    let mut session = session(&provider(WireApi::Chat, &model));
    let (events, error) = call(&mut session, &request_with_tools()).await;
    let events: Vec<_> = events.iter().filter_map(seen).collect();
    assert_eq!((events, error), (expected.iter().map(|event| (*event).to_owned()).collect(), None), "{stream}");
}

#[tokio::test]
async fn reasoning_is_read_from_every_known_field() {
    let stop = finish("stop");
    let expected = ["+reasoning", "think hm", "=reasoning hm", "+message", "text a", "=message a", "done"];
    for thought in [
        json!({ "reasoning_content": "hm" }),
        json!({ "reasoning_content": "hm", "content": null }),
        json!({ "reasoning": "hm", "content": "" }),
        json!({ "reasoning": "hm", "reasoning_content": "hm" }),
        json!({ "reasoning": "hm", "reasoning_details": [{ "type": "reasoning.text", "text": "hm", "index": 0 }] }),
        json!({ "content": [{ "type": "thinking", "thinking": [{ "type": "text", "text": "hm" }] }] }),
        json!({ "content": "<think>hm</think>\n\n" }),
    ] {
        check(&(chunk(thought) + &chunk(json!({ "content": "a" })) + &stop + DONE), &expected).await;
    }
}

#[tokio::test]
async fn tool_calls_are_distinguished_by_index_or_id() {
    let call = |call: Value| chunk(json!({ "tool_calls": [call] }));
    let function = |name: &str, arguments: Value| json!({ "name": name, "arguments": arguments });
    let expected = [r#"=call run {"a":1} x1"#, r#"=call run {"b":2} x2"#, "done"];
    for calls in [
        // Interleaved.
        call(json!({ "index": 1, "id": "x2", "function": function("run", "{\"b\"".into()) }))
            + &call(json!({ "index": 0, "id": "x1", "function": function("run", "{\"a\"".into()) }))
            + &call(json!({ "index": 1, "function": { "arguments": ":2}" } }))
            + &call(json!({ "index": 0, "function": { "arguments": ":1}" } })),
        // All have the same index, and arrive whole.
        call(json!({ "index": 0, "id": "x1", "function": function("run", "{\"a\":1}".into()) }))
            + &call(json!({ "index": 0, "id": "x2", "function": function("run", "{\"b\":2}".into()) })),
        // None has an index; arguments are objects.
        call(json!({ "id": "x1", "function": function("run", json!({ "a": 1 })) }))
            + &call(json!({ "id": "x2", "function": function("run", json!({ "b": 2 })) })),
        // Id and name are repeated with every fragment.
        call(json!({ "index": 0, "id": "x1", "function": function("run", "{\"a\"".into()) }))
            + &call(json!({ "index": 0, "id": "x1", "function": function("run", ":1}".into()) }))
            + &call(json!({ "index": 1, "id": "x2", "function": function("run", "{\"b\":2}".into()) })),
    ] {
        check(&(calls + &finish("tool_calls") + DONE), &expected).await;
    }
}

#[tokio::test]
async fn a_call_with_a_missing_or_used_id_gets_a_new_one() {
    let model = ScriptedModel::start().await;
    let calls = |ids: [&str; 2]| {
        let call =
            |index: usize| json!({ "index": index, "id": ids[index], "function": { "name": "run", "arguments": "" } });
        Reply::raw(chunk(json!({ "tool_calls": [call(0), call(1)] })) + &finish("tool_calls") + DONE)
    };
    let mut session = session(&provider(WireApi::Chat, &model));
    let mut request = request_with_tools();
    let mut ids = Vec::new();
    for sent in [["", ""], ["call_0", "call_0"], ["call_0", "call_1"]] {
        model.reply(calls(sent));
        let (events, _) = call(&mut session, &request).await;
        for event in events {
            if let loomd_model::ModelEvent::ItemDone { item, .. } = event {
                request.input.extend(InputItem::new(&item));
                let loomd_protocol::ResponseItem::FunctionCall { call_id, arguments, .. } = item else {
                    panic!("{item:?}")
                };
                assert_eq!(arguments, "{}");
                ids.push(call_id);
            }
        }
    }
    assert_eq!((ids[2].as_str(), ids[5].as_str()), ("call_0", "call_1"));
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!((count, ids.len()), (6, 6), "{ids:?}");
}

#[tokio::test]
async fn usage_and_finish_are_read_in_every_known_form() {
    let text = chunk(json!({ "content": "a" }));
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2 });
    let with_reason = |more: Value| {
        let mut value = json!({ "id": "c", "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
        value.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event(&value)
    };
    let cached = json!({ "prompt_tokens": 3, "completion_tokens": 2, "prompt_cache_hit_tokens": 1 });
    for (end, done) in [
        (with_reason(json!({ "usage": usage })) + DONE, "done 3/0 2/0 5"),
        (with_reason(json!({ "usage": usage })), "done 3/0 2/0 5"),
        (with_reason(json!({ "x_groq": { "id": "r", "usage": usage } })) + DONE, "done 3/0 2/0 5"),
        (with_reason(json!({ "usage": cached })) + DONE, "done 3/1 2/0 5"),
        (with_reason(json!({ "usage": "none" })), "done"),
        (finish("eos"), "done"),
        (DONE.into(), "done"),
    ] {
        check(&(text.clone() + &end), &["+message", "text a", "=message a", done]).await;
    }
}

#[tokio::test]
async fn reasoning_is_sent_back_as_the_provider_requires() {
    let model = ScriptedModel::start().await;
    let piece = |text: &str| json!({ "reasoning_details": [{ "type": "reasoning.text", "text": text, "index": 0 }] });
    let sealed = json!({ "reasoning_details": [{ "type": "reasoning.text", "signature": "S", "index": 0 }] });
    let secret = json!({ "reasoning_details": [{ "type": "reasoning.encrypted", "data": "E", "index": 1 }] });
    let stream =
        chunk(piece("a")) + &chunk(piece("b")) + &chunk(sealed) + &chunk(secret) + &chunk(json!({ "content": "x" }));
    model.reply(Reply::raw(stream + &finish("stop") + DONE));
    let config = provider(WireApi::Chat, &model);
    let mut session = session_of("openrouter", &config, super::super::NO_ENV, None);
    let mut request = request(&["hi"]);
    answer(&mut session, &mut request).await;
    call(&mut session, &request).await;
    let sent = model.call(1).await;
    let details = json!([
        { "type": "reasoning.text", "text": "ab", "index": 0, "signature": "S" },
        { "type": "reasoning.encrypted", "data": "E", "index": 1 },
    ]);
    assert_eq!(sent.body["messages"][2], json!({ "role": "assistant", "content": "x", "reasoning_details": details }));
}

#[tokio::test]
async fn reasoning_between_calls_is_sent_back_until_the_next_user_message() {
    let model = ScriptedModel::start().await;
    model.reply(reply(WireApi::Chat, &[Think(&["hm"]), Call("run", "{}", "c1")]));
    let mut session = session(&provider(WireApi::Chat, &model));
    let mut request = request_with_tools();
    answer(&mut session, &mut request).await;
    let output = json!({ "type": "function_call_output", "call_id": "c1", "output": "ok" });
    request.input.extend(InputItem::new(&serde_json::from_value(output).unwrap()));
    call(&mut session, &request).await;
    request.input.push(super::super::user("next"));
    call(&mut session, &request).await;
    let thought = async |number| model.call(number).await.body["messages"][2].get("reasoning_content").cloned();
    assert_eq!((thought(1).await, thought(2).await), (Some("hm".into()), None));
}

/// Appends one response to the conversation.
async fn answer(session: &mut loomd_model::Session, request: &mut Request) {
    let (events, error) = call(session, request).await;
    assert_eq!(error, None);
    for event in events {
        if let loomd_model::ModelEvent::ItemDone { item, .. } = event {
            request.input.extend(InputItem::new(&item));
        }
    }
}

#[tokio::test]
async fn requests_follow_the_quirks_of_the_provider() {
    let history = || {
        let mut request = request_with_tools();
        for item in [
            json!({ "type": "function_call", "name": "run", "arguments": "{}", "call_id": "functions.run:0" }),
            json!({ "type": "function_call_output", "call_id": "functions.run:0", "output": "ok" }),
        ] {
            request.input.extend(InputItem::new(&serde_json::from_value(item).unwrap()));
        }
        request.output_schema = Some(json!({ "type": "object" }));
        request
    };
    for (id, format, options, longest) in [
        ("mine", "json_schema", json!({ "include_usage": true }), 40),
        ("deepseek", "json_object", json!({ "include_usage": true }), 40),
        ("mistral", "json_schema", Value::Null, 9),
    ] {
        let model = ScriptedModel::start().await;
        let config: ModelProvider = provider(WireApi::Chat, &model);
        call(&mut session_of(id, &config, super::super::NO_ENV, None), &history()).await;
        let body = model.call(0).await.body;
        assert_eq!((&body["response_format"]["type"], &body["stream_options"]), (&format.into(), &options), "{id}");
        let (call_id, output_id) =
            (body["messages"][2]["tool_calls"][0]["id"].as_str().unwrap(), &body["messages"][3]["tool_call_id"]);
        assert_eq!((call_id, call_id.len() <= longest), (output_id.as_str().unwrap(), true), "{id}");
    }
}
