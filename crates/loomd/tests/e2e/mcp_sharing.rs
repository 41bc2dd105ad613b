//! One MCP server for many threads: one process, and one login.

use std::fs;
use std::time::Duration;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, Issuer, ScriptedModel, TIMEOUT};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::initialized;

/// A server with a tool that says which process answers. Every start is a line in `starts`.
const SERVER: &str = r#"
echo "$$" >> starts
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*) result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}' ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"who","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"process '$$'"}]}' ;;
    *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
"#;

const THREADS: usize = 100;

#[tokio::test]
async fn a_hundred_threads_share_one_process_that_ends_with_the_last() {
    let model = ScriptedModel::start().await;
    let home = Home::new(&model)
        .with("features.shell_snapshot = false\n[mcp_servers.srv]\ncommand = 'sh'\nargs = ['server.sh']");
    fs::write(home.work().join("server.sh"), SERVER).unwrap();
    let server = initialized(&home).await;
    let mut threads = Vec::new();
    for _ in 0..THREADS {
        let started = server.request("thread/start", json!({ "cwd": home.work() })).await.unwrap();
        threads.push(started["thread"]["id"].as_str().unwrap().to_owned());
    }
    for _ in 0..THREADS {
        let ready =
            server.notification_where("mcpServer/startupStatus/updated", |params| params["status"] != "starting");
        assert_eq!(ready.await["status"], "ready");
    }
    for thread in [&threads[0], &threads[THREADS - 1]] {
        model.reply(function_call("mcp__srv__who", json!({}), "c1")).reply(message("done"));
        server.run_turn(thread, "who is there").await;
    }
    let starts = fs::read_to_string(home.work().join("starts")).unwrap();
    assert_eq!(starts.lines().count(), 1, "{starts}");
    let pid = starts.trim();
    for call in [1, 3] {
        let body = model.call(call).await.body.to_string();
        assert!(body.contains(&format!("process {pid}")), "{body}");
    }
    for thread in &threads {
        server.request("thread/unsubscribe", json!({ "threadId": thread })).await.unwrap();
    }
    let gone = async {
        while fs::exists(format!("/proc/{pid}")).unwrap() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, gone).await.expect("the process ends with the last thread");
}

#[tokio::test]
async fn a_login_reaches_threads_that_are_loaded() {
    let (model, issuer) = (ScriptedModel::start().await, Issuer::start().await);
    issuer.set("POST /mcp", 401, json!({}));
    let home = Home::new(&model)
        .with(&format!("mcp_oauth_credentials_store = 'file'\n[mcp_servers.web]\nurl = '{}/mcp'", issuer.base));
    let server = initialized(&home).await;
    server.start_thread(Default::default()).await;
    let ended = |params: &Value| params["status"] != "starting";
    let failed = server.notification_where("mcpServer/startupStatus/updated", ended).await;
    assert!(failed["error"].as_str().unwrap().contains("not logged in"), "{failed}");
    let login = server.request("mcpServer/oauth/login", json!({ "name": "web" })).await.unwrap();
    issuer.requests();
    agree(login["authorizationUrl"].as_str().unwrap()).await;
    let completed = server.notification("mcpServer/oauthLogin/completed").await;
    assert_eq!(completed, json!({ "name": "web", "success": true }));
    server.notification_where("mcpServer/startupStatus/updated", ended).await;
    let requests = issuer.requests();
    let authorized = requests.iter().filter(|request| request.line == "POST /mcp");
    assert!(authorized.clone().count() > 0, "{requests:?}");
    assert!(authorized.clone().all(|request| request.head.contains("authorization: bearer token-1")), "{requests:?}");
}

/// Goes to the redirect URI of an authorization URL, as a browser does after the user agreed.
pub async fn agree(authorization: &str) {
    let field = |name: &str| {
        let found = authorization.split(['?', '&']).find_map(|field| field.strip_prefix(name)?.strip_prefix('='));
        found.unwrap().replace("%3A", ":").replace("%2F", "/")
    };
    let redirect = field("redirect_uri");
    let (authority, path) = redirect.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = TcpStream::connect(authority).await.unwrap();
    let request = format!("GET /{path}?code=1&state={} HTTP/1.1\r\nHost: {authority}\r\n\r\n", field("state"));
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).await.unwrap();
    assert!(page.starts_with("HTTP/1.1 200 "), "{page}");
}
