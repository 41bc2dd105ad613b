//! Permission profiles and the managed network, as a client sees them. The hosts are loopback addresses, which the
//! profile allows; commands use the proxy from a shell only.

use std::net::SocketAddr;

use loomd_testkit::model::{function_call, message};
use loomd_testkit::{Home, ScriptedModel, Server};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::common::{initialized, until};

const APPROVAL: &str = "item/commandExecution/requestApproval";

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

struct NetworkFixture {
    home: Home,
    model: ScriptedModel,
    server: Server,
    thread: String,
    origin: SocketAddr,
}

impl NetworkFixture {
    async fn new() -> Self {
        let model = ScriptedModel::start().await;
        let home = Home::new(&model).with(PROFILE);
        // A profile applies only without a sandbox mode.
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

    /// A script that requests a page of a host through the proxy.
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

    /// The status and the output of the command.
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

/// An HTTP server on every loopback address.
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
async fn a_profile_limits_what_commands_read_and_write() {
    let fixture = NetworkFixture::new().await;
    let (_, said) = fixture.run("echo x > new && cat secret/key; echo x > ../out").await;
    assert!(said.contains("secret/key: Permission denied") && said.contains("Read-only file system"), "{said}");
    assert!(fixture.home.work().join("new").exists() && !fixture.home.path().join("../out").exists());
    let image = json!({ "path": "secret/key" });
    fixture.model.reply(function_call("view_image", image, "i1")).reply(message("done"));
    fixture.server.run_turn(&fixture.thread, "look").await;
    let calls = fixture.model.calls();
    let told = calls.last().unwrap().body["input"].to_string();
    assert!(told.contains("the sandbox does not allow it"), "{told}");
}

#[tokio::test]
async fn only_listed_hosts_are_reached() {
    let fixture = NetworkFixture::new().await;
    assert_eq!(fixture.run(&fixture.get("127.0.0.1")).await, outcome("completed", "hello\n"));
    let denied = "Network access to \"127.0.0.2\" was blocked: domain is explicitly denied by policy and cannot be approved \
                  from this prompt.";
    assert_eq!(fixture.run(&fixture.get("127.0.0.2")).await, outcome("declined", denied));
    let direct =
        format!("exec 3<>/dev/tcp/127.0.0.1/{} && echo reached; echo $HTTPS_PROXY $ALL_PROXY", fixture.origin.port());
    let (_, said) = fixture.run(&direct).await;
    assert!(said.contains("http://127.0.0.1:3128 socks5h://127.0.0.1:8081") && !said.contains("reached"), "{said}");
}

#[tokio::test]
async fn an_unlisted_host_needs_approval() {
    let fixture = NetworkFixture::new().await;
    let port = fixture.origin.port();
    let ask = async |decision: Value| {
        fixture.begin(&fixture.get("127.0.0.3")).await;
        let (id, mut params) = fixture.server.server_request(APPROVAL).await;
        for own in ["threadId", "turnId", "startedAtMs"] {
            params.as_object_mut().unwrap().remove(own);
        }
        fixture.server.respond(&id, json!({ "decision": decision })).await;
        (params, fixture.end().await)
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
    // From now on no approval is requested, whatever the command.
    assert_eq!(fixture.run(&fixture.get("127.0.0.3")).await, outcome("completed", "hello\n"));
    assert_eq!(
        std::fs::read_to_string(fixture.home.path().join("rules/default.rules")).unwrap(),
        "network_rule(host=\"127.0.0.3\", protocol=\"http\", decision=\"allow\", justification=\"Allow http access to \
         127.0.0.3\")\n"
    );
}

#[tokio::test]
async fn one_approval_answers_all_requests_for_the_host() {
    let fixture = NetworkFixture::new().await;
    let get = fixture.get("127.0.0.3").replace("; cat ", "; echo > sent$i; cat ");
    fixture.begin(&format!("for i in 1 2 3; do ({get}) & done; wait")).await;
    let (id, _) = fixture.server.server_request(APPROVAL).await;
    // A request read after the answer is allowed for the session.
    let sent = |i| fixture.home.work().join(format!("sent{i}")).exists();
    until("request of each", async || (1..=3).all(sent)).await;
    fixture.server.respond(&id, json!({ "decision": "acceptForSession" })).await;
    assert_eq!(fixture.end().await, outcome("completed", "hello\nhello\nhello\n"));
    assert_eq!(fixture.server.notifications("serverRequest/resolved").len(), 1);
}

#[tokio::test]
async fn a_network_approval_is_resolved_when_its_turn_is_interrupted() {
    let fixture = NetworkFixture::new().await;
    fixture.begin(&fixture.get("127.0.0.3")).await;
    let (id, params) = fixture.server.server_request(APPROVAL).await;
    let interrupt = json!({ "threadId": fixture.thread, "turnId": params["turnId"] });
    fixture.server.request("turn/interrupt", interrupt).await.expect("a running turn can be interrupted");
    let resolved = fixture.server.notification("serverRequest/resolved").await;
    assert_eq!(resolved["requestId"], json!(id));
    let (status, _) = fixture.end().await;
    assert_eq!(status, "failed");
}

#[tokio::test]
async fn a_network_approval_is_resolved_when_the_command_closes_its_connection() {
    let fixture = NetworkFixture::new().await;
    let script = format!("({}) & until [ -e go ]; do sleep 0.01; done; kill -9 $!; exit 0", fixture.get("127.0.0.3"));
    fixture.begin(&script.replace("cat <&3 | tail -n 1", "read -r <&3")).await;
    let (id, _) = fixture.server.server_request(APPROVAL).await;
    std::fs::write(fixture.home.work().join("go"), "").unwrap();
    let resolved = fixture.server.notification("serverRequest/resolved").await;
    assert_eq!(resolved["requestId"], json!(id));
    let (status, _) = fixture.end().await;
    assert_eq!(status, "completed");
}

#[tokio::test]
async fn command_exec_reaches_listed_hosts_without_approvals() {
    let fixture = NetworkFixture::new().await;
    let exec = async |script: String| {
        let answer =
            fixture.server.request("command/exec", json!({ "command": ["bash", "-c", script] })).await.unwrap();
        answer["stdout"].as_str().unwrap().to_owned()
    };
    assert_eq!(exec(fixture.get("127.0.0.1")).await, "hello\n");
    assert!(exec(fixture.get("127.0.0.3")).await.contains("\"reason\":\"not_allowed\""));
}

#[tokio::test]
async fn a_background_command_ends_with_its_thread() {
    let fixture = NetworkFixture::new().await;
    let arguments = json!({ "cmd": "sleep 1000", "login": false, "yield_time_ms": 250 });
    fixture.model.reply(function_call("exec_command", arguments, "c1")).reply(message("done"));
    fixture.server.run_turn(&fixture.thread, "go").await;
    assert_ne!(processes_of(&fixture.thread), Vec::<String>::new());
    fixture.server.request("thread/unsubscribe", json!({ "threadId": fixture.thread })).await.expect("left");
    fixture.server.notification("thread/closed").await;
    until("end of the command", async || processes_of(&fixture.thread).is_empty()).await;
}

/// The ids of processes that were started for a thread.
fn processes_of(thread: &str) -> Vec<String> {
    let mark = format!("CODEX_THREAD_ID={thread}");
    let entries = std::fs::read_dir("/proc").unwrap().filter_map(|entry| Some(entry.ok()?.path()));
    let ours = entries.filter(|path| {
        let environ = std::fs::read(path.join("environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
    });
    ours.map(|path| path.display().to_string()).collect()
}
