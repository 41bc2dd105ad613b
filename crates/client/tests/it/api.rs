//! The nine requirements of a client library, one test each, then the other short methods.

use std::sync::Arc;

use loomd_client::protocol::{
    self, AskForApproval, CommandExecParams, ModelListParams, ReviewStartParams, ReviewTarget, SandboxMode,
    ServerNotification, ThreadItem, ThreadListParams, ThreadStartParams, TurnSteerParams,
};
use loomd_client::{Error, Input, Options, Thread, Websocket, fork, resume};
use serde_json::{Value, json};

use crate::script::*;

/// A client with an open thread `t`.
pub async fn with_thread(options: Options) -> (Thread, Server) {
    let (client, mut server) = connected(options).await;
    let starting = async {
        server.answer("thread/start", opened_thread(thread("t"))).await;
    };
    let (started, ()) = tokio::join!(client.start_thread(ThreadStartParams::default()), starting);
    (started.unwrap(), server)
}

fn text(text: &str) -> Value {
    json!([{ "type": "text", "text": text, "text_elements": [] }])
}

#[tokio::test]
async fn test_1_connecting_sends_initialize_and_initialized() {
    let (endpoint, mut accepted) = scripted();
    let server = async {
        let mut server = accepted.recv().await.unwrap();
        let first = server.message().await;
        server.reply(json!(0), initialized()).await;
        (first, server.message().await)
    };
    let (client, said) = tokio::join!(loomd_client::Client::connect(endpoint, Options::new("me", "1.2")), server);
    let params = json!({
        "clientInfo": { "name": "me", "title": null, "version": "1.2" },
        "capabilities": { "experimentalApi": true, "eventIds": true },
    });
    let expected = json!({ "method": "initialize", "id": 0, "params": params });
    assert_eq!(said, (expected, json!({ "method": "initialized" })));
    assert_eq!(client.unwrap().server().user_agent, "server/1.0");
}

#[tokio::test]
async fn test_2_starting_a_thread_gives_the_thread() {
    let options = Options::default()
        .model("m")
        .cwd("/w")
        .approval_policy(AskForApproval::Never)
        .sandbox(SandboxMode::WorkspaceWrite);
    let (client, mut server) = connected(options).await;
    let (started, params) = tokio::join!(
        client.start_thread(ThreadStartParams { cwd: Some("/other".into()), ..Default::default() }),
        server.answer("thread/start", opened_thread(thread("t")))
    );
    assert_eq!(
        params,
        json!({
            "model": "m", "cwd": "/other", "approvalPolicy": "never", "sandbox": "workspace-write",
            "experimentalRawEvents": false, "persistExtendedHistory": false,
        })
    );
    let started = started.unwrap();
    assert_eq!((started.id(), started.settings().model.as_str()), ("t", "m"));
}

#[tokio::test]
async fn test_3_resuming_a_thread_names_it() {
    let (client, mut server) = connected(Options::default()).await;
    let (resumed, params) =
        tokio::join!(client.resume_thread(resume("t")), server.answer("thread/resume", opened_thread(thread("t"))));
    assert_eq!(params, json!({ "threadId": "t", "persistExtendedHistory": false }));
    assert_eq!(resumed.unwrap().id(), "t");
}

#[tokio::test]
async fn test_4_starting_a_turn_gives_the_turn() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let (started, params) = tokio::join!(
        thread.send(Input::text("look").and_image("http://x/i.png")),
        server.answer("turn/start", json!({ "turn": turn("u", "inProgress") }))
    );
    let input = json!([
        { "type": "text", "text": "look", "text_elements": [] },
        { "type": "image", "url": "http://x/i.png" },
    ]);
    assert_eq!(params, json!({ "threadId": "t", "input": input }));
    let started = started.unwrap();
    assert_eq!((started.id(), started.thread_id()), ("u", "t"));
}

#[tokio::test]
async fn test_5_running_a_turn_collects_its_items() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let usage = json!({
        "totalTokens": 15, "inputTokens": 10, "cachedInputTokens": 0, "outputTokens": 5, "reasoningOutputTokens": 0,
    });
    let playing = async {
        server.answer("turn/start", json!({ "turn": turn("u", "inProgress") })).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        server.notify("item/started", item_of("t", "u", agent_message("m1", ""))).await;
        let delta = json!({ "threadId": "t", "turnId": "u", "itemId": "m1", "delta": "hel" });
        server.notify("item/agentMessage/delta", delta).await;
        // Of another thread, to be left out.
        server.notify("item/completed", item_of("other", "v", agent_message("x", "no"))).await;
        server.notify("item/completed", item_of("t", "u", agent_message("m1", "hello"))).await;
        server.notify("turn/diff/updated", json!({ "threadId": "t", "turnId": "u", "diff": "+x" })).await;
        let plan = json!([{ "step": "look", "status": "completed" }]);
        let plan = json!({ "threadId": "t", "turnId": "u", "explanation": null, "plan": plan });
        server.notify("turn/plan/updated", plan).await;
        let tokens = json!({ "total": usage, "last": usage, "modelContextWindow": 100 });
        server
            .notify("thread/tokenUsage/updated", json!({ "threadId": "t", "turnId": "u", "tokenUsage": tokens }))
            .await;
        server.notify("turn/completed", turn_of("t", "u", "completed")).await;
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    let done = done.unwrap();
    let expected = json!([agent_message("m1", "hello")]);
    assert_eq!(serde_json::to_value(&done.items).unwrap(), expected);
    let mut expected = turn("u", "completed");
    for unknown in ["startedAt", "completedAt", "durationMs", "rootTurnId"] {
        expected[unknown] = Value::Null;
    }
    assert_eq!(serde_json::to_value(&done.turn).unwrap(), expected);
    assert_eq!(done.agent_message.as_deref(), Some("hello"));
    assert_eq!(done.diff.as_deref(), Some("+x"));
    assert_eq!(done.plan.len(), 1);
    assert_eq!(done.usage.unwrap().total.total_tokens, 15);
}

#[tokio::test]
async fn test_6_steering_names_the_turn_that_is_expected() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let params = TurnSteerParams {
        thread_id: "t".into(),
        input: Input::text("more").0,
        expected_turn_id: "u".into(),
        client_user_message_id: None,
    };
    let (steered, params) =
        tokio::join!(thread.client().steer_turn(params), server.answer("turn/steer", json!({ "turnId": "u" })));
    assert_eq!(params, json!({ "threadId": "t", "input": text("more"), "expectedTurnId": "u" }));
    assert_eq!(steered.unwrap(), "u");
}

#[tokio::test]
async fn test_7_interrupting_names_the_turn() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let (interrupted, params) =
        tokio::join!(thread.client().interrupt_turn("t", "u"), server.answer("turn/interrupt", json!({})));
    assert_eq!(params, json!({ "threadId": "t", "turnId": "u" }));
    interrupted.unwrap();
}

#[tokio::test]
async fn test_8_an_error_response_is_an_rpc_error() {
    let (client, mut server) = connected(Options::default()).await;
    let refusing = async {
        let (id, _) = server.request("thread/read").await;
        server.refuse(id, -32600, "thread not found: t").await;
    };
    let (read, ()) = tokio::join!(client.read_thread("t", false), refusing);
    let error = read.unwrap_err();
    assert_eq!(error.to_string(), "thread/read: thread not found: t (-32600)");
    assert_eq!(error.rpc().unwrap().code, -32600);
}

#[tokio::test]
async fn test_9_pending_requests_fail_when_the_connection_ends() {
    let (client, mut events, mut server) = opened(Options::default()).await;
    let ending = async {
        server.message().await;
        server.message().await;
        drop(server);
    };
    let (one, other, ()) =
        tokio::join!(client.read_thread("a", false), client.list_models(ModelListParams::default()), ending);
    let words = "the server closed the connection";
    for error in [one.unwrap_err(), other.unwrap_err(), events.next().await.unwrap().unwrap_err()] {
        assert!(matches!(error, Error::Disconnected(_)), "{error:?}");
        assert_eq!(error.to_string(), words);
    }
    assert!(events.next().await.is_none());
    let error = client.read_thread("a", false).await.unwrap_err();
    assert_eq!(error.to_string(), words, "later requests fail the same way");
}

#[tokio::test]
async fn short_methods_send_their_request() {
    let (client, mut server) = connected(Options::default()).await;
    let playing = async {
        let read = server.answer("thread/read", json!({ "thread": thread("t") })).await;
        assert_eq!(read, json!({ "threadId": "t", "includeTurns": true }));
        server.answer("thread/list", json!({ "data": [thread("t")], "nextCursor": "c" })).await;
        let forked = server.answer("thread/fork", opened_thread(thread("f"))).await;
        assert_eq!(forked["threadId"], "t");
        assert_eq!(server.answer("thread/archive", json!({})).await, json!({ "threadId": "t" }));
        assert_eq!(server.answer("thread/compact/start", json!({})).await, json!({ "threadId": "t" }));
        server.answer("model/list", json!({ "data": [], "nextCursor": null })).await;
        let exec = server.answer("command/exec", json!({ "exitCode": 0, "stdout": "hi", "stderr": "" })).await;
        assert_eq!(exec, json!({ "command": ["echo", "hi"] }));
        assert_eq!(server.answer("account/logout", json!({})).await, Value::Null);
        server.answer("future/method", json!(5)).await;
    };
    let calling = async {
        assert_eq!(client.read_thread("t", true).await?.id, "t");
        assert_eq!(client.list_threads(ThreadListParams::default()).await?.next_cursor.as_deref(), Some("c"));
        assert_eq!(client.fork_thread(fork("t")).await?.id(), "f");
        client.archive_thread("t").await?;
        client.compact_thread("t").await?;
        assert!(client.list_models(ModelListParams::default()).await?.data.is_empty());
        let params = CommandExecParams { command: vec!["echo".into(), "hi".into()], ..Default::default() };
        assert_eq!(client.exec_command(params).await?.stdout, "hi");
        client.account_logout(protocol::NoParams).await?;
        assert_eq!(client.call_json("future/method", json!({})).await?, json!(5));
        Ok::<_, Error>(())
    };
    let (called, ()) = tokio::join!(calling, playing);
    called.unwrap();
}

#[tokio::test]
async fn a_detached_review_returns_its_text() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        // The thread of a detached review is announced before the response that names it.
        server.notify("thread/started", json!({ "thread": crate::script::thread("r") })).await;
        let (id, params) = server.request("review/start").await;
        server.reply(id, json!({ "turn": turn("u", "inProgress"), "reviewThreadId": "r" })).await;
        let entered = json!({ "type": "enteredReviewMode", "id": "u", "review": "current changes" });
        server.notify("item/completed", item_of("r", "u", entered)).await;
        // A turn with another id than the review's.
        server.notify("turn/started", turn_of("r", "hidden", "inProgress")).await;
        let exited = json!({ "type": "exitedReviewMode", "id": "u", "review": "all good" });
        server.notify("item/completed", item_of("r", "u", exited)).await;
        server.notify("turn/completed", turn_of("r", "u", "completed")).await;
        params
    };
    let review = ReviewStartParams {
        thread_id: "t".into(),
        target: ReviewTarget::UncommittedChanges,
        delivery: Some(protocol::ReviewDelivery::Detached),
        idempotency_key: None,
    };
    let (done, params) = tokio::join!(thread.client().run_review(review), playing);
    assert_eq!(params, json!({ "threadId": "t", "target": { "type": "uncommittedChanges" }, "delivery": "detached" }));
    let done = done.unwrap();
    assert_eq!((done.thread_id.as_str(), done.review_text.as_str()), ("r", "all good"));
    assert_eq!(done.items.len(), 2, "both markers, although they share an id: {:?}", done.items);
}

#[tokio::test]
async fn streams_get_the_typed_events_that_pass_their_filter() {
    let (client, mut all, server) = opened(Options::default()).await;
    let mut of_thread = client.events(loomd_client::Filter::thread("t"));
    let mut of_turn = client.events(loomd_client::Filter::turn("t", "u"));
    server.notify("thread/started", json!({ "thread": thread("t") })).await;
    server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
    let item = item_of("t", "u", json!({ "type": "plan", "id": "p", "text": "x" }));
    server.notify("item/completed", item).await;
    server.notify("turn/started", turn_of("t", "v", "inProgress")).await;
    server.notify("turn/started", turn_of("z", "v", "inProgress")).await;
    drop(server);
    let methods = async |events: &mut loomd_client::Events| {
        let mut seen = Vec::new();
        while let Some(Ok(event)) = events.next().await {
            if let Some(ServerNotification::ItemCompleted(completed)) = event.notification() {
                assert_eq!(completed.item, ThreadItem::Plan { id: "p".into(), text: "x".into() });
            }
            seen.push(event.method().unwrap().to_owned());
        }
        seen
    };
    let everything = ["thread/started", "turn/started", "item/completed", "turn/started", "turn/started"];
    assert_eq!(methods(&mut all).await, everything);
    assert_eq!(methods(&mut of_thread).await, everything[..4]);
    assert_eq!(methods(&mut of_turn).await, everything[1..3]);
}

#[test]
fn debug_output_has_no_secrets() {
    let endpoint = Websocket::new("ws://127.0.0.1:1").bearer("hunter2");
    let program = loomd_client::Program::new("x").env("KEY", "hunter2");
    assert!(!format!("{endpoint:?} {program:?}").contains("hunter2"));
}

#[tokio::test]
async fn dropping_the_last_handle_closes_the_connection() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let clone = thread.clone();
    drop(thread);
    let clone = Arc::new(clone);
    drop(clone);
    server.left().await;
}

#[tokio::test]
async fn closing_fails_pending_requests_and_ends_streams() {
    let (client, mut events, mut server) = opened(Options::default()).await;
    let (asked, waiting) = tokio::sync::oneshot::channel();
    let playing = async {
        server.request("model/list").await;
        asked.send(()).unwrap();
        server.left().await;
        drop(server);
    };
    let closing = async {
        waiting.await.unwrap();
        client.close().await
    };
    let (listed, _, ()) = tokio::join!(client.list_models(ModelListParams::default()), closing, playing);
    assert!(matches!(listed.unwrap_err(), Error::Closed));
    assert!(events.next().await.is_none());
    assert!(matches!(client.read_thread("t", false).await.unwrap_err(), Error::Closed));
}
