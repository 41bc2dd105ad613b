//! Stored threads, as clients use them.

use loomd_testkit::{Home, Server};
use serde_json::{Value, json};

use crate::common::initialized;

#[tokio::test]
async fn requests_about_one_thread_take_effect_in_order() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let id = stored(&server).await;
    for round in 0..20 {
        let name = format!("name {round}");
        let params = json!({ "threadId": id });
        let named = server.send_request("thread/name/set", json!({ "threadId": id, "name": name })).await;
        let read = server.send_request("thread/read", params.clone()).await;
        let archived = server.send_request("thread/archive", params.clone()).await;
        let refused = server.send_request("thread/resume", params.clone()).await;
        let fetched = server.send_request("thread/unarchive", params.clone()).await;
        let resumed = server.send_request("thread/resume", params.clone()).await;
        let left = server.send_request("thread/unsubscribe", params).await;

        server.response(&named).await.expect("it can be named");
        assert_eq!(server.response(&read).await.expect("it can be read")["thread"]["name"], json!(name));
        server.response(&archived).await.expect("it can be archived");
        let error = server.response(&refused).await.expect_err("an archived thread is not resumed");
        assert_eq!(error.message, format!("no rollout found for thread id {id}"));
        server.response(&fetched).await.expect("it comes back");
        server.response(&resumed).await.expect("it can be resumed");
        assert_eq!(server.response(&left).await.expect("it was loaded")["status"], json!("unsubscribed"));
    }
}

#[tokio::test]
async fn a_deleted_thread_is_gone_for_all_clients() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let id = stored(&server).await;
    let path =
        server.request("thread/read", json!({ "threadId": id })).await.expect("a thread")["thread"]["path"].take();
    server.request("thread/resume", json!({ "threadId": id })).await.expect("loaded");
    server.request("thread/delete", json!({ "threadId": id })).await.expect("deleted");
    assert_eq!(server.notification("thread/deleted").await, json!({ "threadId": id }));
    let error = server.request("thread/read", json!({ "threadId": id })).await.expect_err("gone");
    assert_eq!(error.message, format!("thread not loaded: {id}"));
    assert_eq!(server.request("thread/loaded/list", json!({})).await.expect("a list")["data"], json!([]));
    assert!(!std::path::Path::new(path.as_str().expect("a path")).exists());
}

/// The id of a stored thread that is not loaded.
async fn stored(server: &Server) -> String {
    let history =
        json!([{ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "hello" }] }]);
    let made = server.request("thread/resume", json!({ "threadId": "", "history": history })).await;
    let id: Value = made.expect("a thread with a past")["thread"]["id"].take();
    server.request("thread/unsubscribe", json!({ "threadId": id })).await.expect("it can be left");
    server.notification("thread/closed").await;
    id.as_str().expect("an id").to_owned()
}
