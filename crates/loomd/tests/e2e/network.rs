//! Permission profiles and the managed network, as a client sees them. The hosts are addresses of the loopback,
//! which the profile lets the proxy reach; commands speak to the proxy with nothing but their shell.

use std::net::SocketAddr;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{initialized, until};

const ASK: &str = "item/commandExecution/requestApproval";

const PROFILE: &str = r#"
    default_permissions = "p"
    approval_policy = "on-request"
    features.shell_snapshot = false

    [permissions.p.filesystem]
    ":root" = "read"

    [permissions.p.filesystem.":project_roots"]
    "." = "write"
    "secret" = "none"

    [permissions.p.network]
    enabled = true
    allow_local_binding = true

    [permissions.p.network.domains]
    "127.0.0.1" = "allow"
    "127.0.0.2" = "deny"
"#;

struct World {
    home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
    origin: SocketAddr,
}

impl World {
    async fn new() -> Self {
        let model = ScriptedModel::start().await;
        let home = Home::new(&model).with(PROFILE);
        // What a profile says counts only where no sandbox mode does.
        let config = std::fs::read_to_string(home.path().join("config.toml")).unwrap();
        home.write("config.toml", &config.replace("sandbox_mode = \"read-only\"\n", ""));
        std::fs::create_dir(home.work().join("secret")).unwrap();
        std::fs::write(home.work().join("secret/key"), "secret").unwrap();
        let server = initialized(&home).await;
        let cwd = home.work();
        let started = server.request("thread/start", json!({ "cwd": cwd })).await.expect("a thread can be started");
        let thread = started["thread"]["id"].as_str().unwrap().to_owned();
        assert_eq!(
            (&started["sandbox"]["type"], &started["sandbox"]["networkAccess"]),
            (&json!("workspaceWrite"), &json!(true))
        );
        Self { home, model, server, thread, origin: origin().await }
    }

    /// A script that asks the proxy for something of a host.
    fn get(&self, host: &str) -> String {
        let port = self.origin.port();
        format!(
            "exec 3<>/dev/tcp/127.0.0.1/3128; printf 'GET http://{host}:{port}/ HTTP/1.1\\r\\nHost: x\\r\\nConnection: \
             close\\r\\n\\r\\n' >&3; cat <&3 | tail -n 1"
        )
    }

    async fn begin(&self, script: &str) {
        let arguments = json!({ "command": script, "login": false });
        self.model.reply(function_call("shell_command", arguments, "c1")).reply(message("done"));
        self.server.start_turn(&self.thread, "go").await;
    }

    /// How the command ended, with what it printed.
    async fn end(&self) -> (String, String) {
        let thread = self.thread.clone();
        self.server.notification_where("turn/completed", move |params| params["threadId"] == thread.as_str()).await;
        let items = self.server.notifications("item/completed");
        let item = items.iter().rev().map(|params| &params["item"]).find(|item| item["type"] == "commandExecution");
        let text = |field: &str| item.unwrap()[field].as_str().unwrap_or_default().to_owned();
        (text("status"), text("aggregatedOutput"))
    }

    async fn run(&self, script: &str) -> (String, String) {
        self.begin(script).await;
        self.end().await
    }
}

/// A host that says hello, on every address of the loopback.
async fn origin() -> SocketAddr {
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            _ = stream.read(&mut request).await;
            _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n").await;
        }
    });
    address
}

fn outcome(status: &str, output: &str) -> (String, String) {
    (status.to_owned(), output.to_owned())
}

#[tokio::test]
async fn a_profile_says_what_commands_may_touch() {
    let world = World::new().await;
    let (_, said) = world.run("echo x > new && cat secret/key; echo x > ../out").await;
    assert!(said.contains("secret/key: Permission denied") && said.contains("Read-only file system"), "{said}");
    assert!(world.home.work().join("new").exists() && !world.home.path().join("../out").exists());
    let image = json!({ "path": "secret/key" });
    world.model.reply(function_call("view_image", image, "i1")).reply(message("done"));
    world.server.run_turn(&world.thread, "look").await;
    let calls = world.model.calls();
    let told = calls.last().unwrap().body["input"].to_string();
    assert!(told.contains("the sandbox does not allow it"), "{told}");
}

#[tokio::test]
async fn what_is_listed_is_reached_and_nothing_else_is() {
    let world = World::new().await;
    assert_eq!(world.run(&world.get("127.0.0.1")).await, outcome("completed", "hello\n"));
    let denied = "Network access to \"127.0.0.2\" was blocked: domain is explicitly denied by policy and cannot be approved \
                  from this prompt.";
    assert_eq!(world.run(&world.get("127.0.0.2")).await, outcome("declined", denied));
    let direct =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached; echo $HTTPS_PROXY $ALL_PROXY", world.origin.port());
    let (_, said) = world.run(&direct).await;
    assert!(said.contains("http://127.0.0.1:3128 socks5h://127.0.0.1:8081") && !said.contains("reached"), "{said}");
}

#[tokio::test]
async fn a_host_that_nobody_lists_is_asked_about() {
    let world = World::new().await;
    let port = world.origin.port();
    let ask = async |decision: Value| {
        world.begin(&world.get("127.0.0.3")).await;
        let (id, mut params) = world.server.server_request(ASK).await;
        for own in ["threadId", "turnId", "startedAtMs"] {
            params.as_object_mut().unwrap().remove(own);
        }
        world.server.respond(&id, json!({ "decision": decision })).await;
        (params, world.end().await)
    };
    let amendment = |action: &str| json!({ "host": "127.0.0.3", "action": action });
    let allow = json!({ "applyNetworkPolicyAmendment": { "network_policy_amendment": amendment("allow") } });
    let expected = json!({
        "itemId": format!("network#http#127.0.0.3#{port}"),
        "reason": "127.0.0.3 is not in the allowed_domains",
        "networkApprovalContext": { "host": "127.0.0.3", "protocol": "http" },
        "proposedNetworkPolicyAmendments": [amendment("allow"), amendment("deny")],
        "availableDecisions": ["accept", "acceptForSession", allow, "cancel"],
    });
    assert_eq!(ask(json!("accept")).await, (expected.clone(), outcome("completed", "hello\n")));
    let declined = outcome("declined", "exec command rejected by user");
    assert_eq!(ask(json!("decline")).await, (expected.clone(), declined));
    assert_eq!(ask(json!("what?")).await.1, outcome("declined", "exec command rejected by user"));
    assert_eq!(ask(allow).await, (expected, outcome("completed", "hello\n")));
    // From now on nobody is asked, whatever the command.
    assert_eq!(world.run(&world.get("127.0.0.3")).await, outcome("completed", "hello\n"));
    assert_eq!(
        std::fs::read_to_string(world.home.path().join("rules/default.rules")).unwrap(),
        "network_rule(host=\"127.0.0.3\", protocol=\"http\", decision=\"allow\", justification=\"Allow http access to \
         127.0.0.3\")\n"
    );
}

#[tokio::test]
async fn one_answer_is_enough_for_all_who_wait_for_it() {
    let world = World::new().await;
    let get = world.get("127.0.0.3").replace("; cat ", "; echo > sent$i; cat ");
    world.begin(&format!("for i in 1 2 3; do ({get}) & done; wait")).await;
    let (id, _) = world.server.server_request(ASK).await;
    // Whose request is read after the answer is allowed for the session.
    let sent = |i| world.home.work().join(format!("sent{i}")).exists();
    until("request of each", async || (1..=3).all(sent)).await;
    world.server.respond(&id, json!({ "decision": "acceptForSession" })).await;
    assert_eq!(world.end().await, outcome("completed", "hello\nhello\nhello\n"));
    assert_eq!(world.server.notifications("serverRequest/resolved").len(), 1);
}

#[tokio::test]
async fn a_question_is_taken_back_with_its_turn() {
    let world = World::new().await;
    world.begin(&world.get("127.0.0.3")).await;
    let (id, params) = world.server.server_request(ASK).await;
    let interrupt = json!({ "threadId": world.thread, "turnId": params["turnId"] });
    world.server.request("turn/interrupt", interrupt).await.expect("a running turn can be interrupted");
    let resolved = world.server.notification("serverRequest/resolved").await;
    assert_eq!(resolved["requestId"], json!(id));
    let (status, _) = world.end().await;
    assert_eq!(status, "failed");
}

#[tokio::test]
async fn a_question_is_taken_back_when_the_command_no_longer_waits() {
    let world = World::new().await;
    let script = format!("({}) & until [ -e go ]; do sleep 0.01; done; kill -9 $!; exit 0", world.get("127.0.0.3"));
    world.begin(&script.replace("cat <&3 | tail -n 1", "read -r <&3")).await;
    let (id, _) = world.server.server_request(ASK).await;
    std::fs::write(world.home.work().join("go"), "").unwrap();
    let resolved = world.server.notification("serverRequest/resolved").await;
    assert_eq!(resolved["requestId"], json!(id));
    let (status, _) = world.end().await;
    assert_eq!(status, "completed");
}

#[tokio::test]
async fn programs_of_clients_reach_what_is_listed_and_nobody_is_asked() {
    let world = World::new().await;
    let exec = async |script: String| {
        let answer = world.server.request("command/exec", json!({ "command": ["bash", "-c", script] })).await.unwrap();
        answer["stdout"].as_str().unwrap().to_owned()
    };
    assert_eq!(exec(world.get("127.0.0.1")).await, "hello\n");
    assert!(exec(world.get("127.0.0.3")).await.contains("\"reason\":\"not_allowed\""));
}

#[tokio::test]
async fn a_command_in_the_background_ends_with_its_thread() {
    let world = World::new().await;
    let arguments = json!({ "cmd": "sleep 1000", "login": false, "yield_time_ms": 250 });
    world.model.reply(function_call("exec_command", arguments, "c1")).reply(message("done"));
    world.server.run_turn(&world.thread, "go").await;
    assert_ne!(processes_of(&world.thread), Vec::<String>::new());
    world.server.request("thread/unsubscribe", json!({ "threadId": world.thread })).await.expect("left");
    world.server.notification("thread/closed").await;
    until("end of the command", async || processes_of(&world.thread).is_empty()).await;
}

/// The numbers of processes that were started for a thread.
fn processes_of(thread: &str) -> Vec<String> {
    let mark = format!("CODEX_THREAD_ID={thread}");
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let ours = entries.filter(|path| {
        let environ = std::fs::read(path.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    ours.map(|path| path.display().to_string()).collect()
}
