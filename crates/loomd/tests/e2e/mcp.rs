//! MCP servers as a client sees them.

use std::fs;
use std::time::Duration;

use loomd_config::{LoadRequest, Overrides};
use loomd_protocol::AbsolutePathBuf;
use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server, Signal};
use serde_json::{Value, json};

use crate::common::{initialized, without_times};

const DOCS: &str = include_str!("../../../../docs/mcp.md");

/// Answers the handshake; `$TOOLS` is the list of tools, `$CALL` is run for a call with `$id`.
const SCRIPT: &str = r#"
echo "pid $$" >> log
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case "$line" in
    *'"method":"initialize"'*)
      printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":%s}}\n' "$id" "$TOOLS" ;;
    *'"method":"tools/call"'*) eval "$CALL" ;;
    *'"method":"notifications/cancelled"'*) echo "cancelled $line" >> log ;;
  esac
done
"#;

const ANSWER: &str =
    r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"done"}]}}\n' "$id""#;

struct Fixture {
    home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
}

impl Fixture {
    /// A thread with a server of these tools.
    async fn new(tools: Value, call: &str) -> Self {
        let model = ScriptedModel::start().await;
        let env = json!({ "TOOLS": tools.to_string(), "CALL": call });
        let home = Home::new(&model).with("features.shell_snapshot = false");
        fs::write(home.work().join("server.sh"), SCRIPT).unwrap();
        let server = initialized(&home).await;
        let config = json!({ "mcp_servers.srv": { "command": "sh", "args": ["server.sh"], "env": env } });
        let params = json!({ "cwd": home.work(), "config": config, "approvalPolicy": "on-request" });
        let started = server.request("thread/start", params).await.expect("a thread can be started");
        let thread = started["thread"]["id"].as_str().unwrap().to_owned();
        Self { home, model, server, thread }
    }

    fn log(&self) -> String {
        fs::read_to_string(self.home.work().join("log")).unwrap_or_default()
    }

    async fn logged(&self, wanted: &str) {
        let wait = async {
            while !self.log().contains(wanted) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(loomd_testkit::TIMEOUT, wait).await.expect("the server logs it");
    }

    /// The names of the tools that the model was offered last.
    fn offered(&self) -> Vec<String> {
        let body = self.model.calls().pop().unwrap().body;
        let tools = body["tools"].as_array().unwrap().iter();
        let names = tools.filter_map(|tool| tool["name"].as_str()).filter(|name| name.starts_with("mcp__"));
        names.map(str::to_owned).collect()
    }
}

fn read_only(name: &str) -> Value {
    json!({ "name": name, "annotations": { "readOnlyHint": true } })
}

/// The code blocks of a language in the documentation.
fn examples(language: &str) -> Vec<String> {
    let blocks = DOCS.split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.strip_prefix(&format!("{language}\n"))).map(str::to_owned).collect()
}

#[tokio::test]
async fn the_documented_server_works_with_the_documented_configuration() {
    let (model, configs) = (ScriptedModel::start().await, examples("toml"));
    for config in &configs {
        let (home, flags) = (Home::empty().with(config), Overrides::default());
        let path = AbsolutePathBuf::new(home.path()).unwrap();
        let loaded = loomd_config::load(&LoadRequest::new(&path, &flags));
        assert!(loaded.is_ok_and(|loaded| !loaded.config.mcp_servers.is_empty()), "{config}");
    }
    let home = Home::new(&model).with(&configs[0]);
    fs::write(home.work().join("greet-mcp.sh"), &examples("sh")[0]).unwrap();
    let server = initialized(&home).await;
    let started = server.request("thread/start", json!({ "cwd": home.work() })).await.expect("a thread can be started");
    model.reply(function_call("mcp__greeter__greet", json!({}), "c1")).reply(message("done"));
    server.start_turn(started["thread"]["id"].as_str().unwrap(), "go").await;
    server.notification("turn/completed").await;
    let items = server.notifications("item/completed");
    let item = items.iter().map(|params| &params["item"]).find(|item| item["type"] == "mcpToolCall").unwrap();
    assert_eq!(item["result"]["content"][0]["text"], "Hello, world!", "{item}");
    let overrides: Value = serde_json::from_str(&examples("json")[0]).unwrap();
    let params = json!({ "cwd": home.work(), "config": overrides });
    server.request("thread/start", params).await.expect("the documented overrides are accepted");
}

#[tokio::test]
async fn an_interrupted_call_is_completed_before_its_turn_and_cancelled_at_the_server() {
    let fixture = Fixture::new(json!([read_only("hang")]), "echo called >> log").await;
    fixture.model.reply(function_call("mcp__srv__hang", json!({ "x": 1 }), "c1"));
    let turn = fixture.server.start_turn(&fixture.thread, "go").await;
    fixture.logged("called").await;
    let params = json!({ "threadId": fixture.thread, "turnId": turn.id });
    fixture.server.request("turn/interrupt", params).await.expect("the turn can be interrupted");
    fixture.server.notification("turn/completed").await;
    let completed = fixture.server.notifications("item/completed");
    let item = completed.iter().map(|params| &params["item"]).find(|item| item["id"] == "c1").expect("it is completed");
    assert_eq!((&item["status"], &item["error"]["message"]), (&json!("failed"), &json!("aborted")));
    fixture.logged("cancelled").await;
    let params = json!({ "threadId": fixture.thread, "includeTurns": true });
    let read = fixture.server.request("thread/read", params).await.unwrap();
    let items = read["thread"]["turns"][0]["items"].as_array().unwrap();
    let item = without_times(item.clone());
    assert!(items.contains(&item), "{items:?}");
}

#[tokio::test]
async fn odd_tools_are_offered_under_names_that_models_accept_or_not_at_all() {
    let mut tools: Vec<Value> = (0..1000).map(|n| read_only(&format!("t.{n:03}"))).collect();
    tools.push(read_only("t_001"));
    tools.push(json!({ "name": "no.schema", "inputSchema": "text" }));
    tools.push(json!({ "name": "list", "inputSchema": { "type": "array" } }));
    let fixture = Fixture::new(Value::Array(tools), ANSWER).await;
    fixture.model.reply(function_call("mcp__srv__t_999", json!({}), "c1")).reply(message("done"));
    fixture.server.start_turn(&fixture.thread, "go").await;
    fixture.server.notification("turn/completed").await;
    let offered = fixture.offered();
    assert_eq!(offered.len(), 1001);
    assert!(offered.iter().all(|name| name.len() <= 64 && !name.contains('.')));
    let items = fixture.server.notifications("item/completed");
    let item = items.iter().map(|params| &params["item"]).find(|item| item["id"] == "c1").unwrap();
    assert_eq!((&item["tool"], &item["status"]), (&json!("t.999"), &json!("completed")));
}

#[tokio::test]
async fn a_server_ends_with_us_however_we_die() {
    let mut fixture = Fixture::new(json!([]), ":").await;
    fixture.logged("pid").await;
    let pid: u32 = fixture.log().trim().rsplit(' ').next().unwrap().parse().unwrap();
    fixture.server.signal(Signal::KILL);
    fixture.server.wait_exit().await;
    let gone = async {
        while fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(loomd_testkit::TIMEOUT, gone).await.expect("the server is killed");
}

#[tokio::test]
async fn a_server_that_fails_leaves_the_thread_and_the_other_servers_alone() {
    let fixture = Fixture::new(json!([read_only("ok")]), ANSWER).await;
    let broken = json!({ "command": "sh", "args": ["-c", "sleep 60"], "startup_timeout_sec": 0.2 });
    let config = json!({ "mcp_servers.broken": broken, "mcp_servers.gone": { "command": "/no/such/program" } });
    let params = json!({ "cwd": fixture.home.work(), "config": config });
    let started = fixture.server.request("thread/start", params).await.expect("a thread can be started");
    fixture.model.reply(message("done"));
    fixture.server.start_turn(started["thread"]["id"].as_str().unwrap(), "go").await;
    fixture.server.notification("turn/completed").await;
    let failed = |name: &str| {
        let told = fixture.server.notifications("mcpServer/startupStatus/updated");
        told.into_iter().find(|params| params["name"] == name && params["status"] == "failed").expect("it failed")
    };
    assert!(failed("broken")["error"].as_str().unwrap().contains("timed out after 0 seconds"));
    assert!(failed("gone")["error"].as_str().unwrap().contains("No such file or directory"));
}
