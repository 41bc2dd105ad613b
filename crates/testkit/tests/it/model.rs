use std::io::ErrorKind;

use loomd_testkit::model::*;
use loomd_testkit::{Gate, ScriptedModel, TIMEOUT};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A client on the level of bytes.
struct Client(TcpStream);

impl Client {
    async fn of(model: &ScriptedModel) -> Self {
        Self(TcpStream::connect(model.address()).await.expect("the model listens"))
    }

    async fn send(&mut self, bytes: &str) {
        self.0.write_all(bytes.as_bytes()).await.expect("the model reads");
    }

    /// Sends a request with `connection: close`.
    async fn ask(&mut self) {
        self.send("POST /v1/responses HTTP/1.1\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}").await;
    }

    /// Reads until the text ends with `end`.
    async fn until(&mut self, end: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(end) {
            let byte = tokio::time::timeout(TIMEOUT, self.0.read_u8()).await.expect("the model stalls");
            text.push(byte.unwrap_or_else(|error| panic!("expected {end:?} after {text:?}: {error}")).into());
        }
        text
    }

    /// Reads until the connection ends.
    async fn rest(&mut self) -> String {
        let mut bytes = Vec::new();
        tokio::time::timeout(TIMEOUT, self.0.read_to_end(&mut bytes))
            .await
            .expect("the model stalls")
            .expect("no reset");
        String::from_utf8(bytes).expect("text")
    }

    fn has_nothing_yet(&self) -> bool {
        self.0.try_read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    }
}

/// The whole response to one call with this reply.
async fn played(reply: Reply) -> String {
    let model = ScriptedModel::start().await;
    model.reply(reply);
    let mut client = Client::of(&model).await;
    client.ask().await;
    client.rest().await
}

/// The chunks of a chunked response, and whether it ended properly.
fn chunks(answer: &str) -> (Vec<&str>, bool) {
    let (head, mut rest) = answer.split_once("\r\n\r\n").expect("an answer has a head");
    assert!(head.contains("transfer-encoding: chunked"), "{head}");
    let mut chunks = Vec::new();
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).expect("a chunk has a size");
        if size == 0 {
            return (chunks, after == "\r\n");
        }
        chunks.push(&after[..size]);
        rest = after[size..].strip_prefix("\r\n").expect("a chunk has an end");
    }
    (chunks, false)
}

fn events(answer: &str) -> Vec<Value> {
    let text = chunks(answer).0.concat();
    let data = text.split("\n\n").filter_map(|event| event.split_once("\ndata: "));
    data.map(|(_, data)| serde_json::from_str(data).expect("an event is JSON")).collect()
}

fn kinds(answer: &str) -> Vec<String> {
    events(answer)
        .iter()
        .map(|event| event["item"]["type"].as_str().or(event["type"].as_str()).unwrap_or_default().to_owned())
        .collect()
}

#[tokio::test]
async fn a_message_is_a_complete_stream() {
    let answer = played(message("hi")).await;
    assert!(answer.starts_with("HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\n"), "{answer}");
    assert!(chunks(&answer).1, "{answer}");
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": { "cached_tokens": 0 },
        "output_tokens": 5, "output_tokens_details": { "reasoning_tokens": 0 }, "total_tokens": 15,
    });
    let content = json!([{ "type": "output_text", "text": "hi" }]);
    let item = json!({ "type": "message", "role": "assistant", "id": "msg_1", "content": content });
    assert_eq!(
        events(&answer),
        [
            json!({ "type": "response.created", "response": { "id": "resp_0" } }),
            json!({ "type": "response.output_item.done", "item": item }),
            json!({ "type": "response.completed", "response": { "id": "resp_0", "usage": usage } }),
        ]
    );
}

#[tokio::test]
async fn several_items_can_be_in_one_reply() {
    let reply = reasoning(&["why"], &["raw"])
        .then(streamed(&["Hel", "lo"]))
        .then(function_call("f", json!({ "a": 1 }), "c1"))
        .then(custom_call("apply_patch", "*** Begin Patch", "c2"))
        .then(shell("ls"))
        .then(completed(Usage { input: 100, cached: 40, output: 20, reasoning: 7 }))
        .header("x-codex-turn-state", "s");
    let answer = played(reply).await;
    assert_eq!(
        kinds(&answer),
        [
            "response.created",
            "reasoning",
            "response.reasoning_summary_part.added",
            "response.reasoning_summary_text.delta",
            "response.reasoning_text.delta",
            "reasoning",
            "message",
            "response.output_text.delta",
            "response.output_text.delta",
            "message",
            "function_call",
            "custom_tool_call",
            "function_call",
            "response.completed",
        ]
    );
    let events = events(&answer);
    assert_eq!(events[9]["item"]["content"][0]["text"], "Hello");
    assert_eq!(events[6]["item"]["id"], events[9]["item"]["id"]);
    assert_eq!(events[10]["item"]["arguments"], r#"{"a":1}"#);
    assert_eq!(events[12]["item"]["arguments"], r#"{"command":"ls","login":false}"#);
    assert_eq!(events[13]["response"]["usage"]["total_tokens"], 120);
    assert!(answer.contains("\r\nx-codex-turn-state: s\r\n"), "{answer}");
}

#[tokio::test]
async fn failed_and_incomplete_responses_end_the_stream() {
    let failed = played(failed("slow_down", "later")).await;
    assert_eq!(kinds(&failed), ["response.created", "response.failed"]);
    let incomplete = played(message("part").then(incomplete("content_filter"))).await;
    assert_eq!(kinds(&incomplete), ["response.created", "message", "response.incomplete"]);
}

#[tokio::test]
async fn requests_are_recorded_and_connections_reused() {
    let model = ScriptedModel::start().await;
    model.reply(message("one")).reply(server_error());
    let mut client = Client::of(&model).await;
    let body = json!({ "model": "m", "input": [
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "question" }] },
        { "type": "function_call_output", "call_id": "c1", "output": "done" },
    ]})
    .to_string();
    let head = format!("POST /v1/responses?v=1 HTTP/1.1\r\nSession_ID: t1\r\ncontent-length: {}\r\n\r\n", body.len());
    client.send(&(head + &body)).await;
    assert!(client.until("0\r\n\r\n").await.contains("one"));
    client.send("POST /v1/responses HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n").await;
    client.send("3\r\n{\"a\r\n5;x=y\r\n\":12}\r\n0\r\n\r\n").await;
    assert!(client.until("}}").await.starts_with("HTTP/1.1 500 "));
    client.ask().await;
    assert!(client.rest().await.contains(UNSCRIPTED));

    let calls = model.calls();
    assert_eq!(calls.len(), 3);
    assert_eq!((calls[0].method.as_str(), calls[0].path.as_str()), ("POST", "/v1/responses?v=1"));
    assert_eq!(calls[0].header("session_id"), Some("t1"));
    assert_eq!(calls[0].user_texts(), ["question"]);
    assert_eq!(calls[0].tool_output("c1"), Some(&json!("done")));
    assert_eq!(calls[0].tool_output("c2"), None);
    assert_eq!(calls[1].body, json!({ "a": 12 }));
    assert_eq!(model.unused(), 0);
}

#[tokio::test]
async fn other_paths_are_not_found_and_use_no_reply() {
    let model = ScriptedModel::start().await;
    model.reply(message("kept"));
    let mut client = Client::of(&model).await;
    client.send("GET /v1/models HTTP/1.1\r\nconnection: close\r\n\r\n").await;
    assert!(client.rest().await.starts_with("HTTP/1.1 404 "));
    assert_eq!((model.unused(), model.calls().len(), model.requests().len()), (1, 0, 1));
}

#[tokio::test]
async fn compactions_get_a_whole_body() {
    let model = ScriptedModel::start().await;
    model.reply(compacted(&[json!({ "type": "compaction", "encrypted_content": "x" })]));
    let mut client = Client::of(&model).await;
    let compact = "POST /v1/responses/compact HTTP/1.1\r\ncontent-length: 2\r\n\r\n{}";
    client.send(compact).await;
    let scripted = client.until("]}").await;
    assert!(scripted.ends_with(r#"{"output":[{"type":"compaction","encrypted_content":"x"}]}"#), "{scripted}");
    client.send(compact).await;
    assert!(client.until("]}").await.contains(UNSCRIPTED));
    assert_eq!(model.calls().len(), 2);
}

#[tokio::test]
async fn statuses_have_their_body_and_headers() {
    let limited = played(rate_limited(Some(7))).await;
    assert!(limited.starts_with("HTTP/1.1 429 ") && limited.contains("\r\nretry-after: 7\r\n"), "{limited}");
    let limited = played(rate_limited(None)).await;
    assert!(limited.starts_with("HTTP/1.1 429 ") && !limited.contains("retry-after"), "{limited}");
    assert!(played(unauthorized()).await.starts_with("HTTP/1.1 401 "));
    assert_eq!(
        played(status(502, json!("bad gateway"))).await,
        "HTTP/1.1 502 Scripted\r\ncontent-type: text/plain\r\ncontent-length: 11\r\n\r\nbad gateway"
    );
    assert_eq!(
        played(error(200, "oops", "no")).await,
        "HTTP/1.1 200 Scripted\r\ncontent-type: application/json\r\ncontent-length: 40\r\n\r\n\
         {\"error\":{\"code\":\"oops\",\"message\":\"no\"}}"
    );
}

#[tokio::test]
async fn the_connection_can_be_closed_before_the_headers() {
    assert_eq!(played(hang_up()).await, "");
    assert_eq!(played(garbage("\u{1}nonsense\r\n")).await, "\u{1}nonsense\r\n");
}

#[tokio::test]
async fn the_connection_can_be_closed_within_the_stream() {
    let answer = played(message("got this far").close()).await;
    assert_eq!(kinds(&answer), ["response.created", "message"]);
    assert!(!chunks(&answer).1, "the stream must not end properly: {answer}");
}

#[tokio::test]
async fn a_stream_can_end_without_its_last_event() {
    let answer = played(message("got this far").unfinished()).await;
    assert_eq!(kinds(&answer), ["response.created", "message"]);
    assert!(chunks(&answer).1, "{answer}");
}

#[tokio::test]
async fn partial_events_and_raw_bytes_can_be_in_the_stream() {
    let event = json!({ "type": "response.output_text.delta", "delta": "x" });
    let answer = played(Reply::new().bytes(": odd\n\n").half(event).close()).await;
    let (chunks, proper) = chunks(&answer);
    assert_eq!((chunks.len(), chunks[0], proper), (3, ": odd\n\n", false));
    assert_eq!(chunks[2], "event: response.output_text.delta\ndata: {\"typ");
}

#[tokio::test]
async fn drip_changes_the_chunks_and_not_the_text() {
    let reply = message("slow");
    let (whole, dripped) = (played(reply.clone()).await, played(reply.drip()).await);
    assert_eq!(events(&whole), events(&dripped));
    assert!(chunks(&dripped).0.iter().all(|chunk| chunk.len() == 1), "{dripped}");
}

#[tokio::test]
async fn a_gate_delays_the_whole_response() {
    let model = ScriptedModel::start().await;
    let gate = Gate::new();
    model.reply(server_error().after(&gate));
    let mut client = Client::of(&model).await;
    client.ask().await;
    assert_eq!(model.call(0).await.body, json!({}));
    assert!(client.has_nothing_yet());
    gate.open();
    assert!(client.rest().await.starts_with("HTTP/1.1 500 "));
}

#[tokio::test]
async fn a_gate_delays_the_rest_of_a_stream() {
    let model = ScriptedModel::start().await;
    let (first, second) = (Gate::new(), Gate::new());
    model.reply(Reply::new().wait(&first).then(message("one")).wait(&second).then(message("two")));
    let mut client = Client::of(&model).await;
    client.ask().await;
    client.until("\r\n\r\n").await;
    assert!(client.has_nothing_yet());
    first.open();
    assert!(client.until("}]}}\n\n\r\n").await.contains("one"));
    assert!(client.has_nothing_yet());
    second.open();
    let rest = client.rest().await;
    assert!(rest.contains("two") && rest.contains("response.completed"), "{rest}");
}

#[tokio::test]
async fn a_disconnect_is_noticed_while_the_reply_waits() {
    let model = ScriptedModel::start().await;
    model.reply(Reply::new().wait(&Gate::new()));
    let mut client = Client::of(&model).await;
    client.ask().await;
    client.until("\r\n\r\n").await;
    drop(client);
    model.abandoned(0).await;
}

#[tokio::test]
async fn invalid_bytes_of_one_client_do_not_disturb_another() {
    let model = ScriptedModel::start().await;
    for nonsense in [
        "\r\n\r\n\r\n",
        "POST /v1/responses HTTP/1.1\r\nno header\r\n\r\n",
        "POST / HTTP/1.1\r\ncontent-length: x\r\n\r\n",
    ] {
        let mut client = Client::of(&model).await;
        client.send(nonsense).await;
        client.0.shutdown().await.expect("the model listens");
        // The model may respond to the first one, or reset the connection.
        let _ = client.0.read_to_end(&mut Vec::new()).await;
    }
    let mut client = Client::of(&model).await;
    client.ask().await;
    assert!(client.rest().await.contains(UNSCRIPTED));
}

#[tokio::test]
async fn dropping_the_model_closes_its_connections() {
    let model = ScriptedModel::start().await;
    model.reply(Reply::new().wait(&Gate::new()));
    let mut client = Client::of(&model).await;
    client.ask().await;
    client.until("\r\n\r\n").await;
    drop(model);
    assert_eq!(client.rest().await, "");
}
