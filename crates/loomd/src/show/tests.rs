//! Whole turns, rendered for terminals of several widths, in colour, and for a pipe.

use insta::assert_snapshot;
use loomd_protocol::ServerNotification;
use serde_json::value::to_raw_value;
use serde_json::{Value, json};

use super::{Renderer, Style};

/// The text printed for these notifications, with escape characters made visible.
fn shown(style: Style, notifications: &[(&str, Value)]) -> String {
    let mut renderer = Renderer::new(style);
    let text: String =
        notifications.iter().map(|(method, params)| renderer.show(&notification(method, params))).collect();
    text.replace('\u{1b}', "␛")
}

fn notification(method: &str, params: &Value) -> ServerNotification {
    let mut params = params.clone();
    params["threadId"] = "t".into();
    params["turnId"] = "u".into();
    let params = to_raw_value(&params).unwrap();
    ServerNotification::decode(method, Some(&params)).unwrap()
}

fn plain(width: usize) -> Style {
    Style::new(Some(width), false)
}

fn message(id: &str, text: &str) -> Value {
    json!({ "item": { "type": "agentMessage", "id": id, "text": text, "phase": null, "memoryCitation": null } })
}

fn delta(id: &str, text: &str) -> Value {
    json!({ "itemId": id, "delta": text })
}

fn command(id: &str, command: &str, status: &str, output: Option<&str>, code: Option<i32>) -> Value {
    json!({ "item": {
        "type": "commandExecution", "id": id, "command": command, "cwd": "/w", "processId": null, "status": status,
        "commandActions": [], "aggregatedOutput": output, "exitCode": code, "durationMs": code.map(|_| 1234),
    } })
}

fn turn(status: &str) -> Value {
    json!({ "turn": { "id": "u", "items": [], "status": status, "error": null } })
}

/// A turn with items of every kind.
fn whole_turn() -> Vec<(&'static str, Value)> {
    let numbers: String = (1..=20).map(|number| format!("line {number}\n")).collect();
    let tests = "/bin/bash -lc 'cargo test --workspace --all-features'";
    let usage = json!({
        "totalTokens": 13000, "inputTokens": 12345, "cachedInputTokens": 8000, "outputTokens": 678,
        "reasoningOutputTokens": 90,
    });
    vec![
        ("turn/started", turn("inProgress")),
        ("item/reasoning/summaryTextDelta", json!({ "itemId": "r", "delta": "Looking for the ", "summaryIndex": 0 })),
        ("item/reasoning/summaryTextDelta", json!({ "itemId": "r", "delta": "cause.", "summaryIndex": 0 })),
        (
            "turn/plan/updated",
            json!({ "explanation": null, "plan": [
            { "step": "Run the tests", "status": "completed" },
            { "step": "Fix what is broken, however long it takes to describe it", "status": "inProgress" },
            { "step": "Run them again", "status": "pending" },
        ] }),
        ),
        ("item/agentMessage/delta", delta("m1", "I will run the te")),
        ("item/agentMessage/delta", delta("m1", "sts first, and then see what \u{1b}[31mthey")),
        ("item/agentMessage/delta", delta("m1", " say.")),
        ("item/completed", message("m1", "…")),
        ("item/started", command("c1", tests, "inProgress", None, None)),
        ("item/completed", command("c1", tests, "failed", Some(&numbers), Some(101))),
        ("item/started", command("c2", "ls", "inProgress", None, None)),
        ("item/completed", command("c2", "ls", "completed", Some("a\nb\n"), Some(0))),
        (
            "item/completed",
            json!({ "item": { "type": "fileChange", "id": "f", "status": "completed", "changes": [
            { "path": "/w/new.txt", "kind": { "type": "add" }, "diff": "hello\n" },
            { "path": "/w/old.txt", "kind": { "type": "update", "move_path": "/w/moved.txt" },
              "diff": "@@ -1,2 +1,2 @@\n context\n-before\n+after\n\n\nMoved to: /w/moved.txt" },
        ] } }),
        ),
        (
            "error",
            json!({ "error": { "message": "stream disconnected", "codexErrorInfo": null, "additionalDetails": null },
            "willRetry": true }),
        ),
        ("item/completed", message("m2", "Done:\n\n- the tests pass\n- nothing else was changed")),
        (
            "thread/tokenUsage/updated",
            json!({ "tokenUsage": { "total": usage, "last": usage, "modelContextWindow": 100000 } }),
        ),
        ("turn/completed", turn("completed")),
    ]
}

#[test]
fn a_turn_in_a_wide_terminal() {
    assert_snapshot!(shown(plain(72), &whole_turn()));
}

#[test]
fn a_turn_in_a_narrow_terminal() {
    assert_snapshot!(shown(plain(28), &whole_turn()));
}

#[test]
fn a_turn_in_colour() {
    assert_snapshot!(shown(Style::new(Some(72), true), &whole_turn()));
}

#[test]
fn a_turn_in_a_pipe() {
    assert_snapshot!(shown(Style::new(None, false), &whole_turn()));
}

#[test]
fn results_of_parallel_items_repeat_their_title() {
    let text = shown(
        plain(40),
        &[
            ("item/started", command("a", "sleep 1", "inProgress", None, None)),
            ("item/started", command("b", "sleep 2", "inProgress", None, None)),
            ("item/completed", command("a", "sleep 1", "completed", None, Some(0))),
            ("item/agentMessage/delta", delta("m", "meanwhile")),
            ("item/completed", command("b", "sleep 2", "declined", None, None)),
            ("turn/completed", turn("interrupted")),
        ],
    );
    assert_snapshot!(text, @r"
    $ sleep 1
    $ sleep 2
    $ sleep 1
      ✓ done, 1.2s

    meanwhile

    $ sleep 2
      ✗ not allowed
    interrupted
    ");
}

fn output(id: &str, text: &str) -> (&'static str, Value) {
    ("item/commandExecution/outputDelta", delta(id, text))
}

#[test]
fn output_of_a_command_is_printed_as_it_comes() {
    let mut renderer = Renderer::new(plain(40));
    let mut show = |(method, params): (&str, Value)| renderer.show(&notification(method, &params));
    assert_eq!(show(("item/started", command("a", "make", "inProgress", None, None))), "$ make\n");
    assert_eq!(show(output("a", "one\ntw")), "  │ one\n");
    assert_eq!(show(output("a", "o\n")), "  │ two\n");
    assert_eq!(show(output("a", "3\n4\n5\n6\n7\n")), "  │ 3\n  │ 4\n  │ 5\n  │ 6\n");
    assert_eq!(show(output("a", "8\n9\n10\n11\n12\n13\n")), "");
    assert_eq!(renderer.status(), "running a command: 13");
    let whole = "one\ntwo\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n";
    let end = renderer.show(&notification("item/completed", &command("a", "make", "completed", Some(whole), Some(0))));
    assert_eq!(end, "  │ … 3 more lines\n  │ 10\n  │ 11\n  │ 12\n  │ 13\n  ✓ done, 1.2s\n");
}

#[test]
fn a_command_that_goes_on_keeps_its_line_its_output_and_its_end() {
    let text = shown(
        plain(40),
        &[
            ("item/started", command("a", "serve", "inProgress", None, None)),
            output("a", "ready\n"),
            ("item/agentMessage/delta", delta("m", "It is up.")),
            output("a", "a request\n"),
            ("item/completed", message("m", "It is up.")),
            ("item/started", command("b", "ls", "inProgress", None, None)),
            output("a", "another\n"),
            ("item/completed", command("b", "ls", "completed", Some("file\n"), Some(0))),
            ("turn/completed", turn("completed")),
            ("item/completed", command("a", "serve", "failed", Some("ready\na request\nanother\nbye\n"), Some(1))),
        ],
    );
    assert_snapshot!(text, @r"
    $ serve
      │ ready

    It is up.

    $ serve
      │ a request
    $ ls
      │ file
      ✓ done, 1.2s
    $ serve
      │ another
      … still running

    $ serve
      │ bye
      ✗ exit 1, 1.2s
    ");
}

#[test]
fn tool_calls_show_arguments_and_result() {
    let mcp = |status: &str, result: Value, error: Value| {
        json!({ "item": { "type": "mcpToolCall", "id": "m", "server": "docs", "tool": "find", "status": status,
            "arguments": { "query": "x" }, "result": result, "error": error, "durationMs": 5 } })
    };
    let found = json!({ "content": [{ "type": "text", "text": "one\ntwo" }], "structuredContent": null });
    let dynamic = json!({ "item": { "type": "dynamicToolCall", "id": "d", "tool": "add", "arguments": {},
        "status": "completed", "contentItems": [{ "type": "inputText", "text": "5" }], "success": true, "durationMs": null } });
    let text = shown(
        plain(40),
        &[
            ("item/started", mcp("inProgress", Value::Null, Value::Null)),
            ("item/completed", mcp("completed", found, Value::Null)),
            ("item/completed", mcp("failed", Value::Null, json!({ "message": "no such document" }))),
            ("item/completed", dynamic),
            (
                "item/completed",
                json!({ "item": { "type": "webSearch", "id": "w", "query": "rust\nterminal", "action": null } }),
            ),
            ("item/completed", json!({ "item": { "type": "exitedReviewMode", "id": "r", "review": "All good." } })),
        ],
    );
    assert_snapshot!(text, @r#"
    ⚙ docs.find {"query":"x"}
      │ one
      │ two
      ✓ done, 5ms
    ⚙ docs.find {"query":"x"}
      │ no such document
      ✗ failed, 5ms
    ⚙ add
      │ 5
      ✓ done
    ⌕ rust …

    All good.
    "#);
}

#[test]
fn a_failure_is_printed_once() {
    let error = json!({ "message": "the model is gone", "codexErrorInfo": null, "additionalDetails": null });
    let failed = json!({ "turn": { "id": "u", "items": [], "status": "failed", "error": error } });
    let told = ("error", json!({ "error": error, "willRetry": false }));
    for notifications in [vec![told, ("turn/completed", failed.clone())], vec![("turn/completed", failed)]] {
        assert_eq!(shown(plain(40), &notifications), "error: the model is gone\n");
    }
}

#[test]
fn the_cause_of_an_error_is_printed_once() {
    let error = |message: &str, details: &str, will_retry: bool| {
        let error = json!({ "message": message, "codexErrorInfo": null, "additionalDetails": details });
        ("error", json!({ "error": error, "willRetry": will_retry }))
    };
    let notifications = [
        error("Reconnecting... 1/2", "it broke", true),
        error("Reconnecting... 2/2", "it broke", true),
        error("it broke", "Connection refused", false),
    ];
    let told = "trying again (1 of 2): it broke\ntrying again (2 of 2)\nerror: it broke (Connection refused)\n";
    assert_eq!(shown(plain(80), &notifications), told);
}

#[test]
fn files_below_the_folder_have_relative_paths() {
    let change = |path: &str| json!({ "path": path, "kind": { "type": "add" }, "diff": "x\n" });
    let changes = [change("/w/src/a.rs"), change("/other/b.rs"), change("/wide/c.rs")];
    let item = json!({ "item": { "type": "fileChange", "id": "f", "changes": changes, "status": "completed" } });
    let mut renderer = Renderer::new(plain(40)).in_folder("/w");
    let text = renderer.show(&notification("item/completed", &item));
    let names: Vec<_> = text.lines().filter(|line| line.starts_with('+')).collect();
    assert_eq!(names, ["+ src/a.rs", "+ /other/b.rs", "+ /wide/c.rs"]);
}

#[test]
fn text_is_wrapped_at_the_new_width_after_a_resize() {
    let mut renderer = Renderer::new(plain(40));
    let mut text = renderer.show(&notification("item/agentMessage/delta", &delta("m", "one two three four five ")));
    renderer.restyle(plain(20));
    text += &renderer.show(&notification("item/agentMessage/delta", &delta("m", "six seven eight nine ten eleven ")));
    text += &renderer.show(&notification("turn/completed", &turn("completed")));
    assert_eq!(text, "one two three four five\nsix seven eight nine\nten eleven\n");
}

#[test]
fn a_review_is_printed_once() {
    let review = json!({ "item": { "type": "exitedReviewMode", "id": "r", "review": "All good." } });
    let text = shown(plain(40), &[("item/completed", review), ("item/completed", message("again", "All good."))]);
    assert_eq!(text, "All good.\n");
}

#[test]
fn the_status_names_the_current_activity() {
    let mut renderer = Renderer::new(plain(40));
    let mut seen = vec![renderer.status()];
    for (method, params) in &whole_turn()[..12] {
        renderer.show(&notification(method, params));
        if seen.last() != Some(&renderer.status()) {
            seen.push(renderer.status());
        }
    }
    assert_eq!(
        seen,
        ["starting", "thinking", "writing", "running a command", "thinking", "running a command", "thinking"]
    );
}
