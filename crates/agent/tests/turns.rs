//! Turns built from the lines of rollouts. The expectations were compared with what the reference shows for the same
//! files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use loomd_agent::turns::{Turns, interrupt_open};
use loomd_protocol::{ThreadItem, Turn};
use loomd_store::ThreadId;
use loomd_store::rollout::Line;
use proptest::prelude::*;
use serde_json::{Value, json};

fn thread() -> ThreadId {
    "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2".parse().unwrap()
}

fn rebuild(lines: &[Value]) -> Vec<Turn> {
    let (mut turns, mut from_bytes) = (Turns::new(thread()), Turns::new(thread()));
    for line in lines {
        let line = line.to_string();
        from_bytes.push_bytes(line.as_bytes());
        if let Some(line) = Line::parse(line.as_bytes()) {
            turns.push_line(&line);
        }
    }
    let turns = turns.finish();
    assert_eq!(from_bytes.finish(), turns);
    turns
}

fn event(payload: Value) -> Value {
    json!({ "timestamp": "2025-03-04T05:06:07.000Z", "type": "event_msg", "payload": payload })
}

fn started(id: &str) -> Value {
    event(json!({ "type": "task_started", "turn_id": id }))
}

fn complete(id: &str) -> Value {
    event(json!({ "type": "task_complete", "turn_id": id }))
}

fn aborted(id: Option<&str>) -> Value {
    event(json!({ "type": "turn_aborted", "turn_id": id, "reason": "interrupted" }))
}

fn user(text: &str) -> Value {
    event(json!({ "type": "user_message", "message": text }))
}

fn agent(text: &str) -> Value {
    event(json!({ "type": "agent_message", "message": text }))
}

fn rolled_back(turns: u32) -> Value {
    event(json!({ "type": "thread_rolled_back", "num_turns": turns }))
}

fn command(call: &str, turn: &str) -> Value {
    event(json!({
        "type": "exec_command_end", "call_id": call, "turn_id": turn, "command": ["echo", "a b"], "cwd": "/w",
        "parsed_cmd": [], "exit_code": 0, "duration": { "secs": 1, "nanos": 5_000_000 }, "status": "completed",
    }))
}

/// Each turn as `id status: item item`; a made-up id is `*`.
fn check(lines: &[Value], expected: &[&str]) {
    let shown: Vec<String> = rebuild(lines)
        .iter()
        .map(|turn| {
            let id = if turn.id.len() == 36 { "*" } else { &turn.id };
            let items: Vec<String> = turn.items.iter().map(show).collect();
            format!("{id} {:?}: {}", turn.status, items.join(" "))
        })
        .collect();
    assert_eq!(shown, expected);
}

fn show(item: &ThreadItem) -> String {
    let item = serde_json::to_value(item).unwrap();
    let text = item["text"].as_str().or(item["content"][0]["text"].as_str()).or(item["command"].as_str());
    format!("{}={}", item["id"].as_str().unwrap(), text.unwrap_or(item["type"].as_str().unwrap()))
}

#[test]
fn turns_with_start_and_end_records() {
    check(
        &[started("a"), user("hi"), agent("yo"), complete("a"), started("b"), user("more")],
        &["a Completed: item-1=hi item-2=yo", "b InProgress: item-3=more"],
    );
    check(&[started("a"), complete("a")], &["a Completed: "]);
    check(&[started("a"), started("b"), complete("a")], &["a Completed: ", "b InProgress: "]);
    check(&[started("a"), complete("unknown")], &["a Completed: "]);
}

#[test]
fn turns_without_start_records_begin_with_a_user_message() {
    check(
        &[user("one"), agent("1"), user("two"), agent("2")],
        &["* Completed: item-1=one item-2=1", "* Completed: item-3=two item-4=2"],
    );
    check(&[agent("alone"), complete("x")], &["* Completed: item-1=alone"]);
}

#[test]
fn an_aborted_turn_takes_later_items() {
    check(&[started("a"), user("hi"), aborted(Some("a")), agent("late")], &["a Interrupted: item-1=hi item-2=late"]);
    check(&[started("a"), aborted(None), complete("a")], &["a Interrupted: "]);
    check(&[started("a"), started("b"), aborted(Some("a"))], &["a Interrupted: ", "b InProgress: "]);
    check(&[started("a"), aborted(Some("unknown"))], &["a Interrupted: "]);
}

#[test]
fn a_rollback_drops_turns_and_numbers_items_after_the_remaining_ones() {
    let three = [started("a"), user("1"), complete("a"), started("b"), user("2"), complete("b"), user("3")];
    let with = |after: &[Value]| [three.as_slice(), after].concat();
    check(&with(&[rolled_back(2), user("new")]), &["a Completed: item-1=1", "* Completed: item-2=new"]);
    check(&with(&[rolled_back(0)]), &["a Completed: item-1=1", "b Completed: item-2=2", "* Completed: item-3=3"]);
    check(&with(&[rolled_back(99)]), &[]);
}

#[test]
fn the_late_end_of_a_command_is_added_to_its_own_turn() {
    check(
        &[started("a"), complete("a"), started("b"), command("c1", "a"), command("c2", "b"), command("c3", "unknown")],
        &["a Completed: c1=echo 'a b'", "b InProgress: c2=echo 'a b'"],
    );
    check(&[started("a"), command("c1", "a"), command("c1", "a")], &["a InProgress: c1=echo 'a b'"]);
}

#[test]
fn a_compaction_alone_makes_a_turn_that_the_next_message_joins() {
    let compacted = json!({ "timestamp": "", "type": "compacted", "payload": { "message": "summary" } });
    check(std::slice::from_ref(&compacted), &["* Completed: "]);
    check(&[compacted, user("hi")], &["* Completed: item-1=hi"]);
}

#[test]
fn an_error_fails_the_turn_that_it_is_about() {
    let error = |info: Value| event(json!({ "type": "error", "message": "boom", "codex_error_info": info }));
    check(&[started("a"), error(json!("bad_request")), complete("a")], &["a Failed: "]);
    check(&[started("a"), error(Value::Null)], &["a Failed: "]);
    check(&[started("a"), error(json!("thread_rollback_failed"))], &["a InProgress: "]);
    check(&[error(json!("other"))], &[]);
    let turns = rebuild(&[started("a"), error(json!({ "http_connection_failed": { "http_status_code": 500 } }))]);
    assert_eq!(
        serde_json::to_value(&turns[0].error).unwrap(),
        json!({
            "message": "boom",
            "codexErrorInfo": { "httpConnectionFailed": { "httpStatusCode": 500 } },
            "additionalDetails": null,
        })
    );
}

#[test]
fn consecutive_reasoning_texts_are_one_item() {
    let summary = |text: &str| event(json!({ "type": "agent_reasoning", "text": text }));
    let content = |text: &str| event(json!({ "type": "agent_reasoning_raw_content", "text": text }));
    let turns =
        rebuild(&[started("a"), summary("s1"), summary(""), content("c1"), summary("s2"), agent("x"), summary("s3")]);
    assert_eq!(
        serde_json::to_value(&turns[0].items).unwrap(),
        json!([
            { "type": "reasoning", "id": "item-1", "summary": ["s1", "s2"], "content": ["c1"] },
            { "type": "agentMessage", "id": "item-2", "text": "x", "phase": null, "memoryCitation": null },
            { "type": "reasoning", "id": "item-3", "summary": ["s3"], "content": [] },
        ])
    );
}

#[test]
fn every_kind_of_item_is_rebuilt() {
    let message = json!({
        "type": "user_message", "message": "look", "images": ["http://x/i.png"], "local_images": ["/a.png"],
        "text_elements": [{ "byte_range": { "start": 0, "end": 4 }, "placeholder": "p" }],
    });
    let patch = json!({
        "type": "patch_apply_end", "call_id": "p", "turn_id": "t", "success": true, "status": "completed",
        "changes": {
            "/w/b": { "type": "update", "unified_diff": "@@", "move_path": "/w/c" },
            "/w/a": { "type": "add", "content": "x\n" },
        },
    });
    let mcp = json!({
        "type": "mcp_tool_call_end", "call_id": "m", "invocation": { "server": "s", "tool": "t", "arguments": null },
        "duration": { "secs": 0, "nanos": 999_999_999 }, "result": { "Err": "bad" },
    });
    let spawn = json!({
        "type": "collab_agent_spawn_end", "call_id": "s", "sender_thread_id": "t1", "new_thread_id": null,
        "prompt": "p", "model": "m", "reasoning_effort": "high", "status": "running",
    });
    let wait = json!({
        "type": "collab_waiting_end", "call_id": "w", "sender_thread_id": "t1",
        "statuses": { "t3": "shutdown", "t2": { "completed": "done" } },
    });
    let hook = json!({
        "type": "message", "role": "user",
        "content": [{ "type": "input_text", "text": "<hook_prompt hook_run_id=\"r&amp;1\">do &lt;it&gt;</hook_prompt>" }],
    });
    let mut lines = vec![started("t")];
    lines.extend([message, patch, mcp, spawn, wait].map(event));
    lines.push(json!({ "timestamp": "", "type": "response_item", "payload": hook }));
    lines.push(event(json!({ "type": "exited_review_mode", "review_output": null })));
    let turns = rebuild(&lines);
    let ThreadItem::HookPrompt { id, .. } = &turns[0].items[5] else { panic!("a hook prompt") };
    assert_eq!(
        serde_json::to_value(&turns[0].items).unwrap(),
        json!([
            { "type": "userMessage", "id": "item-1", "content": [
                { "type": "text", "text": "look", "text_elements": [{ "byteRange": { "start": 0, "end": 4 }, "placeholder": "p" }] },
                { "type": "image", "url": "http://x/i.png" },
                { "type": "localImage", "path": "/a.png" },
            ], "clientId": null },
            { "type": "fileChange", "id": "p", "status": "completed", "changes": [
                { "path": "/w/a", "kind": { "type": "add" }, "diff": "x\n" },
                { "path": "/w/b", "kind": { "type": "update", "move_path": "/w/c" }, "diff": "@@\n\nMoved to: /w/c" },
            ] },
            { "type": "mcpToolCall", "id": "m", "server": "s", "tool": "t", "status": "failed", "arguments": null,
              "result": null, "error": { "message": "bad" }, "durationMs": 999, "readOnlyHint": null, "pluginId": null,
              "appContext": null, "mcpAppUi": null, "mcpAppResourceUri": null },
            { "type": "collabAgentToolCall", "id": "s", "tool": "spawnAgent", "status": "failed", "senderThreadId": "t1",
              "receiverThreadIds": [], "prompt": "p", "model": "m", "reasoningEffort": "high", "agentsStates": {} },
            { "type": "collabAgentToolCall", "id": "w", "tool": "wait", "status": "completed", "senderThreadId": "t1",
              "receiverThreadIds": ["t2", "t3"], "prompt": null, "model": null, "reasoningEffort": null,
              "agentsStates": { "t2": { "status": "completed", "message": "done" }, "t3": { "status": "shutdown", "message": null } } },
            { "type": "hookPrompt", "id": id, "fragments": [{ "text": "do <it>", "hookRunId": "r&1" }] },
            { "type": "exitedReviewMode", "id": "item-2", "review": "Reviewer failed to output a response." },
        ])
    );
}

#[test]
fn ids_are_stable_and_recorded_ids_are_kept() {
    let kept = event(json!({ "type": "agent_message", "message": "yo", "item_id": "msg_1" }));
    let lines = [user("one"), kept, user("two")];
    assert_eq!(rebuild(&lines), rebuild(&lines));
    check(&lines, &["* Completed: item-1=one msg_1=yo", "* Completed: item-3=two"]);
    let ids: Vec<String> = rebuild(&lines).into_iter().map(|turn| turn.id).collect();
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn an_open_turn_of_an_idle_thread_is_interrupted() {
    let mut turns = rebuild(&[started("a"), complete("a"), started("b")]);
    interrupt_open(&mut turns);
    let statuses: Vec<String> = turns.iter().map(|turn| format!("{:?}", turn.status)).collect();
    assert_eq!(statuses, ["Completed", "Interrupted"]);
}

proptest! {
    #[test]
    fn turns_can_be_built_from_records_in_any_order(order in prop::collection::vec(0usize..9, 0..40)) {
        let kinds = [
            started("a"), started("b"), complete("a"), aborted(None), user("u"), agent("x"), rolled_back(1),
            command("c", "a"), event(json!({ "type": "context_compacted" })),
        ];
        let lines: Vec<Value> = order.iter().map(|kind| kinds[*kind].clone()).collect();
        let turns = rebuild(&lines);
        let items: usize = turns.iter().map(|turn| turn.items.len()).sum();
        prop_assert!(items <= lines.len());
    }
}
