//! Requests and responses: order, retries, timeouts, malformed messages.

use std::time::Duration;

use bytes::Bytes;
use loomd_client::protocol::{ClientRequest, CommandExecParams, ModelListParams, ThreadListParams};
use loomd_client::{Backoff, Client, Endpoint, Error, Options, Transport};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, duplex};

use crate::script::*;

fn models() -> Value {
    json!({ "data": [], "nextCursor": null })
}

#[tokio::test]
async fn notifications_are_sent_with_and_without_params() {
    let (client, mut server) = connected(Options::default()).await;
    client.notify("custom/hello", Some(json!({ "a": 1 }))).await.unwrap();
    client.notify("custom/bye", None).await.unwrap();
    assert_eq!(server.message().await, json!({ "method": "custom/hello", "params": { "a": 1 } }));
    assert_eq!(server.message().await, json!({ "method": "custom/bye" }));
    drop(server);
    client.close().await;
    assert!(matches!(client.notify("custom/late", None).await, Err(Error::Closed)));
}

#[tokio::test]
async fn responses_in_any_order_complete_their_requests() {
    let (client, mut server) = connected(Options::default()).await;
    let playing = async {
        let (first, _) = server.request("thread/read").await;
        let (second, _) = server.request("thread/read").await;
        server.notify("skills/changed", json!({})).await;
        server.reply(second, json!({ "thread": thread("b") })).await;
        server.reply(json!("0"), json!({ "thread": thread("of nobody") })).await;
        server.reply(first, json!({ "thread": thread("a") })).await;
    };
    let (a, b, ()) = tokio::join!(client.read_thread("a", false), client.read_thread("b", false), playing);
    assert_eq!((a.unwrap().id, b.unwrap().id), ("a".into(), "b".into()));
}

#[tokio::test]
async fn malformed_messages_are_skipped() {
    let (client, mut server) = connected(Options::default()).await;
    let playing = async {
        let (id, _) = server.request("model/list").await;
        for noise in ["Welcome to this machine!", "{\"id\":", "[]", "null", "{}", "\u{feff}{}"] {
            server.send_bytes(noise).await;
        }
        server.send_bytes(Bytes::from_static(&[0xff, 0xfe])).await;
        server.reply(id, models()).await;
    };
    let (listed, ()) = tokio::join!(client.list_models(ModelListParams::default()), playing);
    listed.unwrap();
}

#[tokio::test]
async fn lines_arrive_whole_in_any_chunking() {
    let (ours, theirs) = duplex(1 << 16);
    let pipes = std::sync::Mutex::new(Some(ours));
    let endpoint = Endpoint::custom(move || {
        let (reader, writer) = tokio::io::split(pipes.lock().unwrap().take().unwrap());
        async move { Ok(Transport::over_lines(reader, writer)) }
    });
    let playing = async {
        let (reader, mut writer) = tokio::io::split(theirs);
        let mut lines = BufReader::new(reader).lines();
        for (id, result) in [(0, initialized()), (1, models())] {
            let request: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
            assert_eq!(request["id"], id);
            let line = format!("noise\r\n\n{}\r\n", json!({ "id": id, "result": result }));
            for byte in line.bytes() {
                writer.write_all(&[byte]).await.unwrap();
                tokio::task::yield_now().await;
            }
            if id == 0 {
                lines.next_line().await.unwrap();
            }
        }
        lines.next_line().await.unwrap()
    };
    let calling = async {
        let client = Client::connect(endpoint, Options::default()).await?;
        client.list_models(ModelListParams::default()).await
    };
    let (listed, last) = tokio::join!(calling, playing);
    listed.unwrap();
    assert_eq!(last, None, "the pipe is closed when the client is gone");
}

#[tokio::test(start_paused = true)]
async fn overloaded_requests_are_retried_up_to_the_limit() {
    let retry = Backoff { attempts: 2, first: Duration::from_millis(100), longest: Duration::from_secs(1) };
    let (client, mut server) = connected(Options::default().retry(retry)).await;
    let overloaded = "Server overloaded; retry later.";
    let playing = async {
        for _ in 0..2 {
            let (id, _) = server.request("model/list").await;
            server.refuse(id, -32001, overloaded).await;
        }
        server.answer("model/list", models()).await;
        for _ in 0..3 {
            let (id, _) = server.request("thread/list").await;
            let data = json!({ "info": "server_overloaded" });
            server.send(json!({ "id": id, "error": { "code": -32050, "message": "busy", "data": data } })).await;
        }
        let (id, _) = server.request("thread/list").await;
        server.refuse(id, -32050, "something else").await;
    };
    let calling = async {
        client.list_models(ModelListParams::default()).await.unwrap();
        let busy = client.list_threads(ThreadListParams::default()).await.unwrap_err();
        assert_eq!(busy.to_string(), "thread/list: busy (-32050)");
        let other = client.list_threads(ThreadListParams::default()).await.unwrap_err();
        assert_eq!(other.to_string(), "thread/list: something else (-32050)");
    };
    tokio::join!(calling, playing);
}

#[tokio::test(start_paused = true)]
async fn a_request_without_response_times_out_and_a_late_response_is_ignored() {
    let (client, mut server) = connected(Options::default()).await;
    let playing = async {
        let (late, _) = server.request("model/list").await;
        let (id, _) = server.request("thread/read").await;
        server.reply(late, models()).await;
        server.reply(id, json!({ "thread": thread("t") })).await;
    };
    let calling = async {
        let error = client.list_models(ModelListParams::default()).await.unwrap_err();
        assert_eq!(error.to_string(), "no answer to model/list within 30s");
        client.read_thread("t", false).await
    };
    let (read, ()) = tokio::join!(calling, playing);
    assert_eq!(read.unwrap().id, "t");
}

#[tokio::test(start_paused = true)]
async fn request_timeouts_can_be_set_and_command_exec_has_none() {
    let (client, mut server) = connected(Options::default()).await;
    let hour = Duration::from_secs(3600);
    let quick = client.with_timeout(Duration::from_secs(1));
    let error = quick.list_models(ModelListParams::default()).await.unwrap_err();
    assert!(matches!(error, Error::Timeout { after, .. } if after == Duration::from_secs(1)), "{error}");
    let playing = async {
        server.request("model/list").await;
        let (id, _) = server.request("command/exec").await;
        tokio::time::sleep(hour - Duration::from_secs(60)).await;
        server.reply(id, json!({ "exitCode": 3, "stdout": "", "stderr": "" })).await;
        let (id, _) = server.request("model/list").await;
        tokio::time::sleep(hour - Duration::from_secs(60)).await;
        server.reply(id, models()).await;
    };
    let calling = async {
        let done = client.exec_command(CommandExecParams::default()).await.unwrap();
        assert_eq!(done.exit_code, 3);
        client.with_timeout(None).list_models(ModelListParams::default()).await.unwrap();
    };
    tokio::join!(calling, playing);
}

#[tokio::test(start_paused = true)]
async fn the_handshake_times_out() {
    let (endpoint, mut accepted) = scripted();
    let Err(error) = Client::connect(endpoint, Options::default()).await else { panic!("no connection expected") };
    assert_eq!(error.to_string(), "no answer to initialize within 30s");
    let mut server = accepted.recv().await.unwrap();
    server.request("initialize").await;
    server.left().await;
}

#[tokio::test]
async fn a_refused_handshake_is_an_rpc_error() {
    let (endpoint, mut accepted) = scripted();
    let playing = async {
        let mut server = accepted.recv().await.unwrap();
        let (id, _) = server.request("initialize").await;
        server.refuse(id, -32600, "Invalid clientInfo.name").await;
    };
    let (connected, ()) = tokio::join!(Client::connect(endpoint, Options::default()), playing);
    assert_eq!(connected.err().unwrap().to_string(), "initialize: Invalid clientInfo.name (-32600)");
}

#[tokio::test]
async fn an_undecodable_result_is_a_decode_error() {
    let (client, mut server) = connected(Options::default()).await;
    let (listed, _) =
        tokio::join!(client.list_models(ModelListParams::default()), server.answer("model/list", json!({ "data": 5 })));
    let error = listed.unwrap_err();
    assert!(error.to_string().starts_with("cannot decode the answer to model/list: invalid type"), "{error}");
}

macro_rules! methods {
    ($($variant:ident $method:literal ($params:ty) -> $result:ty;)*) => {
        [$($method),*]
    };
}

#[test]
fn the_client_has_a_method_for_every_request() {
    let made = loomd_client::protocol::for_each_client_request!(methods);
    assert_eq!(made, ClientRequest::METHODS);
    // The names are checked by the compiler.
    let _ = (Client::thread_name_set, Client::config_mcp_server_reload, Client::fuzzy_file_search_session_stop);
}
