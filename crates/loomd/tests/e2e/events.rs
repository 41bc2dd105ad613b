//! Event ids: clients that leave and come back miss no event and get none twice, or are told that they have to begin
//! anew.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fastrand::Rng;
use loomd_protocol::{InitializeCapabilities, RequestId};
use loomd_testkit::model::{function_call, message, streamed};
use loomd_testkit::{Gate, Home, Peer, ScriptedModel, Signal, WsConnection, WsServer};
use serde_json::{Value, json};

use crate::common::launch;

const APPROVAL: &str = "item/commandExecution/requestApproval";

/// Clients that leave and come back.
const WANDERERS: u64 = 3;

fn event_ids() -> InitializeCapabilities {
    InitializeCapabilities { experimental_api: true, event_ids: true, ..Default::default() }
}

async fn connect(server: &WsServer) -> WsConnection {
    let client = server.connect().await;
    client.initialize_with(event_ids()).await;
    client
}

/// A number from the environment, for longer runs than in CI.
fn configured(name: &str, default: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn id_of(message: &Value) -> u128 {
    message["eventId"].as_str().expect("an event id is a string").parse().expect("an event id is a decimal number")
}

fn is_of(message: &Value, thread: &str) -> bool {
    let params = &message["params"];
    message.get("eventId").is_some() && (params["threadId"] == thread || params["thread"]["id"] == thread)
}

/// The events of a thread that were received after the answer to a request.
fn events_after(client: &Peer, answer: &RequestId, thread: &str) -> Vec<Value> {
    let answer = serde_json::to_value(answer).unwrap();
    let messages = client.messages().into_iter();
    let rest = messages.skip_while(|message| message.get("method").is_some() || message["id"] != answer);
    rest.filter(|message| is_of(message, thread)).collect()
}

/// Waits until a condition holds, which another task brings about.
async fn until(what: &str, condition: impl Fn() -> bool) {
    let waited = async {
        while !condition() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(loomd_testkit::TIMEOUT, waited).await.unwrap_or_else(|_| panic!("no {what}"));
}

/// A client's log of a thread, put together from the pieces that its connections received.
struct Log {
    /// The event of the last snapshot.
    from: u128,
    events: Vec<Value>,
}

impl Log {
    fn last(&self) -> u128 {
        self.events.last().map_or(self.from, id_of)
    }

    /// Appends a piece. Server requests that are open are sent again with the ids that they had.
    fn extend(&mut self, piece: &[Value]) {
        let last = self.last();
        for event in piece {
            if id_of(event) > last {
                assert!(id_of(event) > self.last(), "not in order: {event}");
                self.events.push(event.clone());
            } else {
                assert!(event.get("id").is_some(), "a second time: {event}");
            }
        }
    }
}

struct Run<'a> {
    server: &'a WsServer,
    thread: &'a str,
    /// Connections that were closed so far.
    disconnects: AtomicU32,
    /// Approvals that were requested so far.
    approvals: AtomicU32,
    /// The last event of the one who stayed, once all turns have ended.
    end: std::sync::OnceLock<u128>,
}

impl Run<'_> {
    /// Follows the thread over many connections, each of which is closed after some events.
    async fn wander(&self, seed: u64, mut log: Log) -> Log {
        let mut random = Rng::with_seed(seed);
        let mut approvals = 0;
        loop {
            let client = connect(self.server).await;
            let params = json!({ "threadId": self.thread, "afterEvent": log.last().to_string(), "excludeTurns": true });
            let request = client.send_request("thread/resume", params).await;
            let answer = client.response(&request).await.expect("it can be resumed");
            assert_eq!(answer["replay"], "complete", "{answer}");
            assert_eq!(answer.get("replayReason"), None);
            let wanted = random.usize(1..12);
            until("events", || {
                let piece = events_after(&client, &request, self.thread);
                let last = piece.iter().map(id_of).max().unwrap_or_default().max(log.last());
                // Everyone leaves while an approval is open: nothing else happens then.
                let is_left = self.approvals.load(Ordering::Relaxed) > approvals;
                is_left || piece.len() >= wanted || self.end.get().is_some_and(|end| last >= *end)
            })
            .await;
            approvals = self.approvals.load(Ordering::Relaxed);
            log.extend(&events_after(&client, &request, self.thread));
            drop(client);
            self.disconnects.fetch_add(1, Ordering::Relaxed);
            if self.end.get().is_some_and(|end| log.last() >= *end) {
                return log;
            }
        }
    }

    /// Stays connected, starts turns and approves what they ask for, each time after somebody has left.
    async fn stay(&self, model: &ScriptedModel, client: &WsConnection, request: &RequestId, enough: u32) -> Log {
        let from = self.disconnects.load(Ordering::Relaxed);
        for turn in 0.. {
            if self.disconnects.load(Ordering::Relaxed) - from >= enough {
                break;
            }
            let call = format!("call_{turn}");
            let arguments = json!({ "command": "touch made", "login": false });
            let words: Vec<String> = (0..20).map(|word| format!("{turn}.{word} ")).collect();
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            model.reply(function_call("shell_command", arguments, &call)).reply(streamed(&words).drip());
            client.start_turn(self.thread, "go on").await;
            let (id, _) = client.server_request(APPROVAL).await;
            let before = self.disconnects.load(Ordering::Relaxed);
            self.approvals.fetch_add(1, Ordering::Relaxed);
            until("disconnect", || self.disconnects.load(Ordering::Relaxed) > before).await;
            client.respond(&id, json!({ "decision": "accept" })).await;
            client.turn_completed(self.thread).await;
        }
        // What was published so far is received before the answer.
        client.request("thread/read", json!({ "threadId": self.thread })).await.expect("it can be read");
        let mut log = Log { from: 0, events: Vec::new() };
        log.extend(&events_after(client, request, self.thread));
        self.end.set(log.last()).unwrap();
        log
    }
}

/// Lets clients come and go during turns, and compares their logs with that of one who stays.
async fn compare(server: &WsServer, model: &ScriptedModel, thread: &str, seed: u64, enough: u32) -> Log {
    let run = Run {
        server,
        thread,
        disconnects: AtomicU32::new(0),
        approvals: AtomicU32::new(0),
        end: std::sync::OnceLock::new(),
    };
    let client = connect(server).await;
    let request = client.send_request("thread/resume", json!({ "threadId": thread })).await;
    let answer = client.response(&request).await.expect("it can be resumed");
    let from = id_of(&answer);
    let wanderers = (0..WANDERERS).map(|number| {
        let log = Log { from, events: Vec::new() };
        run.wander(seed * 100 + number, log)
    });
    let (stayed, wandered) =
        tokio::join!(run.stay(model, &client, &request, enough), futures_util::future::join_all(wanderers));
    for log in wandered {
        assert_eq!(
            log.events.iter().map(id_of).collect::<Vec<_>>(),
            stayed.events.iter().map(id_of).collect::<Vec<_>>()
        );
        assert_eq!(log.events, stayed.events);
    }
    stayed
}

async fn setup(model: &ScriptedModel) -> Home {
    Home::new(model).with("features.shell_snapshot = false\napproval_policy = \"untrusted\"\n")
}

/// A stored thread.
async fn stored_thread(client: &Peer, model: &ScriptedModel, home: &Home) -> String {
    let started = client.request("thread/start", json!({ "cwd": home.work() })).await.expect("a thread");
    let thread = started["thread"]["id"].as_str().unwrap().to_owned();
    model.reply(message("stored"));
    client.run_turn(&thread, "hi").await;
    thread
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_that_come_and_go_have_the_log_of_one_that_stays() {
    let model = ScriptedModel::start().await;
    let home = setup(&model).await;
    let server = launch().websocket(&home).await;
    let thread = stored_thread(&*connect(&server).await, &model, &home).await;
    compare(&server, &model, &thread, 1, configured("LOOMD_DISCONNECTS", 24)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn logs_stay_equal_and_ids_rise_when_the_server_is_killed_in_between() {
    let model = ScriptedModel::start().await;
    let home = setup(&model).await;
    let mut server = launch().websocket(&home).await;
    let thread = stored_thread(&*connect(&server).await, &model, &home).await;
    let mut last = 0;
    for round in 0..configured("LOOMD_KILLS", 2) {
        let log = compare(&server, &model, &thread, u64::from(round), 6).await;
        assert!(log.events.iter().all(|event| id_of(event) > last), "an id was used twice");
        last = log.last();
        // In the middle of a turn.
        let gate = Gate::new();
        let client = connect(&server).await;
        client.request("thread/resume", json!({ "threadId": thread })).await.expect("it can be resumed");
        model.reply(streamed(&["half ", "done"]).wait(&gate));
        client.start_turn(&thread, "and on").await;
        client.notification("item/agentMessage/delta").await;
        server.signal(Signal::KILL);
        server.wait_exit().await;
        model.forget_replies();
        server = launch().websocket(&home).await;
        let client = connect(&server).await;
        let after = json!({ "threadId": thread, "afterEvent": last.to_string() });
        let answer = client.request("thread/resume", after).await.expect("it can be resumed");
        assert_eq!((&answer["replay"], &answer["replayReason"]), (&json!("reset"), &json!("notLoaded")));
        assert!(id_of(&answer) > last);
        // The turn goes on and ends.
        last = loop {
            let params = json!({ "threadId": thread, "includeTurns": true });
            let read = client.request("thread/read", params).await.expect("it can be read");
            let turn = read["thread"]["turns"].as_array().unwrap().last().unwrap().clone();
            if turn["status"] != "inProgress" {
                assert_eq!(turn["status"], "completed");
                break id_of(&read);
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
    }
}

#[tokio::test]
async fn only_clients_that_asked_for_event_ids_see_them() {
    let model = ScriptedModel::start().await;
    let home = setup(&model).await;
    let server = launch().websocket(&home).await;
    let with = connect(&server).await;
    let thread = stored_thread(&with, &model, &home).await;
    let without = server.connect().await;
    without.initialize().await;
    let resumed = without.request("thread/resume", json!({ "threadId": thread })).await.expect("it can be resumed");
    for new in ["eventId", "replay", "replayReason"] {
        assert_eq!(resumed.get(new), None);
    }
    let read = |client: &WsConnection| {
        let client = (**client).clone();
        let params = json!({ "threadId": thread, "includeTurns": true });
        async move { client.request("thread/read", params).await.expect("it can be read") }
    };
    assert_eq!(read(&without).await.get("eventId"), None);
    let before = id_of(&read(&with).await);
    model.reply(function_call("shell_command", json!({ "command": "touch made", "login": false }), "c1"));
    model.reply(streamed(&["a", "b"]));
    with.start_turn(&thread, "go").await;
    let (id, _) = with.server_request(APPROVAL).await;
    with.respond(&id, json!({ "decision": "accept" })).await;
    tokio::join!(with.turn_completed(&thread), without.turn_completed(&thread));
    let after = id_of(&read(&with).await);
    read(&without).await;
    let plain = |client: &WsConnection| -> Vec<Value> {
        let of_turn = client.messages().into_iter().filter(|message| message["params"]["threadId"] == thread);
        let mut of_turn: Vec<Value> =
            of_turn.skip_while(|message| message["params"]["status"]["type"] != "active").collect();
        let started = of_turn.iter().rposition(|message| message["method"] == "turn/started").unwrap();
        of_turn.drain(..started);
        of_turn
    };
    let (mut marked, plain) = (plain(&with), plain(&without));
    let ids: Vec<u128> = marked.iter().map(id_of).collect();
    assert!(ids.is_sorted_by(|one, next| one < next), "{ids:?}");
    assert!(ids.iter().all(|id| (before + 1..=after).contains(id)), "{before} {ids:?} {after}");
    for message in &mut marked {
        message.as_object_mut().unwrap().remove("eventId");
    }
    assert_eq!(marked, plain);
}

#[tokio::test]
async fn an_open_approval_is_sent_again_with_its_event_id_and_can_be_answered() {
    let model = ScriptedModel::start().await;
    let home = setup(&model).await;
    let server = launch().websocket(&home).await;
    let first = connect(&server).await;
    let thread = stored_thread(&first, &model, &home).await;
    model.reply(function_call("shell_command", json!({ "command": "touch made", "login": false }), "c1"));
    model.reply(message("done"));
    first.start_turn(&thread, "go").await;
    first.server_request(APPROVAL).await;
    let sent = |client: &WsConnection| {
        let is_approval = |message: &Value| message["method"] == APPROVAL;
        client.messages().into_iter().find(is_approval).expect("an approval")
    };
    let before = sent(&first);
    drop(first);
    let second = connect(&server).await;
    let params = json!({ "threadId": thread, "afterEvent": before["eventId"] });
    let answer = second.request("thread/resume", params).await.expect("it can be resumed");
    assert_eq!(answer["replay"], "complete");
    let (id, _) = second.server_request(APPROVAL).await;
    assert_eq!(sent(&second), before);
    second.respond(&id, json!({ "decision": "accept" })).await;
    second.turn_completed(&thread).await;
}

#[tokio::test]
async fn an_event_that_is_unknown_too_old_or_invalid_is_told() {
    let model = ScriptedModel::start().await;
    let home = setup(&model).await;
    let server = launch().websocket(&home).await;
    let client = connect(&server).await;
    let thread = stored_thread(&client, &model, &home).await;
    let last = id_of(&client.request("thread/read", json!({ "threadId": thread })).await.expect("a thread"));
    let resume = |after: String| client.request("thread/resume", json!({ "threadId": thread, "afterEvent": after }));
    for (after, reason) in [((last + 1).to_string(), "unknownEvent"), ("7".into(), "notLoaded")] {
        let answer = resume(after).await.expect("it can be resumed");
        assert_eq!((&answer["replay"], &answer["replayReason"]), (&json!("reset"), &json!(reason)));
    }
    let long = "word ".repeat(200 * 1024);
    model.reply(streamed(&[&long]));
    client.run_turn(&thread, "much").await;
    let answer = resume(last.to_string()).await.expect("it can be resumed");
    assert_eq!((&answer["replay"], &answer["replayReason"]), (&json!("reset"), &json!("tooOld")));
    let error = resume("the last one".into()).await.expect_err("no number");
    assert_eq!(error.code, -32600);
    assert!(error.message.contains("`afterEvent`"), "{error}");
}

#[tokio::test]
async fn event_ids_are_sent_on_stdio_and_on_a_unix_socket() {
    let model = ScriptedModel::start().await;
    let home = setup(&model).await;
    let server = launch().stdio(&home);
    server.initialize_with(event_ids()).await;
    stored_thread(&server, &model, &home).await;
    assert!(server.messages().iter().any(|message| message["method"] == "turn/completed" && id_of(message) > 0));
    drop(server);
    let server = launch().unix(&home).await;
    let client = connect(&server).await;
    stored_thread(&client, &model, &home).await;
    assert!(client.messages().iter().any(|message| message["method"] == "turn/completed" && id_of(message) > 0));
}
