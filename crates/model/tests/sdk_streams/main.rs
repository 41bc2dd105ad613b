//! Recorded streams from the source packages of official SDKs, read by this crate and by the SDKs themselves. They are
//! downloaded into `target/` when the test runs, which it does only where `LOOMD_SDK_STREAMS` is set.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test that fails may stop, and says what it skips")]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use loomd_config::config_toml::{ModelProvider, WireApi};
use loomd_model::{
    CallHeaders, CallMeter, Http, Identity, InputItem, ModelError, ModelEvent, Provider, Request, Session, ToolSpec,
    Tools,
};
use loomd_protocol::{ContentItem, ResponseItem};
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::Reply;
use serde::Deserialize;
use serde_json::{Value, json};

/// What an SDK read from a stream.
#[derive(Deserialize)]
struct Expected {
    from: String,
    wire: String,
    stream: PathBuf,
    text: Option<String>,
    #[serde(default)]
    calls: Vec<(String, Value)>,
    stop: Option<String>,
    raised: Option<String>,
}

/// Finish reasons of responses that stopped early, which are errors here.
const STOPPED: &[&str] = &["refusal", "max_tokens", "length", "content_filter", "incomplete", "failed"];

#[tokio::test]
async fn recorded_streams_of_official_sdks_read_as_the_sdks_read_them() {
    let Some(expected) = expected() else { return };
    let mut wrong = Vec::new();
    for expected in &expected {
        let (text, calls, error) = read(expected).await;
        let stopped = expected.stop.as_deref().is_some_and(|stop| STOPPED.contains(&stop));
        // A stream that an SDK cannot read need not be read here either, but must end.
        if expected.raised.is_some() {
            continue;
        }
        let same = expected.text.as_deref() == Some(&*text) && (stopped || expected.calls == calls);
        if !same || stopped != error.is_some() {
            wrong.push(format!("{}: {text:?} {calls:?} {error:?}", expected.from));
        }
    }
    let compared = expected.iter().filter(|expected| expected.raised.is_none()).count();
    eprintln!("{compared} of {} recorded streams compared", expected.len());
    assert!(compared > 0, "no stream to compare");
    assert!(wrong.is_empty(), "{} of {compared} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// Returns `None`, with a printed line, where there is nothing to compare with.
fn expected() -> Option<Vec<Expected>> {
    if std::env::var_os("LOOMD_SDK_STREAMS").is_none() {
        eprintln!("skipped: recorded streams of SDKs; set LOOMD_SDK_STREAMS=1 to download and compare them");
        return None;
    }
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let cache = here.join("../../target/sdk-streams");
    let script = here.join("tests/sdk_streams/expected.py");
    let output = match Command::new("python3").arg(script).arg(cache).output() {
        Ok(output) => output,
        Err(error) => {
            eprintln!("skipped: recorded streams of SDKs; python3 cannot be run: {error}");
            return None;
        }
    };
    let problem = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(3) {
        eprintln!("skipped: recorded streams of SDKs; {problem}");
        return None;
    }
    assert!(output.status.success(), "{problem}");
    let lines = std::str::from_utf8(&output.stdout).unwrap().lines();
    Some(lines.map(|line| serde_json::from_str(line).unwrap()).collect())
}

/// The text, the calls and the error of a stream.
async fn read(expected: &Expected) -> (String, Vec<(String, Value)>, Option<ModelError>) {
    let model = ScriptedModel::start().await;
    model.reply(Reply::raw(std::fs::read(&expected.stream).unwrap()));
    let wire_api = match &*expected.wire {
        "anthropic" => WireApi::Anthropic,
        "chat" => WireApi::Chat,
        _ => WireApi::Responses,
    };
    let config = ModelProvider {
        name: "Recorded".into(),
        base_url: Some(model.base_url()),
        request_max_retries: Some(0),
        wire_api,
        ..ModelProvider::default()
    };
    let provider = Provider::new("recorded", &config, &|_| None, None);
    let mut session = Session::new(provider, Http::new(&|_| None), Identity::default());
    let mut events = match session.stream(&request(&expected.calls), CallMeter::none()).await {
        Ok(events) => events,
        Err(error) => return (String::new(), Vec::new(), Some(error)),
    };
    let (mut text, mut calls) = (String::new(), Vec::new());
    // Text that arrived in deltas is not counted again when its item is done.
    let mut pieces = false;
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::TextDelta { delta, .. }) => {
                pieces = true;
                text.push_str(&delta);
            }
            Ok(ModelEvent::ItemDone { item: ResponseItem::Message { content, .. }, .. }) if !pieces => {
                text.extend(content.iter().filter_map(|part| match part {
                    ContentItem::OutputText { text } => Some(text.as_str()),
                    _ => None,
                }));
            }
            Ok(ModelEvent::ItemDone { item: ResponseItem::Message { .. }, .. }) => pieces = false,
            Ok(ModelEvent::ItemDone { item: ResponseItem::FunctionCall { name, arguments, .. }, .. }) => {
                calls.push((name, serde_json::from_str(&arguments).unwrap_or(Value::String(arguments))));
            }
            Ok(_) => {}
            Err(error) => return (text, calls, Some(error)),
        }
    }
    (text, calls, None)
}

/// A request that offers the tools that are going to be called.
fn request(calls: &[(String, Value)]) -> Request {
    let said = ContentItem::InputText { text: "hi".into() };
    let said =
        ResponseItem::Message { role: "user".into(), content: vec![said], end_turn: None, phase: None, id: None };
    let tool = |(name, _): &(String, Value)| ToolSpec::Function {
        name: name.clone(),
        description: String::new(),
        strict: false,
        parameters: json!({ "type": "object" }),
    };
    Request {
        model: "some-model".into(),
        instructions: "".into(),
        input: InputItem::new(&said).into_iter().collect(),
        tools: Arc::new(Tools::new(calls.iter().map(tool).collect())),
        parallel_tool_calls: true,
        reasoning: None,
        verbosity: None,
        output_schema: None,
        service_tier: None,
        prompt_cache_key: "t".into(),
        headers: CallHeaders::default(),
    }
}
