//! How turns end.

use std::time::Duration;

use loomd_client::protocol::{CodexErrorInfo, ServerNotification, TurnStatus};
use loomd_client::{Error, EventKind, Options};
use serde_json::{Value, json};

use crate::api::with_thread;
use crate::script::*;

fn started() -> Value {
    json!({ "turn": turn("u", "inProgress") })
}

fn error_of(turn: &str, message: &str, will_retry: bool) -> Value {
    let error = json!({ "message": message, "codexErrorInfo": "badRequest", "additionalDetails": null });
    json!({ "threadId": "t", "turnId": turn, "error": error, "willRetry": will_retry })
}

#[tokio::test]
async fn a_failed_turn_is_an_error_with_the_items_so_far() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        server.notify("item/completed", item_of("t", "u", agent_message("m", "so far"))).await;
        server.notify("error", error_of("u", "the model is gone", false)).await;
        let error = json!({ "message": "the model is gone", "codexErrorInfo": "other", "additionalDetails": null });
        let failed = json!({ "id": "u", "items": [], "status": "failed", "error": error });
        server.notify("turn/completed", json!({ "threadId": "t", "turn": failed })).await;
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    let error = done.unwrap_err();
    assert_eq!(error.to_string(), "the turn failed: the model is gone");
    let Error::TurnFailed(done) = error else { panic!("{error:?}") };
    assert_eq!(done.agent_message.as_deref(), Some("so far"));
}

#[tokio::test]
async fn an_interrupted_turn_has_status_interrupted() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        let (id, params) = server.request("turn/interrupt").await;
        assert_eq!(params, json!({ "threadId": "t", "turnId": "u" }));
        server.reply(id, json!({})).await;
        server.notify("turn/completed", turn_of("t", "u", "interrupted")).await;
    };
    let running = async {
        assert!(matches!(thread.interrupt().await, Err(Error::NoActiveTurn { .. })), "nothing runs yet");
        let mut turn = thread.send("hi").await?;
        turn.next().await.unwrap()?;
        thread.interrupt().await?;
        turn.finish().await
    };
    let (done, ()) = tokio::join!(running, playing);
    assert_eq!(done.unwrap().turn.status, TurnStatus::Interrupted);
}

#[tokio::test]
async fn finish_returns_the_whole_turn_after_events_were_read() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        for piece in ["a", "b"] {
            let delta = json!({ "threadId": "t", "turnId": "u", "itemId": "m", "delta": piece });
            server.notify("item/agentMessage/delta", delta).await;
        }
        server.answer("turn/steer", json!({ "turnId": "u" })).await;
        server.notify("item/completed", item_of("t", "u", agent_message("m", "ab"))).await;
        server.notify("turn/completed", turn_of("t", "u", "completed")).await;
    };
    let watching = async {
        let mut turn = thread.send("hi").await?;
        let mut text = String::new();
        while let Some(event) = turn.next().await {
            if let Some(ServerNotification::AgentMessageDelta(piece)) = event?.notification() {
                text.push_str(&piece.delta);
                if text == "ab" {
                    assert_eq!(turn.steer("and more").await?, "u");
                }
            }
        }
        let done = turn.finish().await?;
        assert_eq!((text.as_str(), done.agent_message.as_deref()), ("ab", Some("ab")));
        Ok::<_, Error>(())
    };
    let (watched, ()) = tokio::join!(watching, playing);
    watched.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_turn_without_events_times_out_and_is_interrupted() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        for _ in 0..3 {
            tokio::time::sleep(Duration::from_secs(299)).await;
            let delta = json!({ "threadId": "t", "turnId": "u", "itemId": "m", "delta": "." });
            server.notify("item/agentMessage/delta", delta).await;
        }
        let (_, params) = server.request("turn/interrupt").await;
        assert_eq!(params, json!({ "threadId": "t", "turnId": "u" }));
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    let error = done.unwrap_err();
    assert_eq!(error.to_string(), "no event of turn u for 300s");
}

#[tokio::test(start_paused = true)]
async fn a_turn_beyond_its_limit_is_interrupted_although_events_come() {
    let (thread, mut server) = with_thread(Options::default().turn_limit(Duration::from_secs(60))).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        for _ in 0..7 {
            tokio::time::sleep(Duration::from_secs(9)).await;
            let delta = json!({ "threadId": "t", "turnId": "u", "itemId": "m", "delta": "." });
            server.notify("item/agentMessage/delta", delta).await;
        }
        let (_, params) = server.request("turn/interrupt").await;
        assert_eq!(params, json!({ "threadId": "t", "turnId": "u" }));
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    assert_eq!(done.unwrap_err().to_string(), "turn u did not end within 60s");
}

#[tokio::test]
async fn an_error_kind_of_a_newer_server_is_kept_as_received() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let kind = json!({ "modelCap": { "model": "m", "reset_after_seconds": 60 } });
    let playing = async {
        server.answer("turn/start", started()).await;
        let error = json!({ "message": "no more", "codexErrorInfo": kind, "additionalDetails": "later" });
        let failed = json!({ "id": "u", "items": [], "status": "failed", "error": error });
        server.notify("turn/completed", json!({ "threadId": "t", "turn": failed })).await;
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    let Err(Error::TurnFailed(done)) = done else { panic!("{done:?}") };
    assert_eq!(done.turn.error.unwrap().codex_error_info, Some(CodexErrorInfo::Unknown(kind.clone())));
}

#[tokio::test(start_paused = true)]
async fn an_error_before_the_turn_starts_fails_it() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("error", error_of("u", "trying again", true)).await;
        server.notify("error", error_of("u", "input must not be empty", false)).await;
    };
    let (done, ()) = tokio::join!(thread.run(vec![]), playing);
    assert_eq!(done.unwrap_err().to_string(), "the turn failed: input must not be empty");
}

#[tokio::test(start_paused = true)]
async fn an_error_during_a_running_turn_does_not_end_it() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("error", error_of("u", "that setting is not allowed", false)).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        server.notify("error", error_of("u", "neither is that", false)).await;
        tokio::time::sleep(Duration::from_secs(60)).await;
        server.notify("turn/completed", turn_of("t", "u", "completed")).await;
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    assert_eq!(done.unwrap().turn.status, TurnStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn input_added_to_the_running_turn_completes_with_it() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let mut events = thread.events();
    server.notify("turn/started", turn_of("t", "running", "inProgress")).await;
    events.next().await.unwrap().unwrap();
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("item/completed", item_of("t", "running", agent_message("m", "both"))).await;
        server.notify("turn/completed", turn_of("t", "running", "completed")).await;
    };
    let (done, ()) = tokio::join!(thread.run("also this"), playing);
    let done = done.unwrap();
    assert_eq!((done.turn.id.as_str(), done.agent_message.as_deref()), ("running", Some("both")));
}

#[tokio::test(start_paused = true)]
async fn a_queued_turn_collects_only_its_own_items() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let mut events = thread.events();
    server.notify("turn/started", turn_of("t", "running", "inProgress")).await;
    events.next().await.unwrap().unwrap();
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("item/completed", item_of("t", "running", agent_message("m", "theirs"))).await;
        server.notify("turn/completed", turn_of("t", "running", "completed")).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        server.notify("item/completed", item_of("t", "u", agent_message("n", "ours"))).await;
        server.notify("turn/completed", turn_of("t", "u", "completed")).await;
    };
    let (done, ()) = tokio::join!(thread.run("next"), playing);
    let done = done.unwrap();
    assert_eq!((done.turn.id.as_str(), done.items.len()), ("u", 1));
    assert_eq!(done.agent_message.as_deref(), Some("ours"));
}

#[tokio::test(start_paused = true)]
async fn a_command_that_completes_just_after_its_turn_is_collected() {
    for (completes, expected) in [(true, 1), (false, 0)] {
        let (thread, mut server) = with_thread(Options::default()).await;
        let playing = async {
            server.answer("turn/start", started()).await;
            server.notify("item/started", item_of("t", "u", command("c", "inProgress"))).await;
            server.notify("turn/completed", turn_of("t", "u", "completed")).await;
            if completes {
                tokio::time::sleep(Duration::from_millis(100)).await;
                server.notify("item/completed", item_of("t", "u", command("c", "completed"))).await;
            }
            server
        };
        let (done, _server) = tokio::join!(thread.run("hi"), playing);
        assert_eq!(done.unwrap().items.len(), expected);
    }
}

#[tokio::test]
async fn unknown_items_and_notifications_do_not_keep_a_turn_from_ending() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let sleep = json!({ "type": "sleep", "id": "s", "durationMs": 5 });
    let playing = async {
        server.answer("turn/start", started()).await;
        server.notify("turn/started", turn_of("t", "u", "inProgress")).await;
        server.notify("turn/mood/updated", json!({ "threadId": "t", "turnId": "u", "mood": "good" })).await;
        server.notify("item/completed", item_of("t", "u", sleep.clone())).await;
        let error = json!({ "message": "no", "codexErrorInfo": "tooManyDenials", "additionalDetails": null });
        let failed = json!({ "id": "u", "items": [sleep], "status": "failed", "error": error });
        server.notify("turn/completed", json!({ "threadId": "t", "turn": failed })).await;
    };
    let running = async {
        let mut turn = thread.send("hi").await.unwrap();
        let mut others = Vec::new();
        while let Some(event) = turn.next().await {
            if let EventKind::Other { method, .. } = event.unwrap().kind {
                others.push(method);
            }
        }
        assert_eq!(others, ["turn/mood/updated", "item/completed"]);
        turn.finish().await
    };
    let (done, ()) = tokio::join!(running, playing);
    let Err(Error::TurnFailed(done)) = done else { panic!("{done:?}") };
    assert_eq!(done.other_items, [sleep]);
}

#[tokio::test]
async fn a_lost_connection_fails_running_turns() {
    let (thread, mut server) = with_thread(Options::default()).await;
    let playing = async {
        server.answer("turn/start", started()).await;
        drop(server);
    };
    let (done, ()) = tokio::join!(thread.run("hi"), playing);
    assert!(matches!(done, Err(Error::Disconnected(_))), "{done:?}");
}
