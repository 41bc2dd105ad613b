//! How every kind of item is mapped to other wires.

use super::*;

fn transcript(items: &[JsonValue]) -> Transcript {
    let item = |item: &JsonValue| InputItem::new(&serde_json::from_value(item.clone()).unwrap()).unwrap();
    Transcript::new(&items.iter().map(item).collect::<Vec<_>>())
}

fn check(items: &[JsonValue], messages: Vec<RoleMessage>) {
    assert_eq!(transcript(items).messages, messages, "{items:?}");
}

fn user(text: &str) -> JsonValue {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
}

fn assistant(text: &str) -> JsonValue {
    json!({ "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": text }] })
}

fn developer(text: &str) -> JsonValue {
    json!({ "type": "message", "role": "developer", "content": [{ "type": "input_text", "text": text }] })
}

fn function(id: &str, arguments: &str) -> JsonValue {
    json!({ "type": "function_call", "name": "f", "arguments": arguments, "call_id": id })
}

fn result(id: &str, text: &str) -> JsonValue {
    json!({ "type": "function_call_output", "call_id": id, "output": text })
}

fn user_message(texts: &[&str]) -> RoleMessage {
    RoleMessage::User(texts.iter().map(|text| ContentPart::Text((*text).into())).collect())
}

fn text(text: &str) -> AssistantBlock {
    AssistantBlock::Text(text.into())
}

fn call(id: &str, name: &str, arguments: JsonValue) -> AssistantBlock {
    let JsonValue::Object(arguments) = arguments else { panic!("no object: {arguments}") };
    AssistantBlock::Call(ToolCall { id: id.into(), name: name.into(), arguments })
}

fn outputs(outputs: &[(&str, &str)]) -> RoleMessage {
    let output =
        |(id, text): &(&str, &str)| ToolOutput { id: (*id).into(), parts: vec![ContentPart::Text((*text).into())] };
    RoleMessage::Outputs(outputs.iter().map(output).collect())
}

#[test]
fn adjacent_messages_of_one_role_are_joined() {
    check(
        &[user("a"), user("b"), assistant("c"), assistant(" "), assistant("d"), user("e")],
        vec![user_message(&["a", "b"]), RoleMessage::Assistant(vec![text("c"), text("d")]), user_message(&["e"])],
    );
}

#[test]
fn leading_developer_messages_become_instructions() {
    let found = transcript(&[developer("a"), developer("b"), user("c"), developer("d"), user("e")]);
    assert_eq!(found.preamble, ["a", "b"]);
    assert_eq!(found.messages, [user_message(&["c"]), RoleMessage::Developer("d".into()), user_message(&["e"])]);
}

#[test]
fn outputs_follow_the_message_with_their_calls() {
    let f = |id| call(id, "f", json!({}));
    check(
        &[
            user("a"),
            function("1", "{}"),
            assistant("meanwhile"),
            function("2", "{}"),
            result("2", "two"),
            user("note"),
            result("1", "one"),
            assistant("done"),
        ],
        vec![
            user_message(&["a"]),
            RoleMessage::Assistant(vec![f("1"), text("meanwhile"), f("2")]),
            outputs(&[("1", "one"), ("2", "two")]),
            user_message(&["note"]),
            RoleMessage::Assistant(vec![text("done")]),
        ],
    );
}

#[test]
fn repeated_call_ids_match_the_nearest_output() {
    let f = || call("0", "f", json!({}));
    check(
        &[function("0", ""), result("0", "one"), function("0", ""), result("0", "two")],
        vec![
            RoleMessage::Assistant(vec![f()]),
            outputs(&[("0", "one")]),
            RoleMessage::Assistant(vec![f()]),
            outputs(&[("0", "two")]),
        ],
    );
}

#[test]
fn outputs_without_calls_are_dropped_and_missing_outputs_read_aborted() {
    check(
        &[result("0", "no call"), user("a"), function("1", "{}"), user("b"), result("9", "no call")],
        vec![
            user_message(&["a"]),
            RoleMessage::Assistant(vec![call("1", "f", json!({}))]),
            outputs(&[("1", "aborted")]),
            user_message(&["b"]),
        ],
    );
}

#[test]
fn every_kind_of_call_becomes_a_function_call() {
    let shell = json!({ "type": "exec", "command": ["ls"], "env": null, "timeout_ms": 5, "user": null, "working_directory": "/w" });
    for (item, output, block) in [
        (function("c", r#"{"a":1}"#), result("c", "x"), call("c", "f", json!({ "a": 1 }))),
        (function("c", "not json"), result("c", "x"), call("c", "f", json!({ "arguments": "not json" }))),
        (
            json!({ "type": "function_call", "name": "f", "namespace": "n", "arguments": "[]", "call_id": "c" }),
            result("c", "x"),
            call("c", "n__f", json!({ "arguments": "[]" })),
        ),
        (
            json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "p", "call_id": "c" }),
            json!({ "type": "custom_tool_call_output", "call_id": "c", "output": "x" }),
            call("c", "apply_patch", json!({ "input": "p" })),
        ),
        (
            json!({ "type": "local_shell_call", "call_id": "c", "status": "completed", "action": shell }),
            result("c", "x"),
            call("c", "shell", json!({ "command": ["ls"], "timeout_ms": 5, "workdir": "/w" })),
        ),
    ] {
        check(&[item, output], vec![RoleMessage::Assistant(vec![block]), outputs(&[("c", "x")])]);
    }
    check(
        &[
            json!({ "type": "tool_search_call", "call_id": "c", "execution": "client", "arguments": { "query": "q" } }),
            json!({ "type": "tool_search_output", "call_id": "c", "status": "completed", "execution": "client", "tools": [1] }),
        ],
        vec![RoleMessage::Assistant(vec![call("c", "tool_search", json!({ "query": "q" }))]), outputs(&[("c", "[1]")])],
    );
}

#[test]
fn provider_side_items_are_dropped() {
    for item in [
        json!({ "type": "web_search_call", "status": "completed", "action": { "type": "search", "query": "q" } }),
        json!({ "type": "image_generation_call", "id": "i", "status": "completed", "result": "aGk=" }),
        json!({ "type": "tool_search_call", "execution": "server", "arguments": {} }),
        json!({ "type": "tool_search_output", "status": "completed", "execution": "server", "tools": [] }),
    ] {
        check(&[user("a"), item, assistant("b")], vec![user_message(&["a"]), RoleMessage::Assistant(vec![text("b")])]);
    }
    let compaction = json!({ "type": "compaction", "encrypted_content": "E" });
    check(&[user("a"), compaction, user("b")], vec![user_message(&["a", UNREADABLE, "b"])]);
}

#[test]
fn reasoning_keeps_its_origin() {
    let reasoning = |origin: Option<&str>| json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "s" }], "encrypted_content": origin });
    let signature = "x".into();
    for (item, origin) in [
        (reasoning(Some("anthropic:thinking:x")), Some(ReasoningOrigin::Thinking { signature })),
        (reasoning(Some("gAAAA")), None),
        (reasoning(None), None),
    ] {
        check(&[item], vec![RoleMessage::Assistant(vec![AssistantBlock::Reasoning { text: "s".into(), origin }])]);
    }
}

#[test]
fn images_stay_in_their_message_or_output() {
    let url = "data:image/png;base64,aGk=";
    let image = json!({ "type": "input_image", "image_url": url });
    let picture = || ContentPart::Image { url: url.into() };
    check(
        &[
            json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "a" }, image] }),
            function("c", ""),
            json!({ "type": "function_call_output", "call_id": "c", "output": [image] }),
        ],
        vec![
            RoleMessage::User(vec![ContentPart::Text("a".into()), picture()]),
            RoleMessage::Assistant(vec![call("c", "f", json!({}))]),
            RoleMessage::Outputs(vec![ToolOutput { id: "c".into(), parts: vec![picture()] }]),
        ],
    );
}
