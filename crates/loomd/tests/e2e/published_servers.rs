//! MCP servers that others have published, each used in a turn. Skipped if they are not installed:
//!
//! ```sh
//! npm install --prefix target/mcp-servers @modelcontextprotocol/server-everything @modelcontextprotocol/server-filesystem
//! python3 -m venv target/mcp-servers/venv && target/mcp-servers/venv/bin/pip install mcp-server-git mcp-server-time
//! ```

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server, TIMEOUT};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

use crate::common::initialized;

const EVERYTHING: &str = "node_modules/@modelcontextprotocol/server-everything/dist/index.js";
const FILESYSTEM: &str = "node_modules/@modelcontextprotocol/server-filesystem/dist/index.js";

/// A file of an installed server, or `None` with a line on stderr.
fn installed(file: &str) -> Option<PathBuf> {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).parent()?.join("mcp-servers").join(file);
    if !path.exists() {
        eprintln!("skipped: no MCP server at {}", path.display());
        return None;
    }
    Some(path)
}

/// A thread with one MCP server, `srv`.
struct Session {
    home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
}

impl Session {
    /// `table` is the server's configuration, with `$WORK` for the working directory.
    async fn new(table: &str) -> Self {
        let model = ScriptedModel::start().await;
        let home = Home::new(&model);
        let work = home.work().to_str().unwrap().to_owned();
        let home = home.with("approval_policy = \"on-request\"\nsandbox_mode = \"danger-full-access\"");
        let home = home.with(&format!("[mcp_servers.srv]\n{}", table.replace("$WORK", &work)));
        let server = initialized(&home).await;
        let started = server.request("thread/start", json!({ "cwd": home.work() })).await.unwrap();
        let thread = started["thread"]["id"].as_str().unwrap().to_owned();
        let ended =
            server.notification_where("mcpServer/startupStatus/updated", |params| params["status"] != "starting");
        let ended = ended.await;
        assert_eq!((&ended["name"], &ended["status"]), (&json!("srv"), &json!("ready")), "{ended}");
        Self { home, model, server, thread }
    }

    /// A server that is a program of node.
    async fn node(script: &Path, arguments: &str) -> Self {
        Self::new(&format!("command = \"node\"\nargs = [{:?}, {arguments}]", script.to_str().unwrap())).await
    }

    /// Lets the model call a tool. `client` answers what the client is asked meanwhile.
    async fn call_with(&self, tool: &str, arguments: Value, client: impl AsyncFnOnce(&Server)) -> Called {
        self.server.clear();
        let before = self.model.calls().len();
        self.model.reply(function_call(tool, arguments, "c1")).reply(message("done"));
        self.server.start_turn(&self.thread, "go").await;
        client(&self.server).await;
        let turn = self.server.turn_completed(&self.thread).await;
        assert_eq!(serde_json::to_value(&turn).unwrap()["status"], "completed");
        let second = self.model.call(before + 1).await;
        let outputs = second.body["input"].as_array().unwrap().iter();
        let mut outputs = outputs.filter(|item| item["type"] == "function_call_output");
        let output = outputs.next_back().unwrap()["output"].to_string();
        let items = self.server.notifications("item/completed");
        let mut items = items.into_iter().map(|params| params["item"].clone());
        Called { output, item: items.find(|item| item["type"] == "mcpToolCall").unwrap_or_default() }
    }

    async fn call(&self, tool: &str, arguments: Value) -> Called {
        self.call_with(tool, arguments, async |_| {}).await
    }

    /// The tools of the server that the model is offered.
    async fn tools(&self) -> Vec<String> {
        self.model.reply(message("done"));
        let before = self.model.calls().len();
        self.server.run_turn(&self.thread, "which tools").await;
        let call = self.model.call(before).await;
        let names = call.body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str());
        names.filter_map(|name| name.strip_prefix("mcp__srv__")).map(str::to_owned).collect()
    }
}

/// What the model and the client saw of a call.
struct Called {
    output: String,
    item: Value,
}

/// Accepts the approval of a tool call, or a form.
async fn accept(server: &Server, content: Value) -> Value {
    let (id, params) = server.server_request("mcpServer/elicitation/request").await;
    server.respond(&id, json!({ "action": "accept", "content": content })).await;
    params
}

/// What every transport of the everything server must give.
async fn everything(session: &Session) {
    let tools = session.tools().await;
    for tool in ["echo", "get_sum", "trigger_long_running_operation"] {
        assert!(tools.iter().any(|known| known == tool), "no {tool} in {tools:?}");
    }
    let echo = session.call("mcp__srv__echo", json!({ "message": "hello there" })).await;
    assert!(echo.output.contains("Echo: hello there"), "{}", echo.output);
    assert_eq!((&echo.item["tool"], &echo.item["status"]), (&json!("echo"), &json!("completed")));
    let wrong = session.call("mcp__srv__get_sum", json!({ "a": "x" })).await;
    assert!(wrong.output.contains("nvalid"), "the server's error reaches the model: {}", wrong.output);

    let slow = session.call("mcp__srv__trigger_long_running_operation", json!({ "duration": 1, "steps": 3 })).await;
    assert_eq!(slow.item["status"], "completed", "{}", slow.item);
    let progress = session.server.notifications("item/mcpToolCall/progress");
    assert!(!progress.is_empty() && progress.iter().all(|params| params["itemId"] == slow.item["id"]), "{progress:?}");

    let uri = json!({ "server": "srv", "uri": "demo://resource/static/document/features.md" });
    let read = session.call("read_mcp_resource", uri).await;
    assert!(read.output.contains("Everything Server"), "{}", read.output);
    let listed = session.call("list_mcp_resources", json!({ "server": "srv" })).await;
    assert!(listed.output.contains("demo://resource/static/document/features.md"), "{}", listed.output);
}

#[tokio::test]
async fn the_everything_server_works_over_stdio() {
    let Some(script) = installed(EVERYTHING) else { return };
    let session = Session::node(&script, "").await;
    everything(&session).await;
    let form = session
        .call_with("mcp__srv__trigger_elicitation_request", json!({}), async |server| {
            let form = accept(server, json!({ "name": "Ada", "check": true })).await;
            assert_eq!((&form["mode"], &form["serverName"]), (&json!("form"), &json!("srv")), "{form}");
        })
        .await;
    assert!(form.output.contains("Ada"), "{}", form.output);
    assert_eq!(form.item["status"], "completed");
}

#[tokio::test]
async fn the_everything_server_works_over_http() {
    let Some(script) = installed(EVERYTHING) else { return };
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let _child = listening(&script, free).await;
    everything(&Session::new(&format!("url = \"http://127.0.0.1:{free}/mcp\"")).await).await;
}

/// The everything server on a port.
async fn listening(script: &Path, port: u16) -> Child {
    let mut command = Command::new("node");
    command.arg(script).arg("streamableHttp").env("PORT", port.to_string()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.kill_on_drop(true).spawn().expect("node starts");
    let connected = async {
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(TIMEOUT, connected).await.expect("the server listens");
    child
}

#[tokio::test]
async fn the_filesystem_server_reads_at_once_and_writes_after_an_approval() {
    let Some(script) = installed(FILESYSTEM) else { return };
    let session = Session::node(&script, "\"$WORK\"").await;
    let file = session.home.work().join("note.txt");
    std::fs::write(&file, "first line\nsecond line\n").unwrap();
    let read = session.call("mcp__srv__read_text_file", json!({ "path": file, "head": 1 })).await;
    assert!(read.output.contains("first line") && !read.output.contains("second"), "{}", read.output);
    let write = json!({ "path": file, "content": "from the model" });
    let written = session
        .call_with("mcp__srv__write_file", write, async |server| {
            let approval = accept(server, json!({})).await;
            assert_eq!(approval["serverName"], "srv", "{approval}");
        })
        .await;
    assert_eq!(written.item["status"], "completed", "{}", written.item);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "from the model");
    let outside = session.call("mcp__srv__read_text_file", json!({ "path": "/etc/hostname" })).await;
    assert!(outside.output.contains("denied"), "{}", outside.output);
}

#[tokio::test]
async fn the_git_server_shows_the_state_of_a_repository() {
    let Some(program) = installed("venv/bin/mcp-server-git") else { return };
    let session = Session::new(&format!("command = {:?}", program.to_str().unwrap())).await;
    let repository = session.home.work();
    let made = Command::new("git").arg("init").arg("-q").arg("-b").arg("trunk").arg(&repository).status().await;
    assert!(made.unwrap().success());
    std::fs::write(repository.join("new.txt"), "x").unwrap();
    let status = session.call("mcp__srv__git_status", json!({ "repo_path": repository })).await;
    assert!(status.output.contains("trunk") && status.output.contains("new.txt"), "{}", status.output);
    let nowhere = session.call("mcp__srv__git_log", json!({ "repo_path": "/nowhere" })).await;
    assert!(nowhere.output.contains("nowhere"), "the server's error reaches the model: {}", nowhere.output);
}

#[tokio::test]
async fn the_time_server_converts_times() {
    let Some(program) = installed("venv/bin/mcp-server-time") else { return };
    let session =
        Session::new(&format!("command = {:?}\nargs = [\"--local-timezone\", \"UTC\"]", program.to_str().unwrap()))
            .await;
    let zones = json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let converted = session.call("mcp__srv__convert_time", zones).await;
    assert!(converted.output.contains("21:00"), "{}", converted.output);
    let unknown = json!({ "source_timezone": "Nowhere", "time": "12:00", "target_timezone": "UTC" });
    let refused = session.call("mcp__srv__convert_time", unknown).await;
    assert!(refused.output.contains("Nowhere"), "the server's error reaches the model: {}", refused.output);
}
