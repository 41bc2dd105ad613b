//! Files, watches and configuration with several clients or processes.

use std::collections::BTreeSet;

use loomd_testkit::{Home, Peer};
use serde_json::{Value, json};

use crate::common::{initialized, launch, ping};

const EACH: usize = 20;

async fn write_values(peer: &Peer, prefix: &str) {
    let mut ids = Vec::new();
    for number in 0..EACH {
        let params =
            json!({ "keyPath": format!("extra.{prefix}{number}"), "value": number, "mergeStrategy": "replace" });
        ids.push(peer.send_request("config/value/write", params).await);
    }
    for id in ids {
        peer.response(&id).await.expect("a write succeeds");
    }
}

#[tokio::test]
async fn concurrent_config_writes_of_two_servers_lose_nothing() {
    let home = Home::empty();
    home.write("config.toml", "# mine\nmodel = 'm' # kept\n");
    let (one, other) = (initialized(&home).await, initialized(&home).await);
    tokio::join!(write_values(&one, "a"), write_values(&other, "b"));
    let text = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
    assert!(text.contains("model = 'm' # kept"), "{text}");
    let expected: BTreeSet<String> =
        ["a", "b"].iter().flat_map(|prefix| (0..EACH).map(move |number| format!("{prefix}{number}"))).collect();
    for server in [&one, &other] {
        let read = server.request("config/read", json!({ "includeLayers": true })).await.unwrap();
        let user = read["layers"].as_array().unwrap().iter().find(|layer| layer["name"]["type"] == "user").unwrap();
        let found: BTreeSet<String> = user["config"]["extra"].as_object().unwrap().keys().cloned().collect();
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn a_repaired_configuration_leaves_no_warning_for_the_next_client() {
    let home = Home::empty();
    home.write("config.toml", "model = [");
    let server = launch().websocket(&home).await;
    let first = server.connect().await;
    first.initialize().await;
    let warning = first.notification("configWarning").await;
    assert_eq!(warning["summary"], "Invalid configuration; using defaults.");
    home.write("config.toml", "model = 'm'\n");
    let second = server.connect().await;
    second.initialize().await;
    ping(&second).await;
    assert_eq!(second.notifications("configWarning"), Vec::<Value>::new());
}

#[tokio::test]
async fn changes_are_sent_only_to_the_owner_of_the_watch() {
    let home = Home::empty();
    let server = launch().websocket(&home).await;
    let (owner, other) = (server.connect().await, server.connect().await);
    owner.initialize().await;
    other.initialize().await;
    let path = home.work();
    let watch = owner.request("fs/watch", json!({ "path": path, "watchId": "mine" })).await.unwrap();
    assert_eq!(watch, json!({ "watchId": "mine", "path": path }));
    other.request("fs/unwatch", json!({ "watchId": "mine" })).await.unwrap();
    let file = path.join("file");
    other.request("fs/writeFile", json!({ "path": file, "dataBase64": "eA==" })).await.unwrap();
    let changed = owner.notification("fs/changed").await;
    assert_eq!(changed, json!({ "watchId": "mine", "changedPaths": [file] }));
    ping(&other).await;
    assert_eq!(other.notifications("fs/changed"), Vec::<Value>::new());
}

#[tokio::test]
async fn a_fifo_without_a_writer_does_not_block_fs_requests() {
    let home = Home::empty();
    let server = initialized(&home).await;
    let pipe = home.work().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let error = server.request("fs/readFile", json!({ "path": pipe })).await.unwrap_err();
    assert_eq!((error.code, &error.data.unwrap()["path"]), (-32600, &json!(pipe)));
}
