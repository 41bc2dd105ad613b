//! Calls of the prompt's tools: transactions on the session.

use loomd_adapter::{
    EvaluateError, Event, FailureKind, Limits, NoParams, Phase, Prompt, Section, Session, Text, Tool, ToolContext,
    ToolError, ToolOutput, ToolSource,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::mock::mock;

#[derive(Debug, PartialEq)]
struct Note(String);

#[derive(Deserialize, JsonSchema)]
struct Write {
    text: String,
    #[serde(default)]
    fails: bool,
}

/// Adds a note, and fails afterwards if it is told to.
fn write() -> Tool {
    Tool::new("write", "Adds a note.", |write: Write, context: ToolContext| async move {
        context.append(Note(write.text.clone()));
        if write.fails {
            return Err(ToolError::new("the pen broke"));
        }
        Ok(format!("{} notes", context.all::<Note>().len()))
    })
}

fn with(tools: Vec<Tool>) -> Prompt {
    let prompt = Prompt::new("test", "tools").section(Section::new("task", "Task", "Go."));
    tools.into_iter().fold(prompt, |prompt, tool| prompt.tool(tool)).build().unwrap()
}

fn notes(session: &Session) -> Vec<String> {
    session.all::<Note>().iter().map(|note| note.0.clone()).collect()
}

#[tokio::test]
async fn a_failed_call_is_rolled_back_and_told_to_the_model() {
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (with(vec![write()]), Session::new());
    session.append(Note("before".into()));
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        let answers = [
            (json!({ "text": "a" }), true, "2 notes"),
            (json!({ "text": "b", "fails": true }), false, "the pen broke"),
            (json!({ "text": 5 }), false, "invalid arguments: invalid type: integer `5`, expected a string"),
            (json!({}), false, "invalid arguments: missing field `text`"),
            (json!({ "text": "c" }), true, "3 notes"),
        ];
        for (arguments, success, text) in answers {
            let answer = mock.call("write", arguments).await;
            let content = json!([{ "type": "inputText", "text": text }]);
            assert_eq!((&answer["success"], &answer["contentItems"]), (&json!(success), &content));
        }
        let unknown = mock.call("erase", json!({})).await;
        assert_eq!(unknown["contentItems"][0]["text"], "unknown tool `erase`");
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
    assert_eq!(notes(&session), ["before", "a", "c"]);
    let events = session.events();
    let invoked: Vec<_> = events.iter().filter_map(|event| event.tool_invoked()).collect();
    assert_eq!(invoked.iter().map(|it| it.success).collect::<Vec<_>>(), [true, false, false, false, true, false]);
    assert!(invoked.iter().all(|it| it.source == ToolSource::Prompt && it.call_id.starts_with("call-")));
    assert_eq!(
        (invoked[1].arguments.clone(), invoked[1].output.as_str()),
        (json!({ "text": "b", "fails": true }), "the pen broke")
    );
}

#[tokio::test]
async fn a_tool_that_panics_is_rolled_back_and_the_turn_continues() {
    let panics = Tool::new("panics", "Panics.", |_: NoParams, context: ToolContext| async move {
        context.append(Note("lost".into()));
        if context.call_id() == "call-panics" {
            panic!("on purpose");
        }
        Ok(())
    });
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (with(vec![panics, write()]), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        let answer = mock.call("panics", json!({})).await;
        assert_eq!(
            (&answer["success"], &answer["contentItems"][0]["text"]),
            (&json!(false), &json!("the tool panicked"))
        );
        mock.call("write", json!({ "text": "kept" })).await;
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
    assert_eq!(notes(&session), ["kept"]);
}

#[tokio::test]
async fn calls_at_the_same_time_run_one_after_the_other_and_lose_nothing() {
    let slow = Tool::new("slow", "Adds after a look.", |write: Write, context: ToolContext| async move {
        let before = context.all::<Note>().len();
        tokio::task::yield_now().await;
        tokio::task::yield_now().await;
        assert_eq!(context.all::<Note>().len(), before);
        context.append(Note(write.text));
        Ok(())
    });
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (with(vec![slow]), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        for id in 0..20 {
            let params = json!({
                "threadId": "t", "turnId": "u", "callId": id.to_string(), "tool": "slow", "arguments": { "text": id.to_string() },
            });
            mock.send(json!({ "id": id, "method": "item/tool/call", "params": params })).await;
        }
        for _ in 0..20 {
            assert_eq!(mock.message().await.unwrap()["result"]["success"], true);
        }
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
    assert_eq!(notes(&session).len(), 20);
}

#[tokio::test]
async fn images_are_returned_beside_text() {
    let draw = Tool::new("draw", "Draws.", |_: NoParams, _| async {
        Ok(ToolOutput::text("a pixel").and_image("data:image/png;base64,AA=="))
    });
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (with(vec![draw]), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        let content = json!([
            { "type": "inputText", "text": "a pixel" },
            { "type": "inputImage", "imageUrl": "data:image/png;base64,AA==" },
        ]);
        assert_eq!(mock.call("draw", json!({})).await, json!({ "success": true, "contentItems": content }));
        mock.finish("ok").await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    response.unwrap();
}

#[tokio::test]
async fn a_fatal_error_of_a_tool_interrupts_the_turn() {
    let fatal = Tool::new("fatal", "Fails.", |_: NoParams, context: ToolContext| async move {
        context.append(Note("lost".into()));
        Err::<(), _>(ToolError::fatal("the database is gone"))
    });
    let (adapter, mut accepted) = mock();
    let (prompt, mut session) = (with(vec![fatal]), Session::new());
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        mock.turn().await;
        assert_eq!(mock.call("fatal", json!({})).await["success"], false);
        let params = mock.answer("turn/interrupt", json!({})).await;
        assert_eq!(params, json!({ "threadId": "t", "turnId": "u" }));
        mock.end("interrupted", json!(null)).await;
        mock.left().await;
    };
    let (response, ()) = tokio::join!(adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()), playing);
    let error = response.unwrap_err();
    let failure = error.failure().unwrap();
    assert_eq!((failure.phase, failure.kind), (Phase::Tool, FailureKind::Tool));
    assert_eq!(failure.to_string(), "tool: the tool `fatal` failed: the database is gone");
    assert!(notes(&session).is_empty());
}

#[tokio::test]
async fn a_tool_gets_hidden_sections_shown_in_the_next_evaluation() {
    let (adapter, mut accepted) = mock();
    let rules = Section::new("rules", "Rules", "Be ${tone}.").summary("How to write.").tool(write());
    let mut prompt = Prompt::new("test", "hidden")
        .section(Section::new("task", "Task", "Go."))
        .section(rules)
        .tool(Tool::open_sections())
        .param("tone", "brief")
        .build()
        .unwrap();
    let mut session = Session::new();
    let playing = async {
        let mut mock = accepted.recv().await.unwrap();
        let (thread, turn) = mock.turn().await;
        let text = turn["input"][0]["text"].as_str().unwrap();
        assert!(text.contains("How to write.") && !text.contains("brief"), "{text}");
        assert_eq!(thread["dynamicTools"].as_array().unwrap().len(), 1);
        let answer = mock.call("open_sections", json!({ "sections": ["rules"], "reason": "to write" })).await;
        assert_eq!(answer["success"], true);
        mock.finish("I need the rules.").await;
        drop(mock);

        let mut mock = accepted.recv().await.unwrap();
        let (thread, turn) = mock.turn().await;
        assert!(turn["input"][0]["text"].as_str().unwrap().contains("## 2. Rules\n\nBe brief."), "{turn}");
        assert_eq!(thread["dynamicTools"].as_array().unwrap().len(), 2);
        mock.finish("ok").await;
    };
    let evaluating = async {
        let outcome = adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()).await;
        let Err(EvaluateError::Expansion(expansion)) = outcome else { panic!("{outcome:?}") };
        let [request] = &expansion.requests[..] else { panic!("{expansion:?}") };
        assert_eq!((request.section.as_str(), request.reason.as_str()), ("rules", "to write"));
        prompt.expand(&expansion).unwrap();
        assert!(prompt.hidden().is_empty());
        adapter.evaluate::<Text>(&prompt, &mut session, Limits::none()).await.unwrap()
    };
    let (response, ()) = tokio::join!(evaluating, playing);
    assert_eq!(response.text, "ok");
    let executed = session.events().iter().filter(|event| matches!(***event, Event::PromptExecuted(_))).count();
    assert_eq!(executed, 2);
}
