//! Texts, typed outputs, and threads that are reused.

use loomd_adapter::{Adapter, Endpoint, Event, Phase, Session, Text, ThreadState};
use loomd_testkit::model::{error, message, streamed};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::{Target, evaluate, on_each_target, prompt, setup};
use crate::servers::Server;

on_each_target! {
    a_text_is_evaluated
    a_typed_output_is_evaluated
    a_thread_is_reused
    a_failed_turn_has_its_phase_and_error_info
}

async fn a_text_is_evaluated(target: Target) {
    let setup = setup(&target).await;
    setup.model.reply(streamed(&["hello ", "world"]));
    let mut session = Session::new();
    let response = evaluate::<Text>(&setup.adapter, &prompt("Greet."), &mut session).await;
    assert_eq!((response.text.as_str(), response.output.0.as_str()), ("hello world", "hello world"));
    assert_eq!(response.usage.unwrap().total_tokens, 15);
    assert_eq!(setup.model.call(0).await.user_texts().last(), Some(&"## 1. Task\n\nGreet."));
    let kinds: Vec<_> = session.events().iter().map(|event| matches!(**event, Event::PromptExecuted(_))).collect();
    assert_eq!(kinds, [false, true]);
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
struct Answer {
    answer: u32,
    reason: Option<String>,
}

async fn a_typed_output_is_evaluated(target: Target) {
    let setup = setup(&target).await;
    setup.model.reply(message(r#"{"answer":42,"reason":null}"#)).reply(message(r#"{"value":[1,2]}"#));
    let response = evaluate::<Answer>(&setup.adapter, &prompt("Answer."), &mut Session::new()).await;
    assert_eq!(response.output, Answer { answer: 42, reason: None });
    let format = setup.model.call(0).await.body["text"]["format"].clone();
    assert_eq!((&format["strict"], &format["schema"]["required"]), (&json!(true), &json!(["answer", "reason"])));
    let response = evaluate::<Vec<u8>>(&setup.adapter, &prompt("Count."), &mut Session::new()).await;
    assert_eq!(response.output, [1, 2]);
}

async fn a_thread_is_reused(target: Target) {
    let setup = setup(&target).await;
    setup.model.reply(message("one")).reply(message("two")).reply(message("three"));
    let adapter = setup.adapter.clone().reuse_thread(true);
    let mut session = Session::new();
    let first = evaluate::<Text>(&adapter, &prompt("First."), &mut session).await;
    let second = evaluate::<Text>(&adapter, &prompt("Second."), &mut session).await;
    assert_eq!((first.thread_id.as_str(), second.text.as_str()), (second.thread_id.as_str(), "two"));
    let texts = setup.model.call(1).await;
    assert!(
        texts.user_texts().ends_with(&["## 1. Task\n\nFirst.", "## 1. Task\n\nSecond."]),
        "{:?}",
        texts.user_texts()
    );
    assert_eq!((second.usage.unwrap().total_tokens, second.thread_usage.unwrap().total_tokens), (15, 30));

    // A thread that is not there is replaced.
    let gone = ThreadState {
        thread_id: "0199a213-81a0-7800-8000-000000000000".into(),
        ..(*session.latest::<ThreadState>().unwrap()).clone()
    };
    session.seed(gone);
    let third = evaluate::<Text>(&adapter, &prompt("Third."), &mut session).await;
    assert_ne!(third.thread_id, first.thread_id);
    assert_eq!(session.latest::<ThreadState>().unwrap().thread_id, third.thread_id);
}

async fn a_failed_turn_has_its_phase_and_error_info(target: Target) {
    let setup = setup(&target).await;
    setup.model.reply(error(400, "bad", "no such thing"));
    let outcome = setup.adapter.evaluate::<Text>(&prompt("Fail."), &mut Session::new(), Default::default()).await;
    let failure = outcome.unwrap_err();
    let failure = failure.failure().unwrap();
    assert!(failure.message.contains("no such thing"), "{failure:?}");
    // Servers differ in the kind that they give a refused request.
    assert!(matches!(failure.phase, Phase::Request | Phase::Response), "{failure:?}");
    assert!(failure.turn_id.is_some() && failure.error_info.is_some(), "{failure:?}");
}

#[tokio::test]
async fn a_websocket_is_an_endpoint() {
    let setup = setup(&Target::Spawned(Server::loomd())).await;
    setup.model.reply(message("over the wire"));
    let listener = Server::loomd().launch().websocket(&setup.home).await;
    let endpoint = Endpoint::websocket(format!("ws://127.0.0.1:{}", listener.port()));
    let adapter = Adapter::new(endpoint).cwd(setup.home.work());
    let response = evaluate::<Text>(&adapter, &prompt("Go."), &mut Session::new()).await;
    assert_eq!(response.text, "over the wire");
}
