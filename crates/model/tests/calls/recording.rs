//! Recorded responses, replayed by the rehearsal.

use std::fs;
use std::path::Path;

use loomd_config::config_toml::ModelProvider;
use loomd_protocol::AbsolutePathBuf;
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::{Reply, status};
use serde_json::json;

use super::wires::{WIRES, provider, reply, request_with_tools};
use super::{NO_ENV, call, request, session, session_of};
use loomd_testkit::model::ModelOutput::*;

fn absolute(path: &Path) -> Option<AbsolutePathBuf> {
    AbsolutePathBuf::new(path)
}

fn rehearsal(scenario: &Path) -> loomd_model::Session {
    let config = ModelProvider { scenario: absolute(scenario), ..ModelProvider::built_in("rehearsal").unwrap() };
    session_of("rehearsal", &config, NO_ENV, None)
}

#[tokio::test]
async fn a_recording_replays_the_same_events() {
    for wire in WIRES {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("recording.jsonl");
        let model = ScriptedModel::start().await;
        model
            .reply(reply(
                wire,
                &[Think(&["hm"]), Text(&["a", "b"]), Call("run", "{}", "c1"), Custom("patch", "p", "c2")],
            ))
            .reply(reply(wire, &[Text(&["a"]), Fail("it broke")]))
            .reply(status(401, json!({ "error": { "message": "who?" } })));
        let mut session = session(&ModelProvider { record: absolute(&file), ..provider(wire, &model) });
        let request = request_with_tools();
        let mut heard = Vec::new();
        for _ in 0..3 {
            heard.push(call(&mut session, &request).await);
        }
        let mut rehearsal = rehearsal(&file);
        for (number, (events, error)) in heard.into_iter().enumerate() {
            let (mut again, failed) = call(&mut rehearsal, &request).await;
            // The id of an item is a field of the event and, where the item has one, of the item.
            assert_eq!(again.len(), events.len(), "{wire:?} {number}");
            let mut events = events;
            events.iter_mut().chain(&mut again).for_each(without_ids);
            assert_eq!((again, failed), (events, error), "{wire:?} {number}");
        }
    }
}

fn without_ids(event: &mut loomd_model::ModelEvent) {
    use loomd_protocol::ResponseItem::{CustomToolCall, FunctionCall, Message};
    if let loomd_model::ModelEvent::ItemAdded { item, .. } | loomd_model::ModelEvent::ItemDone { item, .. } = event
        && let Message { id, .. } | FunctionCall { id, .. } | CustomToolCall { id, .. } = item
    {
        *id = None;
    }
}

#[tokio::test]
async fn a_recording_contains_no_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.jsonl");
    let model = ScriptedModel::start().await;
    model.reply(Reply::event(json!({
        "type": "response.output_item.done",
        "item": { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Your key is hunter2-hunter2." }] },
    })));
    let config = ModelProvider { env_key: Some("KEY".into()), record: absolute(&file), ..provider(WIRES[0], &model) };
    let env = |name: &str| (name == "KEY").then(|| "hunter2-hunter2".to_owned());
    call(&mut session_of("scripted", &config, env, None), &request(&["hi"])).await;
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.contains("Your key is [removed].") && !text.contains("hunter2"), "{text}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_dropped_call_is_recorded_as_far_as_it_was_read() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("recording.jsonl");
    let model = ScriptedModel::start().await;
    let gate = loomd_testkit::Gate::new();
    model.reply(loomd_testkit::model::streamed(&["a"]).wait(&gate));
    let mut session = session(&ModelProvider { record: absolute(&file), ..provider(WIRES[0], &model) });
    let mut events = session.stream(&request(&["hi"]), loomd_model::CallMeter::none()).await.unwrap();
    events.next().await.unwrap().unwrap();
    drop(events);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), 2);
}

#[tokio::test]
async fn the_rehearsal_needs_no_configuration() {
    let config = ModelProvider::built_in("rehearsal").unwrap();
    let mut session = session_of("rehearsal", &config, NO_ENV, None);
    assert_eq!(super::texts(&mut session, &request_with_tools()).await.len(), 1);
    let mut asked = request_with_tools();
    asked.input.push(super::user("say Hello. fail with overloaded"));
    let (events, error) = call(&mut session, &asked).await;
    assert_eq!((events.len(), error), (3, Some(loomd_model::ModelError::Overloaded { provider_message: None })));
    // A configured provider of this id is an ordinary one.
    let model = ScriptedModel::start().await;
    let mut other = session_of("rehearsal", &super::config(&model), NO_ENV, None);
    super::texts(&mut other, &request(&["hi"])).await;
    assert_eq!(model.calls().len(), 1);
}
