//! Conversations built from records, and their input for the model.

use loomd_store::{Batch, Durability, MemoryStore, Store, ThreadId};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn replay(lines: &[Value]) -> Conversation {
    let mut replay = ConversationBuilder::default();
    for line in lines {
        let line = line.to_string();
        replay.line(&Line::parse(line.as_bytes()).unwrap());
    }
    replay.finish(Position::START)
}

/// The items that are sent, each in a few words.
fn sent(conversation: &Conversation, images: bool) -> Vec<String> {
    let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), Into::into);
    let part = |part: &Value| if part["type"] == "input_image" { "(image)".into() } else { word(&part["text"]) };
    let parts = |parts: &Value| parts.as_array().into_iter().flatten().map(part).collect::<Vec<_>>().join("+");
    let items = conversation.input(images).into_iter().map(|item| json!(item.decode().unwrap()));
    items
        .map(|item| match word(&item["type"]).as_str() {
            "message" => format!("{}: {}", word(&item["role"]), parts(&item["content"])),
            "function_call" | "custom_tool_call" => format!("call {}", word(&item["call_id"])),
            kind if kind.ends_with("_output") && item["output"].is_array() => {
                format!("output {}: {}", word(&item["call_id"]), parts(&item["output"]))
            }
            kind if kind.ends_with("_output") => {
                format!("output {}: {}", word(&item["call_id"]), word(&item["output"]))
            }
            kind => kind.into(),
        })
        .collect()
}

fn line(kind: &str, payload: Value) -> Value {
    json!({ "timestamp": "2025-03-04T05:06:07.000Z", "type": kind, "payload": payload })
}

fn event(payload: Value) -> Value {
    line("event_msg", payload)
}

fn begin(turn: &str) -> Value {
    event(json!({ "type": "task_started", "turn_id": turn }))
}

fn end(turn: &str) -> Value {
    event(json!({ "type": "task_complete", "turn_id": turn }))
}

fn rolled_back(turns: u32) -> Value {
    event(json!({ "type": "thread_rolled_back", "num_turns": turns }))
}

fn said(role: &str, text: &str) -> Value {
    let kind = if role == "assistant" { "output_text" } else { "input_text" };
    line("response_item", json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] }))
}

fn user(text: &str) -> Value {
    said("user", text)
}

fn call(id: &str) -> Value {
    line("response_item", json!({ "type": "function_call", "name": "f", "arguments": "{}", "call_id": id }))
}

fn output(id: &str) -> Value {
    line("response_item", json!({ "type": "function_call_output", "call_id": id, "output": "found" }))
}

fn compacted(kept: &[&str]) -> Value {
    let kept = kept.iter().map(|text| user(text)["payload"].clone()).collect::<Vec<_>>();
    line("compacted", json!({ "message": "", "replacement_history": kept }))
}

fn settings(cwd: &str) -> Value {
    let sandbox = json!({ "type": "danger-full-access" });
    line(
        "turn_context",
        json!({ "cwd": cwd, "approval_policy": "never", "sandbox_policy": sandbox, "model": "m", "summary": "auto" }),
    )
}

/// A turn with one user message, its name, and one answer.
fn turn(name: &str) -> Vec<Value> {
    vec![begin(name), settings(&format!("/{name}")), user(name), said("assistant", &format!("re {name}")), end(name)]
}

fn check(lines: &[Vec<Value>], expected: &[&str]) {
    assert_eq!(sent(&replay(&lines.concat()), true), expected);
}

#[test]
fn a_rollback_removes_the_items_of_its_turns() {
    let [a, b, c] = ["a", "b", "c"].map(turn);
    check(&[a.clone(), b.clone(), vec![rolled_back(1)]], &["user: a", "assistant: re a"]);
    check(&[a.clone(), b.clone(), vec![rolled_back(2)]], &[]);
    check(&[a.clone(), vec![rolled_back(9)], b.clone()], &["user: b", "assistant: re b"]);
    check(&[a.clone(), b.clone(), vec![rolled_back(1)], c, vec![rolled_back(1)]], &["user: a", "assistant: re a"]);
    check(&[a, b, vec![rolled_back(0)]], &["user: a", "assistant: re a", "user: b", "assistant: re b"]);
}

#[test]
fn a_rollback_removes_steered_input_with_its_turn() {
    let steered = vec![begin("b"), user("b"), call("1"), output("1"), user("steered"), end("b")];
    check(&[turn("a"), steered, vec![rolled_back(1)]], &["user: a", "assistant: re a"]);
    let stopped = vec![
        begin("b"),
        user("b"),
        user("<turn_aborted>\nx\n</turn_aborted>"),
        event(json!({
            "type": "turn_aborted", "turn_id": "b", "reason": "interrupted"
        })),
    ];
    check(&[turn("a"), stopped, vec![rolled_back(1)]], &["user: a", "assistant: re a"]);
    // Old rollouts have no `task_started` records.
    check(&[vec![user("a"), said("assistant", "x"), user("b"), rolled_back(1)]], &["user: a", "assistant: x"]);
}

#[test]
fn a_rollback_of_a_compacted_turn_restores_the_items_before_the_summary() {
    let [a, b, c] = ["a", "b", "c"].map(turn);
    let within = vec![begin("d"), compacted(&["a", "b", "summary"]), user("d"), end("d")];
    let lines = [a.clone(), b.clone(), within, c.clone()];
    check(&lines, &["user: a", "user: b", "user: summary", "user: d", "user: c", "assistant: re c"]);
    let back = |turns: u32| [lines.concat(), vec![rolled_back(turns)]];
    check(&back(1), &["user: a", "user: b", "user: summary", "user: d"]);
    check(&back(2), &["user: a", "assistant: re a", "user: b", "assistant: re b"]);
    check(&back(3), &["user: a", "assistant: re a"]);
    // Two summaries in one turn, both rolled back, and another turn.
    let again = vec![begin("e"), compacted(&["again"]), compacted(&["and again"]), user("e"), end("e")];
    let lines = [lines.concat(), again, vec![rolled_back(3)], c];
    check(&lines, &["user: a", "assistant: re a", "user: b", "assistant: re b", "user: c", "assistant: re c"]);
}

#[test]
fn a_rollback_counts_turns_without_user_input() {
    let summary = vec![begin("s"), compacted(&["a", "summary"]), end("s")];
    let lines = [turn("a"), turn("b"), summary.clone()].concat();
    let back = |lines: &[Value], turns: u32| [lines.to_vec(), vec![rolled_back(turns)]];
    check(&back(&lines, 1), &["user: a", "assistant: re a", "user: b", "assistant: re b"]);
    check(&back(&lines, 2), &["user: a", "assistant: re a"]);
    let lines = [turn("a"), summary, turn("b")].concat();
    check(&back(&lines, 1), &["user: a", "user: summary"]);
    check(&back(&lines, 2), &["user: a", "assistant: re a"]);
    let command = vec![begin("c"), user("<user_shell_command>\nx\n</user_shell_command>"), end("c")];
    let lines = [turn("a"), command].concat();
    check(&back(&lines, 1), &["user: a", "assistant: re a"]);
    check(&back(&lines, 2), &[]);
    // Old rollouts have no `task_started` records; a summary belongs to the turn of the next user message.
    let lines = [user("a"), said("assistant", "x"), compacted(&["summary"]), user("b")];
    check(&back(&lines, 1), &["user: a", "assistant: x"]);
}

#[test]
fn a_rollback_restores_the_settings_that_the_model_was_sent() {
    let cwd = |lines: &[Vec<Value>]| replay(&lines.concat()).baseline.map(|known| known.cwd);
    assert_eq!(cwd(&[turn("a"), turn("b")]).as_deref(), Some("/b"));
    assert_eq!(cwd(&[turn("a"), turn("b"), vec![rolled_back(1)]]).as_deref(), Some("/a"));
    assert_eq!(cwd(&[turn("a"), vec![rolled_back(1)]]), None);
    assert_eq!(cwd(&[turn("a"), vec![begin("c"), compacted(&["x"]), end("c")]]), None, "they have to be told again");
    assert_eq!(cwd(&[turn("a"), vec![begin("c"), compacted(&["x"]), end("c")], turn("b")]).as_deref(), Some("/b"));
}

#[test]
fn a_call_without_output_is_sent_as_aborted_and_an_output_without_call_is_left_out() {
    check(
        &[vec![user("a"), output("0"), call("1"), call("2"), output("2"), user("b")]],
        &["user: a", "call 1", "output 1: aborted", "call 2", "output 2: found", "user: b"],
    );
    let custom = json!({ "type": "custom_tool_call", "name": "apply_patch", "input": "x", "call_id": "c" });
    check(&[vec![line("response_item", custom)]], &["call c", "output c: aborted"]);
    check(&[vec![said("system", "secret"), said("developer", "be brief")]], &["developer: be brief"]);
}

#[test]
fn images_are_replaced_for_models_without_image_input() {
    let image = json!({ "type": "input_image", "image_url": "data:image/png;base64,AA==" });
    let shown = json!({ "type": "message", "role": "user", "content": [
        { "type": "input_text", "text": "look" }, image ] });
    let viewed = json!({ "type": "function_call_output", "call_id": "1", "output": [image] });
    let lines = [line("response_item", shown), call("1"), line("response_item", viewed)];
    let mut conversation = replay(&lines);
    assert_eq!(sent(&conversation, true), ["user: look+(image)", "call 1", "output 1: (image)"]);
    let omitted = images::OMITTED;
    let blind = [format!("user: look+{omitted}"), "call 1".into(), format!("output 1: {omitted}")];
    assert_eq!(sent(&conversation, false), blind);

    assert!(conversation.drop_last_images("Invalid image"));
    assert_eq!(sent(&conversation, true), ["user: look+(image)", "call 1", "output 1: Invalid image"]);
    assert!(!conversation.drop_last_images("Invalid image"), "there are no more in the last output");
}

#[test]
fn dropping_the_oldest_call_drops_its_output() {
    let mut conversation = replay(&[call("1"), user("a"), output("1"), user("b")]);
    assert!(conversation.drop_oldest());
    assert_eq!(sent(&conversation, true), ["user: a", "user: b"]);
    assert!(conversation.drop_oldest() && conversation.drop_oldest() && !conversation.drop_oldest());
    assert!(conversation.is_empty());
}

#[test]
fn user_texts_leave_out_context_messages() {
    let lines = [
        user("# AGENTS.md instructions for /w\n\nx"),
        user("<environment_context>\n</environment_context>"),
        user("one"),
        user("<user_shell_command>\nls\n</user_shell_command>"),
        user("two"),
        user(&crate::prompts::summary_message("old")),
    ];
    assert_eq!(replay(&lines).user_texts(), ["one", "two"]);
}

/// The records of a turn, in order.
fn any_turn() -> impl Strategy<Value = Vec<Value>> {
    let step = prop_oneof![
        "[a-c]{1,3}".prop_map(|text| vec![said("assistant", &text)]),
        "[0-9]{4}".prop_map(|id| vec![call(&id), output(&id)]),
        "[0-9]{4}".prop_map(|id| vec![call(&id)]),
        "[a-c]{1,3}".prop_map(|text| vec![user(&text)]),
        "[a-c]{1,3}".prop_map(|text| vec![compacted(&["kept", &text])]),
        "[a-c]{1,3}".prop_map(|text| vec![settings(&format!("/{text}"))]),
    ];
    (prop::collection::vec(step, 0..6), 0usize..6).prop_map(|(steps, at)| {
        let mut lines = vec![begin("t")];
        let at = at.min(steps.len());
        lines.extend(steps[..at].concat());
        lines.push(user("said"));
        lines.extend(steps[at..].concat());
        lines.push(end("t"));
        lines
    })
}

proptest! {
    #[test]
    fn a_rollback_restores_the_conversation_before_its_turns(
        turns in prop::collection::vec(any_turn(), 1..7), back in 1usize..8, later in any_turn(),
    ) {
        let kept = turns.len().saturating_sub(back);
        let taken_back = [turns.concat(), vec![rolled_back(u32::try_from(back).unwrap())]].concat();
        let same = |left: &[Value], right: &[Value]| {
            let (left, right) = (replay(left), replay(right));
            let cwd = |conversation: &Conversation| conversation.baseline.as_ref().map(|known| known.cwd.clone());
            (sent(&left, true), cwd(&left)) == (sent(&right, true), cwd(&right))
        };
        let before = turns[..kept].concat();
        prop_assert!(same(&taken_back, &before));
        prop_assert!(same(&[taken_back, later.clone()].concat(), &[before, later].concat()));
    }

    #[test]
    fn every_call_that_is_sent_has_one_output(turns in prop::collection::vec(any_turn(), 0..5)) {
        let sent = sent(&replay(&turns.concat()), false);
        let ids = |prefix: &str| {
            let ids = sent.iter().filter_map(|item| item.strip_prefix(prefix));
            let mut ids: Vec<_> = ids.map(|rest| rest.split(':').next().unwrap()).collect();
            ids.sort_unstable();
            ids.dedup();
            ids.into_iter().map(str::to_owned).collect::<Vec<_>>()
        };
        prop_assert_eq!(ids("call "), ids("output "));
    }
}

/// Also turns whose bounds are not recorded, summaries of old releases, counts of tokens and rollbacks.
fn any_part() -> impl Strategy<Value = Vec<Value>> {
    let usage = |total: i64| {
        let tokens = json!({
            "input_tokens": total, "cached_input_tokens": 0, "output_tokens": 0, "reasoning_output_tokens": 0,
            "total_tokens": total,
        });
        let info = json!({ "total_token_usage": tokens, "last_token_usage": tokens, "model_context_window": 1 });
        event(json!({ "type": "token_count", "info": info }))
    };
    prop_oneof![
        6 => any_turn(),
        1 => any_turn().prop_map(|lines| lines[1..].to_vec()),
        1 => any_turn().prop_map(|lines| lines[..lines.len() - 1].to_vec()),
        1 => Just(vec![line("compacted", json!({ "message": "old" }))]),
        2 => (0i64..9).prop_map(move |total| vec![usage(total)]),
        2 => (0u32..4).prop_map(|turns| vec![rolled_back(turns)]),
    ]
}

proptest! {
    #[test]
    fn loading_from_the_last_summary_equals_loading_the_whole_rollout(
        parts in prop::collection::vec(any_part(), 0..10),
    ) {
        let id: ThreadId = "01a1ddf1-cd57-76b3-a003-bb9a4aeb2ad2".parse().unwrap();
        let meta = json!({
            "id": id, "timestamp": "2025-03-04T05:06:07.000Z", "cwd": "/", "originator": "o", "cli_version": "1",
        });
        let lines = [vec![line("session_meta", meta)], parts.concat()].concat();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let (part, whole) = runtime.block_on(async {
            let reader = MemoryStore::new().create(id, jiff::Timestamp::UNIX_EPOCH);
            let mut writer = reader.writer().await.unwrap();
            writer.append(Batch::of_lines(text.into_bytes()), Durability::Flushed).await.unwrap();
            let part = Conversation::load(&*reader).await.unwrap();
            (part, Conversation::load_whole(&*reader).await.unwrap())
        });
        prop_assert_eq!(sent(&part, true), sent(&whole, true));
        prop_assert_eq!((part.baseline, part.usage, part.end), (whole.baseline, whole.usage, whole.end));
    }
}
