//! Whole exchanges in both dialects, and anything that the other side may send.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::{Kind, SessionSettings};

/// What is reported and sent for a series of messages and inputs, a line each.
struct Exchange {
    dialect: Dialect,
    log: Vec<String>,
}

impl Exchange {
    fn new(version: Version) -> Self {
        Self { dialect: Dialect::new(version), log: Vec::new() }
    }

    fn receive(&mut self, message: Value) -> &mut Self {
        let step = self.dialect.receive(&message.to_string());
        self.log.extend(step.events.iter().map(show));
        self.log.extend(step.messages.iter().map(|message| format!("> {message}")));
        self
    }

    fn send(&mut self, input: Input) -> &mut Self {
        self.log.extend(self.dialect.send(input).iter().map(|message| format!("> {message}")));
        self
    }

    #[track_caller]
    fn check(&mut self, expected: &[&str]) {
        assert_eq!(std::mem::take(&mut self.log), expected);
    }
}

fn show(event: &Event) -> String {
    match event {
        Event::Audio(audio) => format!("audio {}", serde_json::to_string(audio).unwrap()),
        Event::Transcript { role, text } => format!("{role} says {text:?}"),
        Event::Item(item) => format!("item {item}"),
        Event::Usage(usage) => format!("usage {usage:?}"),
        Event::Handoff { item, text } => format!("handoff {text:?} {item}"),
        other => format!("{other:?}"),
    }
}

fn requested(id: &str, input: &str) -> Value {
    json!({ "type": "conversation.handoff.requested", "handoff_id": id, "item_id": "i", "input_transcript": input })
}

fn call(id: &str, arguments: &str) -> Value {
    json!({ "id": "i", "type": "function_call", "name": "codex", "call_id": id, "arguments": arguments })
}

fn item_done(item: Value) -> Value {
    json!({ "type": "conversation.item.done", "item": item })
}

fn audio(item: &str, bytes: usize) -> Value {
    json!({ "type": "response.output_audio.delta", "delta": "A".repeat(bytes / 3 * 4), "item_id": item })
}

#[test]
fn the_first_message_of_each_kind_of_session() {
    let update = |version, kind| SessionSettings { version, kind, instructions: "be nice".into() }.update();
    assert_eq!(
        update(Version::V1, Kind::Transcription),
        json!({ "type": "session.update", "session": {
            "type": "quicksilver", "instructions": "be nice",
            "audio": { "input": { "format": { "type": "audio/pcm", "rate": 24000 } }, "output": { "voice": "fathom" } },
        }})
    );
    assert_eq!(
        update(Version::V2, Kind::Transcription),
        json!({ "type": "session.update", "session": {
            "type": "transcription", "audio": { "input": { "format": { "type": "audio/pcm", "rate": 24000 } } },
        }})
    );
    let whole = update(Version::V2, Kind::Conversational);
    let session = &whole["session"];
    assert_eq!((&session["type"], &session["instructions"]), (&json!("realtime"), &json!("be nice")));
    assert_eq!(session["audio"]["output"]["voice"], "marin");
    assert_eq!(session["audio"]["input"]["turn_detection"]["type"], "server_vad");
    assert_eq!((&session["tools"][0]["name"], &session["tool_choice"]), (&json!("codex"), &json!("auto")));
    assert_eq!(session["tools"][0]["parameters"]["required"], json!(["prompt"]));
}

#[test]
fn v1_reports_audio_transcripts_and_items() {
    let mut exchange = Exchange::new(Version::V1);
    exchange
        .receive(json!({ "type": "session.updated", "session": {} }))
        .receive(
            json!({ "type": "conversation.output_audio.delta", "delta": "QQ==", "sample_rate": 24000, "channels": 1 }),
        )
        .receive(
            json!({ "type": "conversation.output_audio.delta", "data": "QQ==", "sample_rate": 1, "num_channels": 2,
            "samples_per_channel": 3, "item_id": "x" }),
        )
        .receive(json!({ "type": "conversation.output_audio.delta", "delta": "QQ==" }))
        .receive(json!({ "type": "conversation.input_transcript.delta", "delta": "he" }))
        .receive(json!({ "type": "conversation.output_transcript.delta", "delta": "yo" }))
        .receive(json!({ "type": "conversation.item.added", "item": { "id": "1" } }))
        .receive(json!({ "type": "conversation.item.done", "item": { "id": "1" } }))
        .check(&[
            r#"audio {"data":"QQ==","sampleRate":24000,"numChannels":1,"samplesPerChannel":null,"itemId":null}"#,
            r#"audio {"data":"QQ==","sampleRate":1,"numChannels":2,"samplesPerChannel":3,"itemId":"x"}"#,
            r#"user says "he""#,
            r#"assistant says "yo""#,
            r#"item {"id":"1"}"#,
        ]);
}

#[test]
fn v1_sends_text_and_audio_as_they_are() {
    let mut exchange = Exchange::new(Version::V1);
    exchange.send(Input::Text("hi".into())).send(Input::Audio("AAAA".into())).check(&[
        r#"> {"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"text","text":"hi"}]}}"#,
        r#"> {"type":"input_audio_buffer.append","audio":"AAAA"}"#,
    ]);
}

#[test]
fn a_v1_handoff_carries_what_was_said_since_the_last_one_and_gets_every_message() {
    let mut exchange = Exchange::new(Version::V1);
    exchange
        .receive(json!({ "type": "conversation.input_transcript.delta", "delta": "do" }))
        .receive(json!({ "type": "conversation.input_transcript.delta", "delta": " it" }))
        .receive(json!({ "type": "conversation.output_transcript.delta", "delta": "ok" }))
        .log
        .clear();
    exchange.receive(requested("h1", "work")).check(&[
        r#"handoff Some("user: do it\nassistant: ok") {"type":"handoff_request","handoff_id":"h1","item_id":"i","input_transcript":"work","active_transcript":[{"role":"user","text":"do it"},{"role":"assistant","text":"ok"}]}"#,
    ]);
    exchange
        .send(Input::AgentMessage("one".into()))
        .send(Input::AgentMessage("two".into()))
        .send(Input::HandoffDone { error: None })
        .send(Input::AgentMessage("of a later turn".into()))
        .check(&[
            r#"> {"type":"conversation.handoff.append","handoff_id":"h1","output_text":"\"Agent Final Message\":\n\none"}"#,
            r#"> {"type":"conversation.handoff.append","handoff_id":"h1","output_text":"\"Agent Final Message\":\n\ntwo"}"#,
        ]);
    exchange.receive(requested("h2", " more ")).receive(requested("h3", "")).check(&[
        r#"handoff Some(" more ") {"type":"handoff_request","handoff_id":"h2","item_id":"i","input_transcript":" more ","active_transcript":[]}"#,
        r#"handoff None {"type":"handoff_request","handoff_id":"h3","item_id":"i","input_transcript":"","active_transcript":[]}"#,
    ]);
    exchange.send(Input::HandoffDone { error: Some("no model".into()) }).check(&[
        r#"> {"type":"conversation.handoff.append","handoff_id":"h3","output_text":"\"Agent Error\":\n\nno model"}"#,
    ]);
}

#[test]
fn v2_waits_with_a_response_while_one_is_in_progress() {
    let text = |text: &str| Input::Text(text.into());
    let item = |text: &str| {
        format!(
            r#"> {{"type":"conversation.item.create","item":{{"type":"message","role":"user","content":[{{"type":"input_text","text":"{text}"}}]}}}}"#
        )
    };
    let create = r#"> {"type":"response.create"}"#;
    let mut exchange = Exchange::new(Version::V2);
    exchange.send(text("a")).check(&[&item("a"), create]);
    exchange.receive(json!({ "type": "response.created", "response": { "id": "r" } }));
    exchange.log.clear();
    exchange.send(text("b")).send(text("c")).check(&[&item("b"), &item("c")]);
    exchange
        .receive(json!({ "type": "response.done", "response": { "id": "r" } }))
        .check(&[r#"item {"type":"response.done","response":{"id":"r"}}"#, create]);
    exchange
        .receive(json!({ "type": "error", "error": {
            "message": "Conversation already has an active response in progress: r9." } }))
        .send(text("d"))
        .check(&[&item("d")]);
    exchange
        .receive(json!({ "type": "response.cancelled", "response": { "id": "r9" } }))
        .check(&[r#"item {"type":"response.cancelled","response_id":"r9"}"#, create]);
}

#[test]
fn the_usage_of_a_response_is_reported_after_its_end() {
    let done = |usage: Value| json!({ "type": "response.done", "response": { "usage": usage } });
    let usage = json!({ "input_tokens": 20, "output_tokens": 5, "input_token_details": { "cached_tokens": 8 } });
    let mut exchange = Exchange::new(Version::V2);
    exchange.receive(done(usage)).log.remove(0);
    exchange.check(&["usage Usage { input: 20, cached_input: 8, output: 5 }"]);
    for none in [json!(null), json!({}), json!({ "input_tokens": "many", "output_tokens": 5 }), json!(7)] {
        exchange.receive(done(none)).log.remove(0);
        exchange.check(&[]);
    }
}

#[test]
fn v2_delegations_are_answered_once_at_their_end() {
    let mut exchange = Exchange::new(Version::V2);
    exchange
        .receive(json!({ "type": "response.created", "response": {} }))
        .receive(json!({ "type": "conversation.item.input_audio_transcription.completed", "transcript": "said" }))
        .log
        .clear();
    let handed = r#"handoff Some("go") {"type":"handoff_request","handoff_id":"c","item_id":"i","input_transcript":"go","active_transcript":[]}"#;
    exchange.receive(item_done(call("c", r#"{"prompt": " go "}"#))).check(&[handed]);
    // The same call, with the end of its response.
    let done = json!({ "type": "response.done", "response": { "output": [call("c", r#"{"prompt": " go "}"#)] } });
    exchange.receive(done.clone()).check(&[&format!("item {done}")]);
    exchange
        .send(Input::AgentMessage("on it".into()))
        .send(Input::AgentMessage("done".into()))
        .send(Input::HandoffDone { error: None })
        .check(&[
            r#"> {"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"\"Agent Final Message\":\n\ndone"}}"#,
            r#"> {"type":"response.create"}"#,
        ]);

    // One that only the response announces, and that fails.
    let done = json!({ "type": "response.done", "response": { "output": [call("d", "raw words")] } });
    exchange.receive(done).send(Input::HandoffDone { error: Some("cut".into()) }).check(&[
        r#"handoff Some("raw words") {"type":"handoff_request","handoff_id":"d","item_id":"i","input_transcript":"raw words","active_transcript":[]}"#,
        r#"> {"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"d","output":"\"Agent Error\":\n\ncut"}}"#,
        r#"> {"type":"response.create"}"#,
    ]);
}

#[test]
fn the_request_of_a_v2_delegation_is_its_first_argument_with_text() {
    let request = |arguments: &str| {
        let mut dialect = Dialect::new(Version::V2);
        match dialect.receive(&item_done(call("c", arguments)).to_string()).events.pop() {
            Some(Event::Handoff { text, .. }) => text,
            other => panic!("no handoff: {other:?}"),
        }
    };
    for (arguments, expected) in [
        (r#"{"input":"a"}"#, Some("a")),
        (r#"{"query":"c","text":"d"}"#, Some("d")),
        (r#"{"input_transcript":"z","prompt":"y"}"#, Some("z")),
        (r#"{"prompt":""}"#, Some(r#"{"prompt":""}"#)),
        (r#"{"prompt":5}"#, Some(r#"{"prompt":5}"#)),
        ("raw", Some("raw")),
        ("", None),
    ] {
        assert_eq!(request(arguments).as_deref(), expected, "{arguments}");
    }
    let mut exchange = Exchange::new(Version::V2);
    exchange.receive(item_done(json!({ "type": "function_call", "name": "other", "call_id": "c" }))).check(&[]);
}

#[test]
fn speech_of_the_user_cuts_what_the_model_is_saying() {
    let speech = json!({ "type": "input_audio_buffer.speech_started", "item_id": "u" });
    let item = r#"item {"type":"input_audio_buffer.speech_started","item_id":"u"}"#;
    let mut exchange = Exchange::new(Version::V2);
    exchange.receive(audio("a", 4800)).receive(audio("b", 4800)).receive(audio("b", 4800)).log.clear();
    exchange.receive(speech.clone()).check(&[
        item,
        r#"> {"type":"conversation.item.truncate","item_id":"b","content_index":0,"audio_end_ms":200}"#,
    ]);
    exchange.receive(speech.clone()).check(&[item]);
    exchange.receive(audio("c", 4800)).receive(json!({ "type": "response.done" })).log.clear();
    exchange.receive(speech).check(&[item]);
}

#[test]
fn an_error_ends_the_session_with_its_message() {
    let check = |event: Value, expected: Option<&str>| {
        for version in [Version::V1, Version::V2] {
            let step = Dialect::new(version).receive(&event.to_string());
            let closed = expected.map(|message| Event::Closed(Closing::Error(message.into())));
            assert_eq!(step.events, Vec::from_iter(closed), "{event}");
        }
    };
    check(json!({ "type": "error", "error": { "message": "bad" } }), Some("bad"));
    check(json!({ "type": "error", "message": "top" }), Some("top"));
    check(json!({ "type": "error", "error": "text" }), Some("\"text\""));
    check(json!({ "type": "error", "error": { "code": "c" } }), Some(r#"{"code":"c"}"#));
    check(json!({ "type": "error" }), None);
}

fn any_json() -> impl Strategy<Value = Value> {
    let names = proptest::sample::select(vec![
        "type",
        "item",
        "id",
        "name",
        "call_id",
        "arguments",
        "response",
        "output",
        "delta",
        "error",
        "message",
        "handoff_id",
        "item_id",
        "input_transcript",
        "sample_rate",
        "channels",
    ]);
    let texts = proptest::sample::select(vec![
        "conversation.item.done",
        "response.done",
        "response.created",
        "response.cancelled",
        "error",
        "function_call",
        "codex",
        "conversation.handoff.requested",
        "conversation.output_audio.delta",
        "response.output_audio.delta",
        "input_audio_buffer.speech_started",
        "conversation.input_transcript.delta",
        "",
        "{\"prompt\":\"x\"}",
        "ü",
    ]);
    let leaf = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from), texts.prop_map(Value::from),];
    leaf.prop_recursive(4, 32, 8, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            proptest::collection::vec((names.clone(), inner), 0..6).prop_map(|members| {
                Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
            }),
        ]
    })
}

proptest! {
    #[test]
    fn no_message_breaks_a_session(
        version in proptest::sample::select(vec![Version::V1, Version::V2]),
        messages in proptest::collection::vec(prop_oneof![any_json().prop_map(|json| json.to_string()), ".{0,40}"], 0..24),
    ) {
        let mut dialect = Dialect::new(version);
        for message in messages {
            for message in dialect.receive(&message).messages {
                prop_assert!(message["type"].is_string());
            }
            _ = dialect.send(Input::AgentMessage("m".into()));
        }
    }
}
