//! What a provider is sent, and how a response is decoded.

use std::collections::BTreeMap;
use std::sync::Arc;

use loomd_config::config_toml::ModelProvider;
use loomd_model::{
    CallHeaders, CallMeter, Http, Identity, InputItem, ModelEvent, Provider, Reasoning, Request, ResponseHeaders,
    Session, TokenUsage, ToolSpec, Tools, TraceHeaders,
};
use loomd_protocol::{ReasoningEffort, ReasoningSummary, ResponseItem, ServiceTier, Verbosity};
use loomd_testkit::ScriptedModel;
use loomd_testkit::model::{Usage, compacted, completed, message, reasoning, streamed};
use serde_json::json;

use super::{NO_ENV, assistant, call, config, request, session, session_of, texts, user};

#[tokio::test]
async fn a_minimal_request_has_exactly_these_headers_and_members() {
    let model = ScriptedModel::start().await;
    let mut request = request(&["hi"]);
    request.headers.turn_metadata = Some(r#"{"turn_id":"t"}"#.into());
    texts(&mut session(&config(&model)), &request).await;
    let sent = model.call(0).await;
    assert_eq!((&*sent.method, &*sent.path), ("POST", "/v1/responses"));
    for (name, value) in [
        ("content-type", Some("application/json")),
        ("accept", Some("text/event-stream")),
        ("user-agent", Some("test/1")),
        ("originator", Some("test")),
        ("x-openai-internal-codex-residency", Some("us")),
        ("session_id", Some("thread-1")),
        ("x-client-request-id", Some("thread-1")),
        ("x-codex-turn-metadata", Some(r#"{"turn_id":"t"}"#)),
        ("host", Some(&*model.address().to_string())),
        ("authorization", None),
        ("version", None),
        ("x-codex-turn-state", None),
    ] {
        assert_eq!(sent.header(name), value, "{name}");
    }
    let expected = json!({
        "model": "some-model",
        "instructions": "Be \"brief\".",
        "input": [{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hi" }] }],
        "tools": [],
        "tool_choice": "auto",
        "parallel_tool_calls": false,
        "reasoning": null,
        "store": false,
        "stream": true,
        "include": [],
        "prompt_cache_key": "thread-1",
    });
    assert_eq!(sent.body, expected);
}

fn elaborate() -> Request {
    let function = ToolSpec::Function {
        name: "f".into(),
        description: "does".into(),
        strict: false,
        parameters: json!({ "type": "object" }),
    };
    Request {
        tools: Arc::new(Tools::new(vec![function])),
        parallel_tool_calls: true,
        reasoning: Some(Reasoning { effort: Some(ReasoningEffort::High), summary: Some(ReasoningSummary::Concise) }),
        verbosity: Some(Verbosity::Low),
        output_schema: Some(json!({ "type": "object" })),
        service_tier: Some(ServiceTier::Fast),
        headers: CallHeaders {
            session_id: "thread-1".into(),
            turn_metadata: None,
            turn_state: Some("state".into()),
            subagent: Some("review".into()),
            beta_features: Some("a,b".into()),
            trace: Some(TraceHeaders { traceparent: "00-t-s-01".into(), tracestate: Some("a=b".into()) }),
        },
        ..request(&["a", "b"])
    }
}

#[tokio::test]
async fn every_option_of_a_request_is_sent() {
    let model = ScriptedModel::start().await;
    texts(&mut session(&config(&model)), &elaborate()).await;
    let sent = model.call(0).await;
    assert_eq!(sent.header("x-codex-turn-state"), Some("state"));
    assert_eq!(sent.header("x-openai-subagent"), Some("review"));
    assert_eq!(sent.header("x-codex-beta-features"), Some("a,b"));
    assert_eq!((sent.header("traceparent"), sent.header("tracestate")), (Some("00-t-s-01"), Some("a=b")));
    assert_eq!(sent.user_texts(), ["a", "b"]);
    let mut body = sent.body;
    body["input"].take();
    let expected = json!({
        "model": "some-model",
        "instructions": "Be \"brief\".",
        "input": null,
        "tools": [{ "type": "function", "name": "f", "description": "does", "strict": false, "parameters": { "type": "object" } }],
        "tool_choice": "auto",
        "parallel_tool_calls": true,
        "reasoning": { "effort": "high", "summary": "concise" },
        "store": false,
        "stream": true,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "thread-1",
        "service_tier": "priority",
        "text": {
            "verbosity": "low",
            "format": { "type": "json_schema", "strict": true, "schema": { "type": "object" }, "name": "codex_output_schema" },
        },
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn a_compaction_uses_its_own_route_and_response() {
    let model = ScriptedModel::start().await;
    model.reply(compacted(&[json!({ "type": "compaction", "encrypted_content": "E" })]));
    let items = session(&config(&model)).compact(&elaborate(), CallMeter::none()).await.unwrap();
    assert_eq!(items, [ResponseItem::Compaction { encrypted_content: "E".into() }]);
    let sent = model.call(0).await;
    assert_eq!((&*sent.path, sent.header("session_id")), ("/v1/responses/compact", Some("thread-1")));
    let members: Vec<_> = sent.body.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(members, ["model", "input", "instructions", "tools", "parallel_tool_calls", "reasoning", "text"]);
}

#[tokio::test]
async fn azure_is_sent_item_ids() {
    let model = ScriptedModel::start().await;
    let azure = ModelProvider { name: "Azure".into(), ..config(&model) };
    let mut request = request(&["hi"]);
    request.input.push(InputItem::new(&assistant("msg_1", "hello")).unwrap());
    texts(&mut session(&azure), &request).await;
    let sent = model.call(0).await;
    let ids: Vec<_> = sent.body["input"].as_array().unwrap().iter().map(|item| item["id"].as_str()).collect();
    assert_eq!((sent.body["store"].as_bool(), ids), (Some(true), vec![None, Some("msg_1")]));
}

#[tokio::test]
async fn configured_headers_and_query_are_sent() {
    let model = ScriptedModel::start().await;
    let map = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()
    };
    let provider = ModelProvider {
        base_url: Some(format!("{}/", model.base_url())),
        query_params: Some(map(&[("api-version", "v9"), ("b", "c d")])),
        http_headers: Some(
            map(&[("X-Static", "s"), ("originator", "mine"), ("bad name", "x")])
                .into_iter()
                .map(|(name, value)| (name, value.into()))
                .collect(),
        ),
        env_http_headers: Some(map(&[("X-Env", "SET"), ("X-Blank", "BLANK"), ("X-Unset", "UNSET")])),
        ..config(&model)
    };
    let env = |name: &str| match name {
        "SET" => Some("from-env".to_owned()),
        "BLANK" => Some("  ".into()),
        _ => None,
    };
    texts(&mut session_of("scripted", &provider, env, None), &request(&["hi"])).await;
    let sent = model.call(0).await;
    assert_eq!(sent.path, "/v1/responses?api-version=v9&b=c%20d");
    for (name, value) in [
        ("x-static", Some("s")),
        ("x-env", Some("from-env")),
        ("x-blank", None),
        ("x-unset", None),
        ("originator", Some("mine")),
    ] {
        assert_eq!(sent.header(name), value, "{name}");
    }
}

#[tokio::test]
async fn a_password_in_the_url_becomes_a_header_and_appears_in_no_message() {
    let model = ScriptedModel::start().await;
    let url = model.base_url().replace("http://", "http://me:p%40ss@");
    let provider = ModelProvider { base_url: Some(url), ..config(&model) };
    model.reply(loomd_testkit::model::unauthorized());
    let message = super::error(&provider).await.message();
    assert_eq!(
        message,
        format!("unexpected status 401 Unauthorized: no such key, url: {}/responses", model.base_url())
    );
    let sent = model.call(0).await;
    assert_eq!(sent.header("authorization"), Some("Basic bWU6cEBzcw=="));
    assert_eq!(sent.header("host"), Some(&*model.address().to_string()));
}

#[tokio::test]
async fn the_environment_overrides_the_url_of_local_providers() {
    let model = ScriptedModel::start().await;
    let check = async |base: Option<String>, port: Option<String>| {
        let env = move |name: &str| match name {
            "CODEX_OSS_BASE_URL" => base.clone(),
            "CODEX_OSS_PORT" => port.clone(),
            _ => None,
        };
        let ollama = ModelProvider::built_in("ollama").unwrap();
        let provider = Provider::new("ollama", &ollama, &env, None);
        texts(&mut Session::new(provider, Http::new(&NO_ENV), Identity::default()), &request(&["hi"])).await;
    };
    check(Some(model.base_url()), Some("1".into())).await;
    assert_eq!(model.calls().len(), 1);
    check(None, Some(model.address().port().to_string())).await;
    assert_eq!(model.calls().len(), 2);
}

#[tokio::test]
async fn a_response_is_decoded_to_events() {
    let model = ScriptedModel::start().await;
    let usage = Usage { input: 10, cached: 4, output: 5, reasoning: 3 };
    let reply = reasoning(&["sum"], &["raw"]).then(streamed(&["Hel", "lo \"ö\"\n"])).then(completed(usage));
    model.reply(
        reply.header("openai-model", "other").header("x-codex-turn-state", "s").header("x-reasoning-included", "1"),
    );
    let mut session = session(&config(&model));
    let mut events = session.stream(&request(&["hi"]), CallMeter::none()).await.unwrap();
    let mut seen = Vec::new();
    while let Some(event) = events.next().await {
        seen.push(event.unwrap());
    }
    let ModelEvent::Headers(headers) = seen.remove(0) else { panic!("headers come first: {seen:?}") };
    let expected = ResponseHeaders {
        model: Some("other".into()),
        turn_state: Some("s".into()),
        reasoning_included: true,
        models_etag: None,
        rate_limits: headers.rate_limits.clone(),
    };
    assert_eq!((&headers, headers.rate_limits.len()), (&expected, 1));
    let kinds: Vec<_> =
        seen.iter().map(|event| format!("{event:?}").split([' ', '(']).next().unwrap().to_owned()).collect();
    assert_eq!(
        kinds,
        [
            "ItemAdded",
            "SummaryPartAdded",
            "SummaryDelta",
            "ReasoningDelta",
            "ItemDone",
            "ItemAdded",
            "TextDelta",
            "TextDelta",
            "ItemDone",
            "Completed"
        ]
    );
    assert_eq!(seen[7], ModelEvent::TextDelta { item_id: None, delta: "lo \"ö\"\n".into() });
    let ModelEvent::Completed { usage, .. } = seen.pop().unwrap() else { panic!("it ends with the end") };
    let expected = TokenUsage {
        total_tokens: 15,
        input_tokens: 10,
        cached_input_tokens: 4,
        cache_write_input_tokens: 0,
        output_tokens: 5,
        reasoning_output_tokens: 3,
    };
    assert_eq!(usage, Some(expected));
}

#[tokio::test]
async fn buffered_events_are_returned_without_waiting() {
    let model = ScriptedModel::start().await;
    model.reply(streamed(&["a", "b", "c"]));
    let mut session = session(&config(&model));
    let mut events = session.stream(&request(&["hi"]), CallMeter::none()).await.unwrap();
    let (mut waited, mut seen) = (0, 0);
    while let Some(event) = events.next().await {
        event.unwrap();
        (waited, seen) = (waited + 1, seen + 1);
        while let Some(event) = events.try_next_ready() {
            event.unwrap();
            seen += 1;
        }
    }
    assert_eq!(seen, 7);
    assert!(waited <= seen);
}

#[tokio::test]
async fn calls_reuse_one_connection() {
    let proxy = super::faults::Relay::start().await;
    let model = ScriptedModel::start().await;
    proxy.to(model.address());
    let config = ModelProvider { base_url: Some(proxy.base_url()), ..config(&model) };
    let mut session = session(&config);
    for number in 0..3 {
        model.reply(message(&format!("answer {number}")));
        assert_eq!(texts(&mut session, &request(&["hi"])).await, [format!("answer {number}")]);
    }
    assert_eq!(proxy.connections(), 1);
    // Stopping at the last event leaves the connection usable.
    let mut events = session.stream(&request(&["hi"]), CallMeter::none()).await.unwrap();
    while !matches!(events.next().await, Some(Ok(ModelEvent::Completed { .. }))) {}
    drop(events);
    assert_eq!(texts(&mut session, &request(&["hi"])).await.len(), 1);
    assert_eq!(proxy.connections(), 1);
    // Closed while idle: the next call opens another one.
    proxy.cut().await;
    assert_eq!(texts(&mut session, &request(&["hi"])).await.len(), 1);
    assert_eq!((proxy.connections(), model.calls().len()), (2, 6));
}

#[tokio::test]
async fn a_dropped_stream_cancels_its_call() {
    let model = ScriptedModel::start().await;
    let gate = loomd_testkit::Gate::new();
    model.reply(streamed(&["a"]).wait(&gate));
    let mut session = session(&config(&model));
    let mut events = session.stream(&request(&["hi"]), CallMeter::none()).await.unwrap();
    events.next().await.unwrap().unwrap();
    drop(events);
    model.abandoned(0).await;
}

#[tokio::test]
async fn a_decoded_item_is_sent_back_unchanged() {
    let model = ScriptedModel::start().await;
    model.reply(message("hello"));
    let mut session = session(&config(&model));
    let (events, _) = call(&mut session, &request(&["hi"])).await;
    let [ModelEvent::ItemDone { item, .. }, ..] = &*events else { panic!("no item: {events:?}") };
    let sent = InputItem::new(item).unwrap();
    assert_eq!(
        sent.json(),
        r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}"#
    );
    assert_eq!(sent.len(), sent.json().len());
    assert_ne!(sent, user("hello"));
}

#[tokio::test]
async fn sessions_can_move_between_os_threads() {
    let model = ScriptedModel::start().await;
    let mut session = session(&config(&model));
    let called = tokio::spawn(async move {
        let request = request(&["hi"]);
        session.warm_up(&request).await;
        let mut events = session.stream(&request, CallMeter::none()).await.unwrap();
        while events.next().await.is_some() {}
        session.compact(&request, CallMeter::none()).await.unwrap()
    });
    assert_eq!(called.await.unwrap().len(), 1);
}
