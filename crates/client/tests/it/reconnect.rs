//! Connections that are lost and made again.

use std::time::Duration;

use loomd_client::protocol::{ThreadStartParams, TurnStatus};
use loomd_client::{Backoff, Client, Error, EventKind, Events, Options};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::script::*;

const BACKOFF: Backoff = Backoff { attempts: 3, first: Duration::from_millis(100), longest: Duration::from_secs(1) };

/// A client with two open threads, whose connection was just lost.
async fn lost() -> (Client, Events, mpsc::Receiver<Server>, Server) {
    let (endpoint, mut accepted) = scripted();
    let serving = async {
        let mut server = accepted.recv().await.unwrap();
        server.handshake().await;
        for id in ["a", "b", "gone"] {
            server.answer("thread/start", opened_thread(thread(id))).await;
        }
        server.answer("thread/archive", json!({})).await;
        server
    };
    let connecting = async {
        let (client, events) = Client::open(endpoint, Options::default().reconnect(BACKOFF)).await?;
        for _ in 0..3 {
            client.start_thread(ThreadStartParams::default()).await?;
        }
        client.archive_thread("gone").await?;
        Ok::<_, Error>((client, events))
    };
    let (connected, server) = tokio::join!(connecting, serving);
    let (client, events) = connected.unwrap();
    (client, events, accepted, server)
}

#[tokio::test(start_paused = true)]
async fn open_threads_are_resumed_and_streams_go_on_after_a_reconnect() {
    let (client, mut events, mut accepted, server) = lost().await;
    drop(server);
    let serving = async {
        let mut server = accepted.recv().await.unwrap();
        server.handshake().await;
        let params = server.answer("thread/resume", opened_thread(thread("a"))).await;
        assert_eq!(params, json!({ "threadId": "a" }));
        let (id, _) = server.request("thread/resume").await;
        server.refuse(id, -32600, "no rollout").await;
        // Sent while the client was reconnecting.
        server.answer("thread/read", json!({ "thread": thread("a") })).await;
        server.notify("skills/changed", json!({})).await;
        server
    };
    let (read, _server) = tokio::join!(client.read_thread("a", false), serving);
    read.unwrap();
    let mut seen = Vec::new();
    while seen.len() < 5 {
        let event = events.next().await.unwrap().unwrap();
        let what = match &event.kind {
            EventKind::Lost(ended) => ended.to_string(),
            EventKind::Resumed(resumed) => format!("resumed {}", resumed.thread.id),
            EventKind::NotResumed(error) => error.to_string(),
            EventKind::Reconnected => "reconnected".into(),
            _ => event.method().unwrap().to_owned(),
        };
        seen.push((event.thread_id, what));
    }
    let of = |thread: &str, what: &str| (Some(thread.to_owned()), what.to_owned());
    let all = |what: &str| (None, what.to_owned());
    assert_eq!(
        seen,
        [
            all("the server closed the connection"),
            of("a", "resumed a"),
            of("b", "no rollout (-32600)"),
            all("reconnected"),
            all("skills/changed"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_client_is_disconnected_after_the_last_attempt() {
    let (client, mut events, accepted, server) = lost().await;
    drop((server, accepted));
    let error = client.read_thread("a", false).await.unwrap_err();
    assert!(matches!(error, Error::Disconnected(_)), "{error:?}");
    assert!(matches!(events.next().await.unwrap().unwrap().kind, EventKind::Lost(_)));
    assert!(matches!(events.next().await, Some(Err(Error::Disconnected(_)))));
    assert!(events.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn a_client_closed_while_reconnecting_stays_closed() {
    let (client, mut events, mut accepted, server) = lost().await;
    drop(server);
    let mut server = accepted.recv().await.unwrap();
    server.request("initialize").await;
    client.close().await;
    assert!(matches!(client.read_thread("a", false).await, Err(Error::Closed)));
    drop(server);
    assert!(matches!(events.next().await.unwrap().unwrap().kind, EventKind::Lost(_)));
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn without_the_option_there_is_no_reconnect() {
    let (endpoint, mut accepted) = scripted();
    let serving = async {
        let mut server = accepted.recv().await.unwrap();
        server.handshake().await;
    };
    let (client, ()) = tokio::join!(Client::connect(endpoint, Options::default()), serving);
    let client = client.unwrap();
    assert!(matches!(client.read_thread("a", false).await, Err(Error::Disconnected(_))));
    assert!(accepted.try_recv().is_err());
}

/// A turn whose connection is lost, and its result: `turns` and `status` are the resumed thread's, `then` the events
/// after that.
async fn check_turn(turns: Value, status: Value, then: Vec<(&str, Value)>) -> loomd_client::CompletedTurn {
    let (client, _events, mut accepted, mut server) = lost().await;
    let serving = async move {
        server.answer("turn/start", json!({ "turn": turn("u", "inProgress") })).await;
        server.notify("turn/started", turn_of("a", "u", "inProgress")).await;
        server.notify("item/completed", item_of("a", "u", agent_message("1", "one"))).await;
        drop(server);
        let mut server = accepted.recv().await.unwrap();
        server.handshake().await;
        let mut resumed = thread("a");
        resumed["turns"] = turns;
        resumed["status"] = status;
        server.answer("thread/resume", opened_thread(resumed)).await;
        server.answer("thread/resume", opened_thread(thread("b"))).await;
        for (method, params) in then {
            server.notify(method, params).await;
        }
        server
    };
    let running = async {
        let params = json!({ "threadId": "a", "input": [{ "type": "text", "text": "hi" }] });
        client.run_turn(serde_json::from_value(params).unwrap()).await
    };
    let (done, _server) = tokio::join!(running, serving);
    done.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_still_running_after_a_reconnect_completes() {
    let mut running = turn("u", "inProgress");
    running["items"] = json!([agent_message("1", "one"), agent_message("2", "two")]);
    let then = vec![
        ("item/completed", item_of("a", "u", agent_message("3", "three"))),
        ("turn/completed", turn_of("a", "u", "completed")),
    ];
    let done = check_turn(json!([running]), json!({ "type": "active", "activeFlags": [] }), then).await;
    assert_eq!((done.turn.status, done.items.len()), (TurnStatus::Completed, 3));
    assert_eq!(done.agent_message.as_deref(), Some("three"));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_ended_before_the_reconnect_is_complete() {
    let mut ended = turn("u", "completed");
    ended["items"] = json!([agent_message("1", "one"), agent_message("2", "two")]);
    let done = check_turn(json!([ended]), json!({ "type": "idle" }), vec![]).await;
    assert_eq!((done.turn.status, done.agent_message.as_deref()), (TurnStatus::Completed, Some("two")));
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_was_not_stored_is_interrupted_after_a_reconnect() {
    let done = check_turn(json!([]), json!({ "type": "idle" }), vec![]).await;
    assert_eq!((done.turn.status, done.items.len()), (TurnStatus::Interrupted, 1));
}

/// An event of thread `a` with an id.
fn numbered(event_id: &str, name: &str) -> Value {
    json!({
        "method": "thread/name/updated", "params": { "threadId": "a", "threadName": name }, "eventId": event_id,
    })
}

/// The names and resets that a client sees when its connection is lost after event 10 and the server answers the resume
/// like this.
async fn seen_after(resumed: Value) -> Vec<String> {
    let (client, mut events, mut accepted, server) = lost().await;
    server.send(numbered("9", "nine")).await;
    server.send(numbered("10", "ten")).await;
    let mut seen = Vec::new();
    let serving = async {
        drop(server);
        let mut server = accepted.recv().await.unwrap();
        server.handshake().await;
        // Sent to all connections.
        server.send(numbered("12", "early")).await;
        let (id, params) = server.request("thread/resume").await;
        assert_eq!(params, json!({ "threadId": "a", "afterEvent": "10" }));
        let mut answer = opened_thread(thread("a"));
        answer.as_object_mut().unwrap().extend(resumed.as_object().unwrap().clone());
        server.reply(id, answer).await;
        for (id, name) in [("11", "eleven"), ("12", "early"), ("100000000000000000000000", "late")] {
            server.send(numbered(id, name)).await;
        }
        server.answer("thread/resume", opened_thread(thread("b"))).await;
        server
    };
    let reading = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            match &event.kind {
                EventKind::Resumed(resumed) if resumed.thread.id == "a" => seen.push("reset".into()),
                EventKind::Notification(_) | EventKind::Other { .. } => {
                    let name = match event.notification() {
                        Some(loomd_client::protocol::ServerNotification::ThreadNameUpdated(updated)) => {
                            updated.thread_name.clone().unwrap_or_default()
                        }
                        _ => continue,
                    };
                    let is_last = name == "late";
                    seen.push(name);
                    if is_last {
                        break;
                    }
                }
                _ => {}
            }
        }
    };
    let (_server, ()) = tokio::join!(serving, reading);
    drop(client);
    seen
}

#[tokio::test(start_paused = true)]
async fn missed_events_are_seen_once_after_a_reconnect() {
    let seen = seen_after(json!({ "replay": "complete", "eventId": "12" })).await;
    assert_eq!(seen, ["nine", "ten", "eleven", "early", "late"]);
}

#[tokio::test(start_paused = true)]
async fn a_reset_takes_the_place_of_events_that_the_server_no_longer_has() {
    let seen = seen_after(json!({ "replay": "reset", "replayReason": "tooOld", "eventId": "12" })).await;
    assert_eq!(seen, ["nine", "ten", "reset", "late"]);
}
