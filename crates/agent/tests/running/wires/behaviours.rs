//! The rows of the table, each a behaviour.

use loomd_testkit::model::ModelOutput::*;
use loomd_testkit::model::Wire;
use serde_json::{Value, json};

use super::Ask::*;
use super::{ROW, Row, check, world};

/// A PNG of one pixel.
const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

const USAGE: &str = "usage 10/0 5/0 of 15";

#[tokio::test]
async fn text() {
    check(Row {
        answers: &[&[Text(&["Hello"])]],
        seen: &["=userMessage hi", "+agentMessage", "text Hello", "=agentMessage Hello", USAGE, "turn completed"],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn deltas() {
    check(Row {
        asks: &[User("hi"), User("and?")],
        answers: &[&[Text(&["Hel", "lo, ", "wörld 😀\n"])], &[Text(&["Well."])]],
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text Hel",
            "text lo, ",
            "text wörld 😀\n",
            "=agentMessage Hello, wörld 😀",
            USAGE,
            "turn completed",
            "=userMessage and?",
            "+agentMessage",
            "text Well.",
            "=agentMessage Well.",
            "usage 10/0 5/0 of 30",
            "turn completed",
        ],
        told: &["user: hi", "assistant: Hello, wörld 😀", "user: and?"],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn one_tool() {
    check(Row {
        answers: &[&[Call("shell_command", r#"{"command":"echo found","login":false}"#, "c1")], &[Text(&["Found."])]],
        seen: &[
            "=userMessage hi",
            "+commandExecution",
            "=commandExecution completed found",
            USAGE,
            "+agentMessage",
            "text Found.",
            "=agentMessage Found.",
            "usage 10/0 5/0 of 30",
            "turn completed",
        ],
        told: &[
            "user: hi",
            r#"call c1: shell_command {"command":"echo found","login":false}"#,
            "output c1: Exit code: 0\nWall time: _\nOutput:\nfound",
        ],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn many_tools_one_after_the_other() {
    check(Row {
        answers: &[
            &[Text(&["I plan."]), Call("update_plan", r#"{"plan":[{"step":"Look","status":"pending"}]}"#, "c1")],
            &[Call("apply_patch", r#"{"input":"*** Begin Patch\n*** Add File: a\n+one\n*** End Patch"}"#, "c2")],
            &[Call("nothing_like_that", "{}", "c3")],
            &[Text(&["Done."])],
        ],
        config: "[features]\napply_patch_freeform = true",
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text I plan.",
            "=agentMessage I plan.",
            "plan Look",
            USAGE,
            "+fileChange",
            "=fileChange completed one",
            "usage 10/0 5/0 of 30",
            "usage 10/0 5/0 of 45",
            "+agentMessage",
            "text Done.",
            "=agentMessage Done.",
            "usage 10/0 5/0 of 60",
            "turn completed",
        ],
        told: &[
            "user: hi",
            "assistant: I plan.",
            r#"call c1: update_plan {"plan":[{"step":"Look","status":"pending"}]}"#,
            "output c1: Plan updated",
            "call c2: apply_patch *** Begin Patch\n*** Add File: a\n+one\n*** End Patch",
            "output c2: Exit code: 0\nWall time: _\nOutput:\nSuccess. Updated the following files:\nA a",
            "call c3: nothing_like_that {}",
            "output c3: unsupported call: nothing_like_that",
        ],
        ..ROW
    })
    .await;
}

/// The first command waits for a file of the second, so this would hang if they did not run in parallel.
#[tokio::test]
async fn parallel_tools() {
    check(Row {
        asks: &[Racing("hi")],
        answers: &[
            &[
                Call(
                    "exec_command",
                    r#"{"cmd":"until [ -e here ]; do sleep 0.01; done; echo one","login":false}"#,
                    "c1",
                ),
                Call(
                    "exec_command",
                    r#"{"cmd":"touch here; until [ -e go ]; do sleep 0.01; done; echo two","login":false}"#,
                    "c2",
                ),
            ],
            &[Text(&["Both."])],
        ],
        config: "[features]\nunified_exec = true",
        seen: &[
            "=userMessage hi",
            "+commandExecution",
            "+commandExecution",
            USAGE,
            "=commandExecution completed one",
            "=commandExecution completed two",
            "+agentMessage",
            "text Both.",
            "=agentMessage Both.",
            "usage 10/0 5/0 of 30",
            "turn completed",
        ],
        told: &[
            "user: hi",
            r#"call c1: exec_command {"cmd":"until [ -e here ]; do sleep 0.01; done; echo one","login":false}"#,
            r#"call c2: exec_command {"cmd":"touch here; until [ -e go ]; do sleep 0.01; done; echo two","login":false}"#,
            "output c1: (report)\nOutput:\none",
            "output c2: (report)\nOutput:\ntwo",
        ],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn structured_output() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    for wire in Wire::ALL {
        let world = world(wire, "").await;
        world.model.reply(wire.reply(&[Text(&["{\"n\":", "5}"])]));
        let id = world.start(false).await;
        let input = json!([{ "type": "text", "text": "count" }]);
        let turn = world.say_with(id, json!({ "input": input, "outputSchema": schema })).await.expect("a turn");
        assert_eq!(world.ended(&turn).await, "completed");
        assert_eq!(world.model.call(0).await.schema(), &schema, "{wire:?}");
        let said = world.received.find("item/completed", |told| told["item"]["type"] == "agentMessage").await;
        assert_eq!(said["item"]["text"], "{\"n\":5}", "{wire:?}");
        // The schema holds for one turn.
        world.ask(id, "and?").await;
        assert_eq!(world.model.call(1).await.schema(), &Value::Null, "{wire:?}");
    }
}

/// Images of the user and of a tool.
#[tokio::test]
async fn images() {
    for wire in Wire::ALL {
        let world = world(wire, "").await;
        let png = PICTURE.split_once(',').expect("a data URL").1;
        let png = base64_decoded(png);
        std::fs::write(world.home.work().join("dot.png"), png).expect("a file");
        world.model.reply(wire.reply(&[Call("view_image", r#"{"path":"dot.png"}"#, "c1")]));
        world.model.reply(wire.reply(&[Text(&["A dot."])]));
        let id = world.start(false).await;
        let input = json!([{ "type": "text", "text": "look" }, { "type": "image", "url": PICTURE }]);
        let turn = world.say_with(id, json!({ "input": input })).await.expect("a turn");
        assert_eq!(world.ended(&turn).await, "completed");
        let expected = [
            "=userMessage lookimage",
            "+imageView",
            "=imageView",
            USAGE,
            "+agentMessage",
            "text A dot.",
            "=agentMessage A dot.",
            "usage 10/0 5/0 of 30",
            "turn completed",
        ];
        world.saw(wire, &expected);
        let told: Vec<String> =
            world.model.call(1).await.conversation().iter().map(|line| line.replace(PICTURE, "(dot)")).collect();
        const LOOK: &str = "user: look\n\n<image>";
        let call = r#"call c1: view_image {"path":"dot.png"}"#;
        let expected: &[&str] = match wire {
            // Tool outputs are text on this wire, so images follow in a user message.
            Wire::Chat => &[
                LOOK,
                "user image: (dot)",
                "user: </image>",
                call,
                "output c1: (The picture follows.)",
                "user image: (dot)",
            ],
            _ => &[LOOK, "user image: (dot)", "user: </image>", call, "output image c1: (dot)"],
        };
        assert_eq!(told, expected, "{wire:?}");
    }
}

fn base64_decoded(text: &str) -> Vec<u8> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).expect("base64")
}

/// Reasoning between the calls of a turn is sent back.
#[tokio::test]
async fn reasoning() {
    const PLAN: &str = r#"{"plan":[{"step":"Look","status":"pending"}]}"#;
    check(Row {
        answers: &[
            &[Think(&["Let me ", "see."]), Text(&["Yes."]), Call("update_plan", PLAN, "c1")],
            &[Text(&["Done."]), Took { input: 20, cached: 10, output: 8, reasoning: 4 }],
        ],
        seen: &[
            "=userMessage hi",
            "+reasoning",
            "think Let me ",
            "think see.",
            "=reasoning Let me see.",
            "+agentMessage",
            "text Yes.",
            "=agentMessage Yes.",
            "plan Look",
            USAGE,
            "+agentMessage",
            "text Done.",
            "=agentMessage Done.",
            "usage 20/10 8/4 of 43",
            "turn completed",
        ],
        told: &[
            "user: hi",
            "thought: Let me see.",
            "assistant: Yes.",
            r#"call c1: update_plan {"plan":[{"step":"Look","status":"pending"}]}"#,
            "output c1: Plan updated",
        ],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn reasoning_of_earlier_turns() {
    check(Row {
        asks: &[User("hi"), User("and?")],
        answers: &[&[Think(&["Hm."]), Text(&["Yes."])], &[Text(&["Done."])]],
        seen: &[
            "=userMessage hi",
            "+reasoning",
            "think Hm.",
            "=reasoning Hm.",
            "+agentMessage",
            "text Yes.",
            "=agentMessage Yes.",
            USAGE,
            "turn completed",
            "=userMessage and?",
            "+agentMessage",
            "text Done.",
            "=agentMessage Done.",
            "usage 10/0 5/0 of 30",
            "turn completed",
        ],
        told: &["user: hi", "thought: Hm.", "assistant: Yes.", "user: and?"],
        except: &[(
            Wire::Chat,
            "there what was thought before the user spoke again is of no more use",
            &["user: hi", "assistant: Yes.", "user: and?"],
        )],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn steering() {
    check(Row {
        asks: &[Steered("hi", "rather this")],
        answers: &[&[Text(&["LoadReason."])], &[Text(&["Second."])]],
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text LoadReason.",
            "=agentMessage LoadReason.",
            USAGE,
            "=userMessage rather this",
            "+agentMessage",
            "text Second.",
            "=agentMessage Second.",
            "usage 10/0 5/0 of 30",
            "turn completed",
        ],
        told: &["user: hi", "assistant: LoadReason.", "user: rather this"],
        ..ROW
    })
    .await;
}

/// The text before the interrupt stays in the conversation, with a note about the interrupt.
#[tokio::test]
async fn interruption() {
    check(Row {
        asks: &[Interrupted("hi"), User("and?")],
        answers: &[&[Text(&["So far"]), Cut], &[Text(&["Well."])]],
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text So far",
            "=agentMessage So far",
            "turn interrupted",
            "=userMessage and?",
            "+agentMessage",
            "text Well.",
            "=agentMessage Well.",
            USAGE,
            "turn completed",
        ],
        told: &["user: hi", "assistant: So far", "user: (aborted)\n\nand?"],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn usage() {
    check(Row {
        asks: &[User("hi"), User("and?")],
        answers: &[
            &[Text(&["a"]), Took { input: 100, cached: 40, output: 20, reasoning: 7 }],
            &[Text(&["b"]), Took { input: 150, cached: 100, output: 30, reasoning: 0 }],
        ],
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text a",
            "=agentMessage a",
            "usage 100/40 20/7 of 120",
            "turn completed",
            "=userMessage and?",
            "+agentMessage",
            "text b",
            "=agentMessage b",
            "usage 150/100 30/0 of 300",
            "turn completed",
        ],
        told: &["user: hi", "assistant: a", "user: and?"],
        ..ROW
    })
    .await;
}

#[tokio::test]
async fn compaction_on_request() {
    check(Row {
        asks: &[User("hi"), Compact, User("and?")],
        answers: &[&[Text(&["Hello"])], &[Text(&["It was short."])], &[Text(&["Well."])]],
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text Hello",
            "=agentMessage Hello",
            USAGE,
            "turn completed",
            "+contextCompaction",
            "usage 10/0 5/0 of 30",
            "usage 0/0 0/0 of 30",
            "=contextCompaction",
            "turn completed",
            "=userMessage and?",
            "+agentMessage",
            "text Well.",
            "=agentMessage Well.",
            "usage 10/0 5/0 of 45",
            "turn completed",
        ],
        told: &["user: hi\n\n(summary)\n\nand?"],
        ..ROW
    })
    .await;
}

/// A full context window is compacted before the next turn.
#[tokio::test]
async fn compaction_of_a_full_context_window() {
    check(Row {
        config: "model_auto_compact_token_limit = 50000",
        asks: &[User("hi"), User("and?")],
        answers: &[
            &[Text(&["Hello"]), Took { input: 60_000, cached: 0, output: 5, reasoning: 0 }],
            &[Text(&["It was short."])],
            &[Text(&["Well."])],
        ],
        seen: &[
            "=userMessage hi",
            "+agentMessage",
            "text Hello",
            "=agentMessage Hello",
            "usage 60000/0 5/0 of 60005",
            "turn completed",
            "+contextCompaction",
            "usage 10/0 5/0 of 60020",
            "usage 0/0 0/0 of 60020",
            "=contextCompaction",
            "=userMessage and?",
            "+agentMessage",
            "text Well.",
            "=agentMessage Well.",
            "usage 10/0 5/0 of 60035",
            "turn completed",
        ],
        told: &["user: hi\n\n(summary)\n\nand?"],
        ..ROW
    })
    .await;
}
