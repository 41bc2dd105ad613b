//! Calls of a session to a scripted local provider.

#![allow(clippy::unwrap_used, reason = "a test that fails may stop")]

mod credentials;
mod errors;
mod faults;
mod recording;
mod requests;
mod routes;
mod socket;
mod wires;

use std::sync::Arc;

use loomd_config::config_toml::ModelProvider;
use loomd_model::{
    CallHeaders, CallMeter, Credentials, Http, Identity, InputItem, ModelError, ModelEvent, Provider, Request, Session,
    Tools,
};
use loomd_protocol::{ContentItem, ResponseItem};
use loomd_testkit::ScriptedModel;

const NO_ENV: fn(&str) -> Option<String> = |_| None;

/// A provider without retries.
fn config(model: &ScriptedModel) -> ModelProvider {
    ModelProvider {
        name: "Scripted".into(),
        base_url: Some(model.base_url()),
        request_max_retries: Some(0),
        ..ModelProvider::default()
    }
}

fn session(config: &ModelProvider) -> Session {
    session_of("scripted", config, NO_ENV, None)
}

fn session_of(
    id: &str,
    config: &ModelProvider,
    env: fn(&str) -> Option<String>,
    account: Option<Arc<dyn Credentials>>,
) -> Session {
    session_on(Http::new(&NO_ENV), id, config, env, account)
}

fn session_on(
    http: Arc<Http>,
    id: &str,
    config: &ModelProvider,
    env: fn(&str) -> Option<String>,
    account: Option<Arc<dyn Credentials>>,
) -> Session {
    let identity = Identity {
        user_agent: "test/1".into(),
        originator: "test".into(),
        version: "0.118.0".into(),
        residency: Some("us"),
    };
    Session::new(Provider::new(id, config, &env, account), http, identity)
}

fn request(texts: &[&str]) -> Request {
    Request {
        model: "some-model".into(),
        instructions: "Be \"brief\".".into(),
        input: texts.iter().map(|text| user(text)).collect(),
        tools: Arc::new(Tools::default()),
        parallel_tool_calls: false,
        reasoning: None,
        verbosity: None,
        output_schema: None,
        service_tier: None,
        prompt_cache_key: "thread-1".into(),
        headers: CallHeaders { session_id: "thread-1".into(), ..CallHeaders::default() },
    }
}

fn user(text: &str) -> InputItem {
    InputItem::new(&message_item("user", ContentItem::InputText { text: text.into() }, None)).unwrap()
}

fn assistant(id: &str, text: &str) -> ResponseItem {
    message_item("assistant", ContentItem::OutputText { text: text.into() }, Some(id.into()))
}

fn message_item(role: &str, content: ContentItem, id: Option<String>) -> ResponseItem {
    ResponseItem::Message { role: role.into(), content: vec![content], end_turn: None, phase: None, id }
}

/// Returns all events but the headers, and the error at the end, if any.
async fn call(session: &mut Session, request: &Request) -> (Vec<ModelEvent>, Option<ModelError>) {
    let mut seen = Vec::new();
    let mut events = match session.stream(request, CallMeter::none()).await {
        Ok(events) => events,
        Err(error) => return (seen, Some(error)),
    };
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::Headers(_)) => assert!(seen.is_empty(), "headers come first"),
            Ok(event) => seen.push(event),
            Err(error) => {
                assert!(events.next().await.is_none(), "nothing follows an error");
                return (seen, Some(error));
            }
        }
    }
    (seen, None)
}

/// Returns the texts of finished messages.
async fn texts(session: &mut Session, request: &Request) -> Vec<String> {
    let (events, error) = call(session, request).await;
    assert_eq!(error, None);
    let text = |event| match event {
        ModelEvent::ItemDone { item: ResponseItem::Message { content, .. }, .. } => match content.into_iter().next() {
            Some(ContentItem::OutputText { text }) => Some(text),
            other => panic!("no text: {other:?}"),
        },
        _ => None,
    };
    events.into_iter().filter_map(text).collect()
}

/// Returns the error of the only call of a session.
async fn error(config: &ModelProvider) -> ModelError {
    let (_, error) = call(&mut session(config), &request(&["hi"])).await;
    error.expect("the call fails")
}
